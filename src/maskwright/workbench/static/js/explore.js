import { call, data, el, go, project, toast } from "./app.js";
import { draw } from "./charts.js";

/** "1/5", 0.2 or 3 as a number. */
function value(x) {
  if (typeof x !== "string") return x;
  const [top, bottom] = x.split("/").map(Number);
  return bottom ? top / bottom : top;
}
const share = (x) => (x > 0 && x < 0.001 ? "less than 0.1 %" : `${Number((100 * x).toFixed(1))} %`);
const short = (x) => (Math.abs(x) >= 1000 ? Math.round(x).toLocaleString("en") : Number(x.toPrecision(4)).toString());
// metrics that are shares; every risk is one
const percentages = data("percentages") ?? [];
const shares = (name, risk) => risk || percentages.includes(name);
/** An axis of a chart, and a line of what appears over its points; shares in percent. */
const axis = (name, risk, scale) => ({ type: "quantitative", title: `${name} (less is better)`, scale, ...(shares(name, risk) && { axis: { format: "~%" } }) });
const tip = (field, name, risk) => ({ field, title: name, format: shares(name, risk) ? ".1~%" : ".4~g" });

function risks(beliefs) {
  const found = {};
  for (const b of beliefs) {
    if (b.attack === "linkage") {
      found["average chance of being matched"] = value(b.measures.after.average);
      found["highest chance of being matched"] = value(b.measures.after.highest);
    } else found[`worst belief (${b.attack})`] = value(b.worst.after);
  }
  return found;
}

/** Choices for the axes: every metric and risk that some point has. */
function offer(x, y, points) {
  const names = (key) => [...new Set(points.flatMap((p) => Object.keys(p[key])))];
  x.append(...names("metrics").map((name) => el("option", { value: name }, name)));
  y.append(...names("risks").map((name) => el("option", { value: name }, name)));
  if (names("metrics").includes("information-loss")) x.value = "information-loss";
  const belief = names("risks").find((name) => name.startsWith("worst belief"));
  if (belief) y.value = belief;
}

const given = data("choices-data");
if (given?.choices.length) solutionSpace(given);
const compared = data("compare-data");
if (compared) methods(compared.filter((p) => p.status === "holds"));

