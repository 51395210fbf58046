import { call, go, project, show, soil } from "./app.js";

// whose rows they are: a name, or a name with settings
function unit() {
  const column = document.getElementById("unit").value;
  if (!column || column === "none") return column || null;
  const settings = { column };
  const rows = document.getElementById("unit-rows").valueAsNumber;
  const publish = document.getElementById("unit-publish").value;
  if (rows) settings.rows = rows;
  const own = [...document.getElementById("unit-own").selectedOptions].map((option) => option.value);
  if (own.length) settings.own = own;
  const events = document.getElementById("unit-events").valueAsNumber || 1;
  if (publish) settings.publish = publish;
  if (events > 1 || publish) settings.events = events;
  return settings;
}

const form = document.getElementById("roles");
form.addEventListener("change", (event) => {
  soil();
  if (event.target.name === "role") event.target.closest("tr").dataset.role = event.target.value;
});
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const columns = {};
  for (const select of form.querySelectorAll("select[name=role]")) columns[select.dataset.column] = select.value;
  const body = {
    columns,
    missing: document.getElementById("missing").value.split(/\s+/).filter(Boolean),
    rows: document.getElementById("missing-rows").value,
    unit: unit(),
    keep: Object.fromEntries([...form.querySelectorAll("[data-keep]")].map((i) => [i.dataset.keep, i.value])),
    sample: Object.fromEntries([["size", "population"], ["weight", "weight"], ["household", "household"]].map(([key, id]) => [key, document.getElementById(id).value])),
    multivalued: Object.fromEntries([...form.querySelectorAll("[data-separator]")].map((i) => [i.dataset.separator, i.value])),
    prepare: Object.fromEntries([...form.querySelectorAll("[data-prepare]")].map((i) => [i.dataset.prepare, i.checked])),
  };
  const problem = form.querySelector(":scope > .problem");
  try {
    const answer = await call("PUT", `/api/projects/${project}/roles`, body);
    go(event.submitter?.dataset.next || "reload", ["Saved.", ...answer.notes].join(" "));
  } catch (error) {
    show(problem, error);
  }
});
