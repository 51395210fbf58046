import { call, data, el, go, project, toast } from "./app.js";
import { draw } from "./charts.js";

/** "1/5", 0.2 or 3 as a number. */
function value(x) {
  if (typeof x !== "string") return x;
  const [top, bottom] = x.split("/").map(Number);
  return bottom ? top / bottom : top;
}
const short = (x) => (Math.abs(x) >= 1000 ? Math.round(x).toLocaleString("en") : Number(x.toPrecision(4)).toString());

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

  const chart = () =>
    draw(
      document.getElementById("space-chart"),
      (colour) => ({
        height: 320,
        data: { values: points.map((p) => ({ i: p.i, x: p.metrics[x.value], y: p.risks[y.value], passes: p.passes, suppressed: p.choice.suppressed, chosen: p.i === chosen })) },
        mark: { type: "point", filled: true, cursor: "pointer" },
        encoding: {
          x: { field: "x", type: "quantitative", title: `${x.value} (less is better)`, scale: { zero: false, nice: false, padding: 14 } },
          y: { field: "y", type: "quantitative", title: `${y.value}`, scale: { zero: false, nice: false, padding: 14 } },
          color: { field: "passes", title: null, scale: { domain: ["can be published", "a gate refuses it"], range: [colour("after"), colour("bad")] }, legend: { orient: "top" } },
          shape: { field: "passes", title: null, scale: { domain: ["can be published", "a gate refuses it"], range: ["circle", "cross"] } },
          size: { condition: { test: "datum.chosen", value: 320 }, value: 90 },
          opacity: { condition: { test: "datum.chosen", value: 1 }, value: 0.75 },
          tooltip: [{ field: "x", title: x.value, format: ".4~g" }, { field: "y", title: y.value, format: ".4~g" }, { field: "suppressed", title: "rows suppressed", format: "," }, { field: "passes", title: "gates" }],
        },
      }),
      (datum) => datum.i !== undefined && pick(datum.i),
    );

  const table = document.getElementById("choices");
  const head = ["", "levels", "information loss", "suppressed", "classes", "risk"];
  const body = points.map((p) =>
    el(
      "tr",
      { tabindex: "0", "aria-selected": "false", onclick: () => pick(p.i), onkeydown: (e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), pick(p.i)) },
      el("td", {}, el("span", { class: p.failing.length ? "tag bad" : "tag good" }, p.failing.length ? "refused" : "possible")),
      el("td", {}, ...Object.entries(p.choice.levels).map(([name, level]) => el("span", { class: "tag" }, `${name}: ${level}`))),
      el("td", { class: "number" }, short(p.metrics["information-loss"])),
      el("td", { class: "number" }, p.choice.suppressed.toLocaleString("en")),
      el("td", { class: "number" }, p.choice.classes.toLocaleString("en")),
      el("td", { class: "number risk" }),
    ),
  );
  table.append(el("thead", {}, el("tr", {}, ...head.map((h, i) => el("th", { scope: "col", class: i > 1 ? "number" : "" }, h)))), el("tbody", {}, ...body));

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
        ...Object.entries(p.risks).flatMap(([name, r]) => line(name, short(r))),
        ...Object.entries(p.metrics).filter(([name]) => name !== "suppressed rows").flatMap(([name, m]) => line(name, short(m)))),
      ...p.failing.map((v) => el("p", { class: "note" }, `${v.model}${v.attribute ? ` of ${v.attribute}` : ""} would fail: worst ${v.quantity} ${v.worst}, asked ${v.asked}`)),
      el("div", { class: "actions" }, use),
    );
  }

  const again = () => {
    body.forEach((row, r) => (row.querySelector(".risk").textContent = short(points[r].risks[y.value])));
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
      "worst belief of any attack": Math.max(...Object.values(r.beliefs).map(value)),
      ...Object.fromEntries(Object.entries(r.beliefs).map(([attack, b]) => [`worst belief (${attack})`, value(b)])),
    },
  }));
  const [x, y] = [document.getElementById("cx"), document.getElementById("cy")];
  offer(x, y, points);
  const chart = () =>
    draw(document.getElementById("compare-chart"), () => ({
      height: 260,
      data: { values: points.map((p) => ({ method: p.method, x: p.metrics[x.value], y: p.risks[y.value] })) },
      encoding: {
        x: { field: "x", type: "quantitative", title: `${x.value} (less is better)`, scale: { padding: 60, zero: false } },
        y: { field: "y", type: "quantitative", title: y.value, scale: { zero: true } },
      },
      layer: [
        { mark: { type: "point", filled: true, size: 120 }, encoding: { tooltip: [{ field: "method" }, { field: "x", title: x.value, format: ".4~g" }, { field: "y", title: y.value, format: ".4~g" }] } },
        { mark: { type: "text", align: "center", dy: -12, fontSize: 12 }, encoding: { text: { field: "method" } } },
      ],
    }));
  x.addEventListener("change", chart);
  y.addEventListener("change", chart);
  chart();
}
