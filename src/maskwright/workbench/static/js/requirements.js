import { call, go, project, show, soil } from "./app.js";

const form = document.getElementById("requirements");
const list = document.getElementById("list");
let number = list.children.length;

/** The explanation with the numbers that are asked for: "at least k people" becomes "at least 5 people". */
function explain(card) {
  const sentence = card.querySelector("[data-sentence]");
  let text = sentence.dataset.sentence;
  for (const input of card.querySelectorAll("input[name]"))
    if (/^[a-z]+$/.test(input.name) && input.value.trim() && input.name.length <= 5)
      text = text.replace(new RegExp(`(?<![\\w-])${input.name}(?![\\w-])`, "g"), input.value.trim());
  sentence.textContent = text;
}

function adopt(card) {
  card.querySelector("[data-remove]").addEventListener("click", () => {
    card.remove();
    soil();
    document.getElementById("add").focus();
  });
  card.addEventListener("input", () => {
    explain(card);
    soil();
  });
  explain(card);
}

for (const card of list.children) adopt(card);

document.getElementById("add-button").addEventListener("click", () => {
  const name = document.getElementById("add").value;
  const card = document.querySelector(`template[data-template="${name}"]`).content.firstElementChild.cloneNode(true);
  number += 1;
  for (const attribute of ["id", "for", "aria-describedby"])
    for (const element of card.querySelectorAll(`[${attribute}]`))
      element.setAttribute(attribute, element.getAttribute(attribute).replace(/^new-/, `n${number}-`));
  list.append(card);
  adopt(card);
  soil();
  card.querySelector("input, select").focus();
});

function clear() {
  show(document.getElementById("problem"), null);
  for (const problem of list.querySelectorAll(".problem")) show(problem, null);
  for (const input of list.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}

/** Put the error at the field that it is about, if the server says which. */
function place(error) {
  const card = error.at?.section === "require" ? list.children[error.at.index] : null;
  const field = card?.querySelector(`[data-field="${error.at.field}"]`);
  if (!card) return show(document.getElementById("problem"), error);
  const text = { message: error.message.replace(/^require\[\d+\](\.[\w-]+)?: /, "") };
  show(field ? field.querySelector(".problem") : card.querySelector("[data-problem]"), text);
  const input = field?.querySelector("input, select");
  input?.setAttribute("aria-invalid", "true");
  (input || card.querySelector("input, select"))?.focus();
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  clear();
  const require = [...list.children].map((card) => {
    const item = { model: card.dataset.model };
    for (const input of card.querySelectorAll("[name]")) item[input.name] = input.value;
    return item;
  });
  try {
    await call("PUT", `/api/projects/${project}/requirements`, { require });
    go(event.submitter?.dataset.next || "reload", "Saved.");
  } catch (error) {
    place(error);
  }
});
