// The table: rows are asked for page by page, with conditions and an order; small pictures of the columns come after.
import { call, el, project, show } from "./app.js";

const $ = (id) => document.getElementById(id);
const url = `/api/projects/${project}`;
const wanted = { having: [], order: null, descending: false, first: 0 };
const HOW = { holds: "contains", is: "is", least: "≥", most: "≤", missing: "is missing" };

async function rows() {
  let found;
  try {
    found = await call("POST", `${url}/rows`, wanted);
    show($("problem"), null);
  } catch (error) {
    return show($("problem"), error);
  }
  const hidden = new Set(found.hidden);
  const cell = (value, i) => {
    if (hidden.has(found.columns[i])) return el("td", {}, el("span", { class: "soft" }, "hidden"));
    return value === null ? el("td", {}, el("em", {}, "missing")) : el("td", {}, value);
  };
  $("rows").tBodies[0].replaceChildren(...found.rows.map((row) => el("tr", {}, ...row.map(cell))));
  const last = found.first + found.rows.length;
  $("where").textContent = found.number ? `${(found.first + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${found.number.toLocaleString("en")} rows` : "no row is like that";
  $("back").disabled = found.first === 0;
  $("on").disabled = last >= found.number;
  $("back").onclick = () => turn(-found.rows.length || -50);
  $("on").onclick = () => turn(found.rows.length);
  return undefined;
}

function turn(by) {
  wanted.first = Math.max(0, by < 0 ? wanted.first - 50 : wanted.first + by);
  rows();
}

function conditions() {
  $("chosen").replaceChildren(
    ...wanted.having.map((h, i) =>
      el("button", { type: "button", "aria-label": `Remove: ${h.column} ${HOW[h.how]} ${h.text}`, onclick: () => {
        wanted.having.splice(i, 1);
        again();
      } }, `${h.column} ${HOW[h.how]} ${h.text} ×`),
    ),
  );
}

function again() {
  wanted.first = 0;
  conditions();
  rows();
}

$("filter").addEventListener("submit", (event) => {
  event.preventDefault();
  wanted.having.push({ column: $("by").value, how: $("how").value, text: $("text").value.trim() });
  $("text").value = "";
  again();
});
for (const button of document.querySelectorAll("[data-order]"))
  button.addEventListener("click", () => {
    const name = button.dataset.order;
    wanted.descending = wanted.order === name && !wanted.descending;
    wanted.order = name;
    for (const other of document.querySelectorAll("[data-order]")) {
      const mine = other === button;
      other.querySelector("span").textContent = mine ? (wanted.descending ? " ↓" : " ↑") : "";
      other.closest("th").setAttribute("aria-sort", mine ? (wanted.descending ? "descending" : "ascending") : "none");
    }
    again();
  });

const SVG = "http://www.w3.org/2000/svg";
function svg(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A bar for each value or range; what it stands for is told when it is pointed at. */
function picture(found) {
  const most = Math.max(1, ...found.bars.map(([, n]) => n));
  const wide = 120 / Math.max(1, found.bars.length);
  const bars = found.bars.map(([label, n], i) => {
    const high = Math.max(1, (28 * n) / most);
    const text = document.createElementNS(SVG, "title");
    text.textContent = `${label}: ${n.toLocaleString("en")} rows`;
    return svg("rect", { class: "fill", x: i * wide + 0.6, y: 30 - high, width: Math.max(1, wide - 1.2), height: high }, text);
  });
  const said = `${found.name}: ${found.bars.map(([label, n]) => `${label} ${n}`).join(", ")}`;
  return svg("svg", { viewBox: "0 0 120 30", role: "img", "aria-label": said }, ...bars);
}

async function spreads() {
  for (const box of document.querySelectorAll(".spread")) {
    try {
      const found = await call("POST", `${url}/columns/${box.dataset.number}/profile`);
      box.append(picture(found), el("div", { class: "about" }, found.examples.length ? `e.g. ${found.examples.join(", ")}` : ""));
    } catch (error) {
      box.append(el("div", { class: "about" }, error.message));
    }
  }
  document.body.dataset.spreads = "drawn";
}

rows().then(spreads);
