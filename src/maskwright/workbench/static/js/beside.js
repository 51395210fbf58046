// A release beside its table: two columns against each other, and classes with who is in them.
import { call, data, el, show } from "./app.js";
import { axisOfNames, draw } from "./charts.js";

const $ = (id) => document.getElementById(id);
const box = $("beside");
const tables = data("tables-data") || [];
const wanted = { having: {}, order: null, descending: false, first: 0 };
const whole = (n) => Math.round(n).toLocaleString("en");
const table = () => Number($("table").value);

async function ask(what, body) {
  try {
    const found = await call("POST", `${box.dataset.url}/${what}`, { table: table(), ...body });
    show($("problem"), null);
    return found;
  } catch (error) {
    show($("problem"), error);
    return null;
  }
}

// -- two columns -------------------------------------------------------------------------------------------------

/** Rows of a table as numbers; the darker a cell, the larger its share of its line. */
function crossed(side, down, across) {
  const head = el("tr", {}, el("th", { scope: "col" }, `${down} ╲ ${across}`), ...side.across.map((t) => el("th", { scope: "col", class: "number" }, t)), el("th", { scope: "col", class: "number" }, "all"));
  const body = side.down.map((text, i) => {
    const all = side.counts[i].reduce((a, b) => a + b, 0);
    const cells = side.counts[i].map((n) => {
      const share = all ? n / all : 0;
      const made = el("td", { class: "number", title: `${(share * 100).toFixed(1)} % of ${text}` }, whole(n));
      made.style.background = `color-mix(in srgb, var(--accent) ${Math.round(share * 55)}%, transparent)`;
      return made;
    });
    return el("tr", {}, el("th", { scope: "row" }, text), ...cells, el("td", { class: "number" }, whole(all)));
  });
  return el("table", { class: "rows crossed" }, el("thead", {}, head), el("tbody", {}, ...body));
}

function spread(element, name, before, after) {
  const shares = (when, texts, sums) => {
    const all = sums.reduce((a, b) => a + b, 0) || 1;
    return texts.map((label, order) => ({ when, label, order, share: sums[order] / all }));
  };
  const values = [...shares("before", before.texts, before.sums), ...shares("after", after.texts, after.sums)];
  draw(element, (colour) => ({
    height: 190,
    data: { values },
    mark: { type: "bar", cornerRadiusEnd: 2 },
    encoding: {
      x: { field: "label", type: "nominal", sort: null, title: name, axis: axisOfNames(element, values.map((v) => v.label)) },
      xOffset: { field: "when", sort: ["before", "after"] },
      y: { field: "share", type: "quantitative", title: "share of rows", axis: { format: "%" } },
      color: { field: "when", sort: ["before", "after"], title: null, scale: { domain: ["before", "after"], range: [colour("before"), colour("after")] }, legend: { orient: "top" } },
      tooltip: [{ field: "when" }, { field: "label", title: name }, { field: "share", format: ".1%" }],
    },
  }));
}

async function two() {
  const [a, b] = [$("one").value, $("other").value];
  const found = await ask("crossed", { columns: [a, b] });
  if (!found) return;
  $("note").textContent = found.note;
  for (const when of ["before", "after"]) $(when).replaceChildren(crossed(found[when], a, b));
  const down = (side) => ({ texts: side.down, sums: side.counts.map((row) => row.reduce((x, y) => x + y, 0)) });
  const across = (side) => ({ texts: side.across, sums: side.across.map((_, j) => side.counts.reduce((x, row) => x + row[j], 0)) });
  spread($("spread-one"), a, down(found.before), down(found.after));
  spread($("spread-other"), b, across(found.before), across(found.after));
}

// -- classes -----------------------------------------------------------------------------------------------------

async function classes() {
  const found = await ask("classes", wanted);
  if (!found) return;
  const values = found.classes.length ? Object.keys(found.classes[0].commonest) : [];
  const mark = (name) => (wanted.order === name ? (wanted.descending ? " ↓" : " ↑") : "");
  const sorter = (name, text) => el("button", { type: "button", class: "link", onclick: () => {
    wanted.descending = wanted.order === name && !wanted.descending;
    wanted.order = name;
    wanted.first = 0;
    classes();
  } }, text + mark(name));
  const head = el("tr", {}, el("th", { scope: "col", class: "number" }, sorter(null, "rows")), ...found.columns.map((c) => el("th", { scope: "col" }, sorter(c, c))), ...values.map((v) => el("th", { scope: "col" }, `commonest ${v}`)));
  const body = found.classes.map((c) => {
    const choose = () => members(c.number, row);
    const row = el("tr", { tabindex: "0", "aria-selected": "false", onclick: choose, onkeydown: (e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), choose()) },
      el("td", { class: "number" }, whole(c.rows)), ...c.labels.map((l) => el("td", {}, l)),
      ...values.map((v) => el("td", {}, c.commonest[v] ? `${c.commonest[v].value} (${Math.round(c.commonest[v].share * 100)} %)` : "")));
    return row;
  });
  $("classes").replaceChildren(el("thead", {}, head), el("tbody", {}, ...body));
  const last = found.first + found.classes.length;
  $("where").textContent = found.number ? `${whole(found.first + 1)} to ${whole(last)} of ${whole(found.number)} classes` : "no class is like that";
  $("back").disabled = found.first === 0;
  $("on").disabled = last >= found.number;
  $("left-out").hidden = !found.suppressed;
}

async function members(number, row) {
  for (const other of $("classes").querySelectorAll("tr[aria-selected]")) other.setAttribute("aria-selected", String(other === row));
  const found = await ask("members", { number });
  if (!found) return;
  const title = number < 0 ? `${whole(found.rows)} rows that were left out` : `${whole(found.rows)} rows of this class, as the table has them`;
  const head = el("tr", {}, el("th", { scope: "col", class: "number" }, "rows"), ...found.columns.map((c) => el("th", { scope: "col" }, c)));
  const body = found.people.map((p) => el("tr", {}, el("td", { class: "number" }, String(p.at(-1))), ...p.slice(0, -1).map((text) => el("td", {}, String(text)))));
  $("members").replaceChildren(
    el("h3", {}, title),
    el("div", { class: "scroll tall", tabindex: "0" }, el("table", { class: "rows" }, el("thead", {}, head), el("tbody", {}, ...body))),
    el("p", { class: "soft" }, found.more ? `and ${whole(found.more)} more combinations` : ""),
  );
}

function begin() {
  const { columns } = tables[table()];
  for (const id of ["one", "other", "by"]) $(id).replaceChildren(...columns.map((c) => el("option", {}, c)));
  $("other").selectedIndex = columns.length - 1;
  Object.assign(wanted, { having: {}, order: null, descending: false, first: 0 });
  two();
  classes();
}

if (tables.length) {
  for (const id of ["one", "other"]) $(id).addEventListener("change", two);
  $("table").addEventListener("change", begin);
  $("filter").addEventListener("submit", (event) => {
    event.preventDefault();
    wanted.having = $("text").value.trim() ? { [$("by").value]: $("text").value.trim() } : {};
    wanted.first = 0;
    classes();
  });
  $("back").addEventListener("click", () => ((wanted.first = Math.max(0, wanted.first - 50)), classes()));
  $("on").addEventListener("click", () => ((wanted.first += 50), classes()));
  $("left-out").addEventListener("click", () => members(-1, null));
  begin();
}
