import { call, clean, data, el, show, soil, toast } from "./app.js";
import { axisOfNames, draw } from "./charts.js";
import { TreeEditor } from "./tree.js";

const seen = data("data");
const url = document.querySelector(".editor").dataset.url;
const problem = document.getElementById("problem");
const $ = (id) => document.getElementById(id);
const tabs = [...document.querySelectorAll('[role="tab"]')];
let way = seen.way;
let level = null;
let asTree = null; // what the last preview would be as a tree
let treeTouched = seen.way === "tree";

// -- what the inputs say -----------------------------------------------------------------------------------------

function numbers(text) {
  return text.split(/[\s,;]+/).filter(Boolean);
}

function widths() {
  return [...$("widths").querySelectorAll("input")]
    .map((input) => numbers(input.value))
    .filter((cuts) => cuts.length)
    .map((cuts) => (cuts.length === 1 ? cuts[0] : cuts));
}

function body() {
  const weight = $("weight").value.trim() || "1";
  if (way === "tree") return { tree: $("tree-text").value, weight };
  if (way === "file") return { csv: $("csv-text").value, weight };
  if (way === "suppress") return { spec: "suppress", weight };
  const spec = {};
  if (way === "intervals") {
    spec.intervals = widths();
    for (const key of ["below", "above", "origin"]) if ($(key).value.trim()) spec[key] = $(key).value.trim();
  } else if (way === "mask") {
    spec.mask = $("mask-end").value;
    const by = numbers($("mask-by").value);
    if (by.length) spec.by = by;
  } else if (way === "dates") {
    spec.dates = [...document.querySelectorAll('input[name="unit"]:checked')].map((box) => box.value);
    if ($("date-format").value.trim()) spec.format = $("date-format").value.trim();
  } else if (way === "groups") {
    spec.groups = groups();
  }
  return { spec, weight };
}

function addWidth(value = "") {
  const remove = el("button", { type: "button", class: "quiet danger", "aria-label": "Remove this level" }, "×");
  const input = el("input", { value, autocomplete: "off", placeholder: "10   or   18, 40, 65", "aria-label": "Width or cut points" });
  const item = el("li", {}, el("div", {}, input, remove));
  remove.addEventListener("click", () => {
    item.remove();
    changed();
  });
  $("widths").append(item);
  return input;
}

// -- groups as lists: levels from fine to coarse, each with its groups ------------------------------------------

const cards = (level) => [...level.querySelectorAll(".group")].map((card) => [card.querySelector("input").value.trim(), card.querySelector("textarea").value.split("\n").map((v) => v.trim()).filter(Boolean)]);

/** The levels as the policy writes them: groups by name, or lists where none has a name. */
function groups() {
  return [...$("groups-list").children]
    .map((level) => cards(level).filter(([, values]) => values.length))
    .filter((made) => made.length)
    .map((made) => (made.every(([name]) => !name) ? made.map(([, values]) => values) : Object.fromEntries(made.map(([name, values]) => [name || values.join(", "), values]))));
}

const remover = (what, element) => el("button", { type: "button", class: "quiet danger", "aria-label": `Remove this ${what}`, onclick: () => {
  element().remove();
  changed();
} }, "×");

function addGroup(level, name = "", values = []) {
  const title = el("input", { value: name, autocomplete: "off", placeholder: "its values", "aria-label": "Name of the group" });
  const inside = el("textarea", { rows: Math.max(2, Math.min(8, values.length)), spellcheck: "false", "aria-label": "Values of the group" });
  inside.value = values.join("\n");
  const card = el("div", { class: "group" }, el("div", { class: "row" }, title, remover("group", () => card)), inside);
  card.addEventListener("focusin", () => mark(card));
  level.querySelector(".groups").append(card);
  mark(card);
  return title;
}

