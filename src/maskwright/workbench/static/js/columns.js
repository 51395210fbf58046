import { call, go, project, show, soil } from "./app.js";

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
    unit: document.getElementById("unit").value || null,
  };
  const problem = form.querySelector(":scope > .problem");
  try {
    const answer = await call("PUT", `/api/projects/${project}/roles`, body);
    go(event.submitter?.dataset.next || "reload", ["Saved.", ...answer.notes].join(" "));
  } catch (error) {
    show(problem, error);
  }
});
