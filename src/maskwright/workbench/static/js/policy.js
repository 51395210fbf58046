import { call, go, project, show, soil, toast } from "./app.js";

const form = document.getElementById("policy");
const text = document.getElementById("text");
text.addEventListener("input", soil);
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await call("PUT", `/api/projects/${project}/policy`, { text: text.value });
    go("reload", "Saved.");
  } catch (error) {
    show(form.querySelector(".problem"), error);
  }
});
document.getElementById("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(document.getElementById("command").textContent);
  toast("Copied.");
});
document.getElementById("download").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text.value], { type: "application/yaml" }));
  link.download = "policy.yaml";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
