// Live progress of a run: asks the server a few times a second. Nothing is lost when the page is closed.
import { call, el, go, progressText, show } from "./app.js";

const TITLES = { running: "Running", done: "Done", failed: "Refused", cancelled: "Cancelled", interrupted: "Interrupted" };
const WORDS = {
  interrupted: "The run ended without a result: the machine was shut down, or the process was killed. Nothing was published.",
};

class Watch {
  constructor(box) {
    this.box = box;
    this.url = box.dataset.job;
    this.seen = 0;
    this.events = box.querySelector("[data-events]");
    this.bar = box.querySelector("progress");
    this.cancel = box.querySelector("[data-cancel]");
    this.begun = box.dataset.state === "running";
    this.cancel.addEventListener("click", () => this.stop());
  }

  async stop() {
    this.cancel.disabled = true;
    this.cancel.textContent = "Stopping …";
    try {
      await call("POST", `${this.url}/cancel`);
    } catch (error) {
      show(this.box.querySelector("[data-error]"), error);
    }
  }

  add(event) {
    const last = this.events.querySelector("li.now");
    if (event.kind === "step" || event.kind === "done") {
      if (last) {
        last.classList.remove("now");
        last.append(el("time", {}, `${(event.at - this.at).toFixed(1)} s`));
      }
      this.at = event.at;
      if (event.kind === "step") this.events.append(el("li", { class: "now" }, el("span", {}, event.text)));
      this.bar.removeAttribute("value");
      this.share = null;
    } else if (event.kind === "note") {
      this.events.append(el("li", { class: "note-line" }, event.text));
    } else if (event.kind === "progress" && event.share !== null) {
      this.bar.value = event.share;
      this.bar.textContent = event.text;
      this.share = { part: event.share, text: event.text, at: event.at };
    }
  }

  /** How far the step is, and how long it may still take at this pace. */
  told() {
    if (!this.share) return "";
    const { part, text, at } = this.share;
    return progressText(part, at - this.at, text);
  }

  async look() {
    const job = await call("GET", `${this.url}?since=${this.seen}`);
    this.seen += job.events.length;
    for (const event of job.events) this.add(event);
    this.box.dataset.state = job.state;
    this.box.querySelector("[data-title]").textContent =
      job.state === "running" && job.stopping ? "Stopping" : TITLES[job.state];
    this.box.querySelector("[data-time]").textContent = job.seconds < 1e6 ? `${job.seconds.toFixed(1)} s` : "";
    const how = this.box.querySelector("[data-share]");
    how.textContent = job.state === "running" ? this.told() : "";
    if (job.state === "running") return true;
    this.bar.hidden = this.cancel.hidden = true;
    const now = this.events.querySelector("li.now");
    if (now) now.classList.replace("now", job.state === "done" ? "then" : "halted");
    if (job.state !== "done")
      show(this.box.querySelector("[data-error]"), { message: job.error || WORDS[job.state] || "" });
    if (this.begun) go(job.state === "done" ? this.box.dataset.next : "reload");
    return false;
  }

  async follow() {
    let wait = 250;
    for (;;) {
      try {
        if (!(await this.look())) return;
        wait = Math.min(1000, wait * 1.15);
        show(this.box.querySelector("[data-error]"), null);
      } catch (error) {
        show(this.box.querySelector("[data-error]"), error);
        wait = 2000;
      }
      await new Promise((done) => setTimeout(done, wait));
    }
  }
}

for (const box of document.querySelectorAll("[data-job]")) new Watch(box).follow();
