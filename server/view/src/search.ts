// The search field: completion by what the graph's names resolve to, usable by keyboard and screen readers.

import type { App } from "./app";
import { byId, el, plain, reasonOf, refill } from "./dom";
import type { Described } from "./facts";

const PAUSE_MS = 220;

export class Search {
  private readonly input = byId("search", HTMLInputElement);
  private readonly list = byId("found", HTMLDivElement);
  private found: Described[] = [];
  private summary = "";
  private active = -1;
  private timer = 0;
  private running: AbortController | null = null;

  constructor(private readonly app: () => App | null) {
    this.input.addEventListener("input", () => this.later());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => this.close());
  }

  focus(): void {
    this.input.focus();
    this.input.select();
  }

  private later(): void {
    clearTimeout(this.timer);
    this.running?.abort();
    if (!this.input.value.trim()) this.close();
    else this.timer = window.setTimeout(() => void this.look(), PAUSE_MS);
  }

  private async look(): Promise<void> {
    const app = this.app();
    const text = this.input.value.trim();
    if (app === null || !text) return;
    clearTimeout(this.timer);
    this.running?.abort();
    const running = new AbortController();
    this.running = running;
    try {
      const { found, summary, isNamed } = await app.search(text, running.signal);
      this.found = found;
      this.summary = summary;
      // What is only near is opened by those who choose it, not by Enter alone.
      this.active = found.length && isNamed ? 0 : -1;
    } catch (error) {
      if (running.signal.aborted) return;
      this.found = [];
      this.summary = reasonOf(error);
      this.active = -1;
    }
    this.render();
  }

  /** Enter before the list is there opens the best match of what is written. */
  private async submit(): Promise<void> {
    if (this.list.hidden) await this.look();
    const chosen = this.found[this.active];
    if (chosen && !this.list.hidden) this.choose(chosen);
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Escape") this.close();
    if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      void this.submit();
    }
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!step || this.list.hidden || !this.found.length) return;
    event.preventDefault();
    this.active = (Math.max(this.active, step < 0 ? 0 : -1) + step + this.found.length) % this.found.length;
    this.render();
  }

  private choose(chosen: Described): void {
    const app = this.app();
    this.close();
    this.input.value = "";
    if (app) void app.run(async () => await app.open(chosen.id));
  }

  private close(): void {
    clearTimeout(this.timer);
    this.running?.abort();
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  private render(): void {
    const options = this.found.map((each, at) =>
      el(
        "div",
        {
          role: "option",
          id: `found-${at}`,
          "aria-selected": at === this.active ? "true" : "false",
          onmousedown: (event) => {
            event.preventDefault();
            this.choose(each);
          },
        },
        plain(each.label, 120),
        " ",
        el("span", { class: "id" }, plain(each.id, 120)),
        el(
          "div",
          { class: "note" },
          plain([each.classes.map((one) => one.label).join(", "), each.description].filter(Boolean).join(" · "), 200),
        ),
      ),
    );
    refill(this.list, ...(options.length ? options : [el("div", { class: "note" }, plain(this.summary))]));
    this.list.setAttribute("role", options.length ? "listbox" : "status");
    this.list.hidden = document.activeElement !== this.input;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden && options.length > 0));
    if (this.active >= 0) this.input.setAttribute("aria-activedescendant", `found-${this.active}`);
    else this.input.removeAttribute("aria-activedescendant");
    options[this.active]?.scrollIntoView({ block: "nearest" });
  }
}