function addLevel(made = {}) {
  const add = el("button", { type: "button", class: "quiet", onclick: () => addGroup(level).focus() }, "Add a group");
  const level = el("section", { class: "level" }, el("div", { class: "groups" }), el("div", { class: "actions" }, add, remover("level", () => level)));
  $("groups-list").append(level);
  for (const [name, values] of Array.isArray(made) ? made.map((v) => ["", v]) : Object.entries(made)) addGroup(level, name, [values].flat());
  return level;
}

function mark(card) {
  for (const other of $("groups-list").querySelectorAll(".group")) other.classList.toggle("chosen", other === card);
  rest();
}

/** Values that are in no group of the level that was chosen last; a click puts one into the group. */
function rest() {
  const level = $("groups-list").querySelector(".chosen")?.closest(".level") || $("groups-list").firstElementChild;
  const used = new Set(level ? cards(level).flatMap(([, values]) => values) : []);
  const free = seen.values.filter((v) => !used.has(v)).slice(0, 200);
  const shown = [...$("groups-rest").children].map((chip) => chip.textContent);
  if (shown.join("\n") === free.join("\n")) return; // a chip that is being clicked stays where it is
  $("groups-rest").replaceChildren(...free.map((value) => el("button", { type: "button", onclick: () => put(value) }, value)));
}

function put(value) {
  const level = $("groups-list").firstElementChild || addLevel();
  if (!$("groups-list").querySelector(".group")) addGroup(level);
  const inside = $("groups-list").querySelector(".chosen textarea") || level.querySelector("textarea");
  inside.value = inside.value ? `${inside.value.trimEnd()}\n${value}` : value;
  changed();
}

function fill() {
  const spec = typeof seen.spec === "object" ? seen.spec : {};
  for (const entry of spec.intervals || []) addWidth([entry].flat().join(", "));
  if (!$("widths").children.length) addWidth();
  for (const key of ["below", "above", "origin"]) $(key).value = spec[key] ?? "";
  if (spec.mask) $("mask-end").value = spec.mask;
  $("mask-by").value = (spec.by || []).join(", ");
  for (const box of document.querySelectorAll('input[name="unit"]')) box.checked = (spec.dates || []).includes(box.value);
  $("date-format").value = spec.format || "";
  // one level may be written without a list around it
  const several = Array.isArray(spec.groups) && spec.groups.some((l) => !Array.isArray(l) || l.some(Array.isArray));
  for (const level of several ? spec.groups : [spec.groups || {}]) addLevel(level);
}

// -- the preview -------------------------------------------------------------------------------------------------

let timer;
let asked = 0;
function changed(soiled = true) {
  if (soiled) soil();
  rest();
  clearTimeout(timer);
  timer = setTimeout(preview, 250);
}

async function preview() {
  const number = ++asked;
  let answer;
  try {
    answer = await call("POST", `${url}/preview`, body());
  } catch (error) {
    return show(problem, error);
  }
  if (number !== asked) return undefined; // a later question was asked meanwhile
  if (!answer.ok) return wrong(answer);
  show(problem, null);
  tree.mark([]);
  asTree = answer.tree;
  table(answer);
  chips(answer);
  return undefined;
}

/** The error in words, and marked at each value that it names. */
function wrong(answer) {
  show(problem, { message: answer.error });
  tree.mark(answer.values);
  const bad = new Set(answer.values);
  const values = seen.values.slice(0, 400);
  for (const value of answer.values) if (!values.includes(value)) values.unshift(value);
  const rows = values.map((value) =>
    el("tr", bad.has(value) ? { class: "wrong" } : {}, el("td", {}, value), el("td", {}, bad.has(value) ? "← here" : "")),
  );
  $("preview").replaceChildren(el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "value"), el("th", {}, ""))), el("tbody", {}, ...rows));
  $("levels").replaceChildren();
  $("chart").replaceChildren();
  $("preview").querySelector(".wrong")?.scrollIntoView({ block: "nearest" });
}

