import { call, go, project, show, soil } from "./app.js";

const form = document.getElementById("method");
const settings = [...form.querySelectorAll("fieldset[data-method]")];

function chosen() {
  return form.querySelector('input[name="name"]:checked').value;
}

form.addEventListener("change", (event) => {
  soil();
  if (event.target.name === "name")
    for (const fieldset of settings) {
      fieldset.hidden = fieldset.dataset.method !== chosen();
      fieldset.disabled = fieldset.hidden;
    }
  if (event.target.name === "recoding") document.getElementById("exactness").hidden = event.target.value === "generalise";
});

function place(error) {
  const fieldset = settings.find((s) => !s.hidden);
  const field = error.at?.section === "method" && fieldset.querySelector(`[data-field="${error.at.field}"]`);
  if (!field) return show(document.getElementById("problem"), error);
  show(field.querySelector(".problem"), { message: error.message.replace(/^method\.[\w-]+: /, "") });
  field.querySelector("input, select").setAttribute("aria-invalid", "true");
  field.querySelector("input, select").focus();
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  for (const problem of form.querySelectorAll(".problem")) show(problem, null);
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  const method = { name: chosen() };
  for (const input of settings.find((s) => !s.hidden).querySelectorAll("[name]")) method[input.name] = input.value;
  const name = form.querySelector('input[name="recoding"]:checked').value;
  const quasi = document.getElementById("quasi_identifiers").value;
  const recoding = name === "generalise" ? name : { name, quasi_identifiers: quasi };
  try {
    await call("PUT", `/api/projects/${project}/method`, { method, recoding });
    go(event.submitter?.dataset.next || "reload", "Saved.");
  } catch (error) {
    place(error);
  }
});

const compare = document.getElementById("compare-form");
compare.addEventListener("submit", async (event) => {
  event.preventDefault();
  const names = [...compare.querySelectorAll(":checked")].map((box) => box.value);
  try {
    if (!names.length) throw new Error("choose at least one method");
    const methods = names.map((name) => {
      const fieldset = settings.find((s) => s.dataset.method === name);
      const method = { name };
      for (const input of fieldset.querySelectorAll("[name]")) method[input.name] = input.value;
      return method;
    });
    await call("POST", `/api/projects/${project}/runs`, { kind: "compare", methods });
    go(`/p/${project}/explore`);
  } catch (error) {
    show(compare.querySelector(".problem"), error);
  }
});
