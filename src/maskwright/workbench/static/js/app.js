// What all pages share: calls to the API, messages, forms that send JSON, and the warning about unsaved changes.

export const project = document.body.dataset.project;

/** Call the API; throws an Error with the sentence that the server gave, and `at` where it belongs. */
export async function call(method, url, body, headers = {}) {
  const revision = document.body.dataset.revision;
  const guarded = method === "PUT" && revision ? { "If-Match": revision } : {};
  const json = body !== undefined && !(body instanceof Blob);
  let answer;
  try {
    answer = await fetch(url, {
      method,
      headers: {
        "X-CSRF-Token": document.querySelector('meta[name="csrf"]').content,
        ...(json ? { "Content-Type": "application/json" } : {}),
        ...guarded,
        ...headers,
      },
      body: json ? JSON.stringify(body) : body,
    });
  } catch {
    throw new Error("the workbench does not answer; is `maskwright ui` still running?");
  }
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const error = new Error(found.error || `the server answered ${answer.status}`);
    Object.assign(error, { status: answer.status, at: found.at });
    throw error;
  }
  if (found.revision && guarded["If-Match"]) document.body.dataset.revision = found.revision;
  return found;
}

export function toast(text, bad = false) {
  const box = document.createElement("div");
  box.className = bad ? "toast bad" : "toast";
  box.textContent = text;
  document.getElementById("toasts").append(box);
  setTimeout(() => box.remove(), bad ? 9000 : 5000);
}

/** Show an error in an element, or hide it (null). */
export function show(element, error) {
  element.hidden = !error;
  element.textContent = error ? error.message : "";
}

/** A message that survives the change to another page. */
export function go(url, message) {
  if (message) sessionStorage.setItem("message", message);
  clean();
  if (url === "reload") location.reload();
  else location.assign(url);
}

let dirty = false;
export function soil() {
  dirty = true;
  const mark = document.getElementById("dirty");
  if (mark) mark.hidden = false;
}
export function clean() {
  dirty = false;
  const mark = document.getElementById("dirty");
  if (mark) mark.hidden = true;
}
window.addEventListener("beforeunload", (event) => {
  if (dirty) event.preventDefault();
});

/** How far something is, and about how long it may still take at this pace. */
export function progressText(part, seconds, text) {
  const left = part > 0.02 && seconds > 0 ? (seconds * (1 - part)) / part : 0;
  const rest = left < 2 ? "" : left < 90 ? `, about ${Math.round(left)} s left` : `, about ${Math.round(left / 60)} min left`;
  return `${Math.round(part * 100)} %${text ? ` (${text})` : ""}${rest}`;
}

export function data(id) {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent) : null;
}

/** An element with children; text is never taken for HTML. */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.filter((c) => c !== null && c !== undefined));
  return made;
}

// -- forms that send themselves: <form data-send="POST /api/…" data-then="/where"> --------------------------------

function fields(form) {
  const body = {};
  for (const input of form.elements) {
    if (!input.name) continue;
    if (input.dataset.json !== undefined) body[input.name] = JSON.parse(input.value);
    else if (input.dataset.boolean !== undefined) body[input.name] = input.value === "true";
    else if (input.dataset.number !== undefined) body[input.name] = input.value.trim() ? Number(input.value) : null;
    else body[input.name] = input.value;
  }
  return body;
}

for (const form of document.querySelectorAll("form[data-send]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.dataset.confirm && !window.confirm(form.dataset.confirm)) return;
    const [method, url] = form.dataset.send.split(" ");
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      await call(method, url, fields(form));
      go(form.dataset.then);
    } catch (error) {
      show(form.querySelector(".problem"), error);
      button.disabled = false;
    }
  });
}

document.getElementById("log-out")?.addEventListener("click", async () => {
  try {
    await call("DELETE", "/api/session");
    location.replace("/");
  } catch (error) {
    toast(error.message, true);
  }
});

const message = sessionStorage.getItem("message");
if (message) {
  sessionStorage.removeItem("message");
  toast(message);
}