/** Values down, levels across; equal labels below each other are one cell. */
function table(answer) {
  const rows = answer.table;
  const head = el("tr", {}, ...answer.levels.map((l, i) => el("th", { scope: "col" }, i ? l.name : "value")), el("th", { scope: "col", class: "number" }, "rows"));
  const made = rows.map((labels, r) => {
    const cells = [];
    for (let c = 0; c < labels.length; c += 1) {
      if (r && rows[r - 1][c] === labels[c]) continue;
      let span = 1;
      while (r + span < rows.length && rows[r + span][c] === labels[c]) span += 1;
      cells.push(el("td", span > 1 ? { rowspan: span, class: "merged" } : {}, labels[c]));
    }
    cells.push(el("td", { class: "number" }, answer.rows[r].toLocaleString("en")));
    return el("tr", {}, ...cells);
  });
  if (answer.more) made.push(el("tr", {}, el("td", { colspan: answer.levels.length + 1 }, `and ${answer.more} more values`)));
  $("preview").replaceChildren(el("thead", {}, head), el("tbody", {}, ...made));
}

function chips(answer) {
  const shown = answer.levels.slice(0, -1);
  if (level === null || level >= shown.length) level = Math.min(1, shown.length - 1);
  $("levels").replaceChildren(
    ...shown.map((l, i) =>
      el(
        "button",
        {
          type: "button", role: "radio", "aria-checked": String(i === level), tabindex: i === level ? 0 : -1,
          onclick: () => {
            level = i;
            chips(answer);
          },
        },
        `${i ? l.name : "exact"}: ${l.labels}`,
      ),
    ),
  );
  bars(shown[level]);
}

function bars(chosen) {
  const values = chosen.blocks.slice(0, 60).map((b, order) => ({ ...b, order }));
  draw($("chart"), () => ({
    height: 150,
    data: { values },
    mark: { type: "bar", cornerRadiusEnd: 2, tooltip: true },
    encoding: {
      x: { field: "label", type: "nominal", sort: { field: "order" }, title: level ? `labels of ${chosen.name}` : "exact values", axis: axisOfNames($("chart"), values.map((v) => v.label)) },
      y: { field: "rows", type: "quantitative", title: "rows" },
      tooltip: [{ field: "label" }, { field: "rows", format: "," }, { field: "values", title: "values inside" }],
    },
  }));
}

// -- wiring ------------------------------------------------------------------------------------------------------

function choose(tab, focus) {
  way = tab.id.replace("tab-", "");
  for (const other of tabs) {
    const on = other === tab;
    other.setAttribute("aria-selected", String(on));
    other.tabIndex = on ? 0 : -1;
    $(other.getAttribute("aria-controls")).hidden = !on;
  }
  if (focus) tab.focus();
  if (way === "tree" && !treeTouched && asTree) {
    $("tree-text").value = asTree; // go on from what the other tab made
    tree.draw();
  }
  level = null;
  changed(way !== seen.way);
}
for (const tab of tabs) {
  tab.addEventListener("click", () => choose(tab));
  tab.disabled = false; // a click before this line would be lost
}
document.querySelector('[role="tablist"]').addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step) choose(tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length], true);
});
$("levels").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const all = [...$("levels").children];
  if (!step || !all.length) return;
  all[(all.indexOf(document.activeElement) + step + all.length) % all.length].click();
  $("levels").querySelector('[aria-checked="true"]').focus();
});

fill();
const tree = new TreeEditor($("tree"), $("tree-text"), () => {
  treeTouched = true;
  changed();
});
$("tree-text").addEventListener("input", () => (treeTouched = true));
$("new-branch").addEventListener("click", () => tree.branch());
$("add-level").addEventListener("click", () => addGroup(addLevel()).focus());
$("add-width").addEventListener("click", () => addWidth().focus());
document.querySelector(".editor > section").addEventListener("input", () => changed());
document.querySelector(".editor > section").addEventListener("change", () => changed());
$("save").addEventListener("click", async () => {
  try {
    await call("PUT", `${url}/hierarchy`, body());
    clean();
    show(problem, null);
    toast("Saved.");
  } catch (error) {
    show(problem, error);
  }
});
changed(false);