function solutionSpace({ choices, rows }) {
  const points = choices.map((c, i) => {
    const metrics = Object.fromEntries(Object.entries(c.metrics).map(([k, v]) => [k, value(v)]));
    const failing = c.verdicts.filter((v) => !v.ok);
    return { i, choice: c, metrics: { ...metrics, "suppressed rows": c.suppressed }, risks: risks(c.beliefs), failing, passes: failing.length ? "a gate refuses it" : "can be published" };
  });
  const x = document.getElementById("x");
  const y = document.getElementById("y");
  offer(x, y, points);
  let chosen = null;
  const asked = [];
  /** Whether a choice keeps what was asked for. */
  const wanted = (p) =>
    asked.every(({ name, select }) => select.value === "" || (select.value === "kept" ? p.choice.levels[name] !== "any" : p.choice.levels[name] === select.value.slice(1)));
  for (const name of Object.keys(points[0].choice.levels)) {
    const levels = [...new Set(points.map((p) => p.choice.levels[name]))];
    const select = el("select", { "aria-label": `Level of ${name}`, onchange: () => filter() }, el("option", { value: "" }, "any level"), el("option", { value: "kept" }, "kept, somehow"), ...levels.map((l) => el("option", { value: `=${l}` }, l === "any" ? "not kept" : l)));
    asked.push({ name, select });
    document.getElementById("only").append(el("div", { class: "field" }, el("span", {}, name), select));
  }

  const chart = () =>
    draw(
      document.getElementById("space-chart"),
      (colour) => ({
        height: 320,
        data: { values: points.filter(wanted).map((p) => ({ i: p.i, x: p.metrics[x.value], y: p.risks[y.value], passes: p.passes, suppressed: p.choice.suppressed, chosen: p.i === chosen })) },
        mark: { type: "point", filled: true, cursor: "pointer" },
        encoding: {
          x: { field: "x", ...axis(x.value, false, { zero: false, nice: false, padding: 14 }) },
          y: { field: "y", ...axis(y.value, true, { zero: false, nice: false, padding: 14 }) },
          color: { field: "passes", title: null, scale: { domain: ["can be published", "a gate refuses it"], range: [colour("after"), colour("bad")] }, legend: { orient: "top" } },
          shape: { field: "passes", title: null, scale: { domain: ["can be published", "a gate refuses it"], range: ["circle", "cross"] } },
          size: { condition: { test: "datum.chosen", value: 320 }, value: 90 },
          opacity: { condition: { test: "datum.chosen", value: 1 }, value: 0.75 },
          tooltip: [tip("x", x.value, false), tip("y", y.value, true), { field: "suppressed", title: "rows suppressed", format: "," }, { field: "passes", title: "gates" }],
        },
      }),
      (datum) => datum.i !== undefined && pick(datum.i),
    );

  const table = document.getElementById("choices");
  // what each column of the table is sorted by
  const head = [
    ["", (p) => p.failing.length],
    ["levels", (p) => Object.values(p.choice.levels).filter((l) => l === "any").length],
    ["information loss", (p) => p.metrics["information-loss"]],
    ["suppressed", (p) => p.choice.suppressed],
    ["classes", (p) => p.choice.classes],
    ["risk", (p) => p.risks[y.value]],
  ];
  const body = points.map((p) =>
    el(
      "tr",
      { tabindex: "0", "aria-selected": "false", onclick: () => pick(p.i), onkeydown: (e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), pick(p.i)) },
      el("td", {}, el("span", { class: p.failing.length ? "tag bad" : "tag good" }, p.failing.length ? "refused" : "possible")),
      el("td", {}, ...Object.entries(p.choice.levels).map(([name, level]) => el("span", { class: "tag" }, `${name}: ${level}`))),
      el("td", { class: "number" }, share(p.metrics["information-loss"])),
      el("td", { class: "number" }, p.choice.suppressed.toLocaleString("en")),
      el("td", { class: "number" }, p.choice.classes.toLocaleString("en")),
      el("td", { class: "number risk" }),
    ),
  );
  const headings = head.map(([text, by], i) =>
    el("th", { scope: "col", class: i > 1 ? "number" : "", "aria-sort": "none" }, el("button", { type: "button", class: "link", onclick: () => sort(i, by) }, text || "verdict")),
  );
  table.append(el("thead", {}, el("tr", {}, ...headings)), el("tbody", {}, ...body));

  let sorted = { i: 2, up: true };
  function sort(i, by) {
    sorted = { i, up: sorted.i === i ? !sorted.up : true };
    headings.forEach((h, j) => h.setAttribute("aria-sort", j === i ? (sorted.up ? "ascending" : "descending") : "none"));
    const order = points.map((p) => p.i).sort((a, b) => (by(points[a]) - by(points[b])) * (sorted.up ? 1 : -1) || a - b);
    table.tBodies[0].append(...order.map((k) => body[k]));
  }

  function filter() {
    const shown = points.filter(wanted);
    body.forEach((row, r) => (row.hidden = !wanted(points[r])));
    document.getElementById("shown").textContent = shown.length < points.length ? `${shown.length} of ${points.length} choices are like that.` : "";
    chart();
  }

  function pick(i) {
    chosen = i;
    body.forEach((row, r) => row.setAttribute("aria-selected", String(r === i)));
    chart();
    detail(points[i]);
  }

  function detail(p) {
    const c = p.choice;
    const use = el("button", { type: "button", ...(p.failing.length ? { disabled: "" } : {}) }, "Publish at these levels");
    use.addEventListener("click", async () => {
      try {
        await call("PUT", `/api/projects/${project}/levels`, { levels: c.levels });
        go(`/p/${project}/run`, "The levels are fixed in the policy. Make the release when you are ready.");
      } catch (error) {
        toast(error.message, true);
      }
    });
    const line = (name, text) => [el("dt", {}, name), el("dd", {}, text)];
    document.getElementById("detail").replaceChildren(
      el("h3", {}, `Choice ${p.i + 1}`),
      el("dl", { class: "summary" },
        ...Object.entries(c.levels).flatMap(([name, level]) => line(name, level)),
        ...line("suppressed", `${c.suppressed.toLocaleString("en")} of ${rows.toLocaleString("en")} rows`),
        ...line("classes", c.classes.toLocaleString("en")),
        ...Object.entries(p.risks).flatMap(([name, r]) => line(name, share(r))),
        ...Object.entries(p.metrics).filter(([name]) => name !== "suppressed rows").flatMap(([name, m]) => line(name, shares(name) ? share(m) : short(m)))),
      ...p.failing.map((v) => el("p", { class: "note" }, `${v.model}${v.attribute ? ` of ${v.attribute}` : ""} would fail: worst ${v.quantity} ${v.worst}, asked ${v.asked}`)),
      el("div", { class: "actions" }, use),
    );
  }

  const again = () => {
    body.forEach((row, r) => (row.querySelector(".risk").textContent = share(points[r].risks[y.value])));
    chart();
  };
  x.addEventListener("change", again);
  y.addEventListener("change", again);
  again();
}

function methods(results) {
  if (!results.length) return;
  const points = results.map((r) => ({
    method: r.name,
    metrics: Object.fromEntries(Object.entries(r.metrics).map(([k, v]) => [k, value(v)])),
    risks: {
      "worst belief of any attack": value(r.worst_belief),
      ...Object.fromEntries(Object.entries(r.beliefs).map(([attack, b]) => [`worst belief (${attack})`, value(b)])),
    },
  }));
  const [x, y] = [document.getElementById("cx"), document.getElementById("cy")];
  offer(x, y, points);
  const chart = () =>
    draw(document.getElementById("compare-chart"), () => ({
      height: 260,
      data: { values: points.map((p) => ({ method: p.method, x: p.metrics[x.value], y: p.risks[y.value] })) },
      mark: { type: "point", filled: true, size: 130 },
      encoding: {
        x: { field: "x", ...axis(x.value, false, { zero: true, nice: true }) },
        y: { field: "y", ...axis(y.value, true, { zero: true }) },
        // names beside points would lie on each other: shape and colour tell methods apart
        color: { field: "method", title: null, sort: null, legend: { orient: "top", columns: 3 } },
        shape: { field: "method", title: null, sort: null },
        tooltip: [{ field: "method" }, tip("x", x.value, false), tip("y", y.value, true)],
      },
    }));
  x.addEventListener("change", chart);
  y.addEventListener("change", chart);
  chart();
}
