import { call, clean, data, el, show, soil, toast } from "./app.js";
import { draw } from "./charts.js";
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
    return { groups: $("groups-text").value, weight };
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

function fill() {
  const spec = typeof seen.spec === "object" ? seen.spec : {};
  for (const entry of spec.intervals || []) addWidth([entry].flat().join(", "));
  if (!$("widths").children.length) addWidth();
  for (const key of ["below", "above", "origin"]) $(key).value = spec[key] ?? "";
  if (spec.mask) $("mask-end").value = spec.mask;
  $("mask-by").value = (spec.by || []).join(", ");
  for (const box of document.querySelectorAll('input[name="unit"]')) box.checked = (spec.dates || []).includes(box.value);
  $("date-format").value = spec.format || "";
  if (spec.groups) $("groups-text").value = JSON.stringify(spec.groups);
}

// -- the preview -------------------------------------------------------------------------------------------------

let timer;
let asked = 0;
function changed(soiled = true) {
  if (soiled) soil();
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
      x: { field: "label", type: "nominal", sort: { field: "order" }, title: null, axis: { labelAngle: values.length > 8 ? -40 : 0, labelLimit: values.length > 5 ? 90 : 240, labelOverlap: true } },
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
for (const tab of tabs) tab.addEventListener("click", () => choose(tab));
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
