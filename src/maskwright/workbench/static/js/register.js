import { call, go, show } from "./app.js";

const form = document.getElementById("together");
form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const entries = [...form.querySelectorAll(":checked")].map((box) => box.value);
  try {
    if (entries.length < 2) throw new Error("choose at least two releases");
    await call("POST", "/api/register/attack", { entries });
    go("reload");
  } catch (error) {
    show(form.querySelector(".problem"), error);
  }
});

for (const box of document.querySelectorAll('[data-common][data-state="running"]')) {
  const look = async () => {
    const job = await call("GET", `/api/runs/${box.dataset.common}`);
    if (job.state !== "running") go("reload");
    else setTimeout(look, 500);
  };
  look();
}
