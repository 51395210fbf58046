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

const given = data("choices-data");
if (given?.choices.length) solutionSpace(given);
const compared = data("compare-data");
if (compared) methods(compared.filter((r) => r.release));

function solutionSpace({ choices, rows }) {
  const points = choices.map((c, i) => {
    const metrics = Object.fromEntries(Object.entries(c.metrics).map(([k, v]) => [k, value(v)]));
    const failing = c.verdicts.filter((v) => !v.ok);
    return { i, choice: c, metrics: { ...metrics, "suppressed rows": c.suppressed }, risks: risks(c.beliefs), failing, passes: failing.length ? "a gate refuses it" : "can be published" };
  });
  const x = document.getElementById("x");
  const y = document.getElementById("y");
  x.append(...Object.keys(points[0].metrics).map((name) => el("option", { value: name }, name)));
  if (points[0].metrics["information-loss"] !== undefined) x.value = "information-loss";
  y.append(...Object.keys(points[0].risks).map((name) => el("option", { value: name }, name)));
  const belief = [...y.options].find((o) => o.value.startsWith("worst belief"));
  if (belief) y.value = belief.value;
  let chosen = null;

  const chart = () =>
    draw(
      document.getElementById("space-chart"),
      (colour) => ({
        height: 320,
        data: { values: points.map((p) => ({ i: p.i, x: p.metrics[x.value], y: p.risks[y.value], passes: p.passes, suppressed: p.choice.suppressed, chosen: p.i === chosen })) },
        mark: { type: "point", filled: true, cursor: "pointer" },
        encoding: {
          x: { field: "x", type: "quantitative", title: `${x.value} (less is better)`, scale: { zero: false, nice: true } },
          y: { field: "y", type: "quantitative", title: `${y.value}`, scale: { zero: false, nice: true } },
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
      el("td", { class: "number" }, short(Object.values(p.risks).at(-1))),
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

  x.addEventListener("change", chart);
  y.addEventListener("change", chart);
  chart();
}

function methods(results) {
  if (!results.length) return;
  const values = results.map((r) => {
    const worst = r.release.beliefs[0];
    return { method: r.method.name, x: value(r.release.metrics["information-loss"]), y: worst ? value(worst.worst.after) : 0, attack: worst?.attack };
  });
  draw(document.getElementById("compare-chart"), () => ({
    height: 260,
    data: { values },
    encoding: {
      x: { field: "x", type: "quantitative", title: "information loss (less is better)", scale: { zero: true } },
      y: { field: "y", type: "quantitative", title: "worst belief of any attack", scale: { zero: true } },
    },
    layer: [
      { mark: { type: "point", filled: true, size: 120, tooltip: true }, encoding: { tooltip: [{ field: "method" }, { field: "x", title: "information loss", format: ".4~g" }, { field: "y", title: "worst belief", format: ".4~g" }, { field: "attack" }] } },
      { mark: { type: "text", align: "left", dx: 9, fontSize: 12 }, encoding: { text: { field: "method" } } },
    ],
  }));
}
