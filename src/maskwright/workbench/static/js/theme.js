// Runs before the page is drawn, so that it does not flash in the other theme.
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const chosen = localStorage.getItem("theme");
    document.documentElement.dataset.theme = chosen || (dark.matches ? "dark" : "light");
    document.dispatchEvent(new Event("theme"));
  };
  apply();
  dark.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      const now = document.documentElement.dataset.theme;
      localStorage.setItem("theme", now === "dark" ? "light" : "dark");
      apply();
    });
  });
})();
