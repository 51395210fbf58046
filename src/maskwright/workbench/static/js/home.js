import { call, go, progressText, show } from "./app.js";

const problem = document.getElementById("open-problem");

async function opened(promise) {
  show(problem, null);
  try {
    go(`/p/${(await promise).id}`);
  } catch (error) {
    show(problem, error);
  }
}

const byPath = document.getElementById("by-path");
byPath.addEventListener("submit", (event) => {
  event.preventDefault();
  opened(call("POST", "/api/projects", { path: byPath.elements.path.value }));
});
for (const button of document.querySelectorAll("[data-path]"))
  button.addEventListener("click", () => opened(call("POST", "/api/projects", { path: button.dataset.path })));
document.getElementById("demo").addEventListener("click", () => opened(call("POST", "/api/projects", { demo: true })));

for (const button of document.querySelectorAll("[data-delete]"))
  button.addEventListener("click", async () => {
    const text = `Delete ${button.dataset.name}, with its uploaded table and all its releases?`;
    if (!window.confirm(text)) return;
    try {
      await call("DELETE", `/api/projects/${button.dataset.delete}`);
      go("reload");
    } catch (error) {
      show(problem, error);
    }
  });

// -- dropping a file ---------------------------------------------------------------------------------------------

const drop = document.getElementById("drop");
const input = document.getElementById("file");

/** With XMLHttpRequest, because fetch does not tell how much was sent. */
function upload(file) {
  const bar = drop.querySelector("progress");
  const told = drop.querySelector("[data-share]");
  const cancel = drop.querySelector("[data-cancel]");
  const begun = performance.now();
  bar.hidden = cancel.hidden = false;
  input.disabled = true;
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    cancel.onclick = () => request.abort();
    request.open("POST", "/api/uploads");
    request.setRequestHeader("X-CSRF-Token", document.querySelector('meta[name="csrf"]').content);
    request.setRequestHeader("X-File-Name", encodeURIComponent(file.name));
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", (event) => {
      bar.value = event.loaded / (event.total || 1);
      told.textContent = progressText(bar.value, (performance.now() - begun) / 1000, file.name);
    });
    let aborted = false;
    request.addEventListener("abort", () => (aborted = true));
    request.addEventListener("loadend", () => {
      bar.hidden = cancel.hidden = true;
      input.disabled = false;
      input.value = told.textContent = "";
      let answer = {};
      try {
        answer = JSON.parse(request.responseText);
      } catch {
        // the connection was cut while it was sent
      }
      if (request.status === 201) done(answer);
      else if (aborted) fail(new Error("cancelled; nothing of the file was kept"));
      else fail(new Error(answer.error || "the upload was refused: the file may be too large"));
    });
    request.send(file);
  });
}

input.addEventListener("change", () => input.files[0] && opened(upload(input.files[0])));
for (const kind of ["dragenter", "dragover"])
  drop.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
drop.addEventListener("dragleave", () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  const [file] = event.dataTransfer.files;
  if (file) opened(upload(file));
});
