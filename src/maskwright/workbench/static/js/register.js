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
