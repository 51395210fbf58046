// Vega-Lite charts without eval: expressions are interpreted, because the content security policy forbids compiling them.
import { expressionInterpreter } from "../vendor/vega-interpreter.js";

const drawn = new Map();

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function config() {
  const ink = colour("ink");
  const soft = colour("soft");
  const line = colour("line");
  const font = "system-ui, sans-serif";
  return {
    background: null,
    font,
    view: { stroke: null },
    axis: { labelColor: soft, titleColor: ink, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: 600, labelFontSize: 12, titleFontSize: 12, titlePadding: 8, labelLimit: 220 },
    legend: { labelColor: ink, titleColor: ink, labelFontSize: 12, symbolStrokeWidth: 2 },
    bar: { color: colour("after") },
    point: { color: colour("after"), filled: true, size: 90 },
    text: { color: ink },
  };
}

/** How an axis writes its names: level where they fit, else slanted; some are left out only where they would touch. */
export function axisOfNames(element, names) {
  const all = [...new Set(names)];
  const room = Math.max(240, element.clientWidth - 90) / Math.max(1, all.length);
  const slanted = room < 96 && Math.max(...all.map((name) => name.length)) * 7 + 6 > room;
  return { labelAngle: slanted ? -40 : 0, labelLimit: slanted ? 90 : Math.min(240, room - 6), labelOverlap: slanted && room < 22 };
}

/** Draw a chart, and again when the theme changes. `onPick` gets the datum that is clicked on. */
export async function draw(element, make, onPick) {
  drawn.set(element, { make, onPick });
  const spec = make(colour);
  const width = Math.max(240, element.clientWidth - 20);
  const full = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width, autosize: { type: "fit-x", contains: "padding" }, config: config(), ...spec };
  const compiled = globalThis.vegaLite.compile(full).spec;
  const runtime = globalThis.vega.parse(compiled, null, { ast: true });
  const old = element.view;
  const view = new globalThis.vega.View(runtime, { expr: expressionInterpreter, renderer: "canvas", hover: true });
  element.replaceChildren();
  view.initialize(element);
  if (onPick) view.addEventListener("click", (_, item) => item?.datum && onPick(item.datum));
  await view.runAsync();
  old?.finalize();
  element.view = view;
  element.dataset.drawn = String(Number(element.dataset.drawn || 0) + 1);
  return view;
}

function again() {
  for (const [element, { make, onPick }] of drawn) if (element.isConnected) draw(element, make, onPick);
}
document.addEventListener("theme", again);
let timer;
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === width) return;
  width = window.innerWidth;
  clearTimeout(timer);
  timer = setTimeout(again, 150);
});
