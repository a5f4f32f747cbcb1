// The tabs of queries, and of runs and memories.

import type { App, Replay } from "./app";
import { button, counted, el, plain, refill } from "./dom";
import type { Table } from "./facts";
import { commandOf } from "./mcp";
import { type Run, readTrace } from "./trace";

const MOST_ROWS = 500;
const MOST_TRACE = 50_000_000;
type Tool = "Sparql" | "Compose";

const HINTS: Readonly<Record<Tool, string>> = {
  Sparql: 'SELECT ?film WHERE { ?film @"directed by" @"Name" }',
  Compose: "Top[Type[town], population, 3]",
};

/** The form keeps what is written in it, while its result is drawn again. */
export class Queries {
  private readonly root = el("div");
  private readonly result = el("div");
  private readonly texts: Record<Tool, string> = { Sparql: "", Compose: "" };
  private readonly area = el("textarea", { "aria-label": "Query", spellcheck: "false", maxlength: "20000" });
  private readonly tabs: Map<Tool, HTMLButtonElement>;
  private tool: Tool;
  private shown: unknown;

  constructor(private readonly app: App) {
    const offered = (["Sparql", "Compose"] as const).filter((tool) => app.tools.has(tool));
    this.tool = offered[0] ?? "Compose";
    this.tabs = new Map(
      offered.map((tool) => [
        tool,
        button(tool === "Sparql" ? "SPARQL" : tool, () => this.turnTo(tool), { "aria-pressed": "false" }),
      ]),
    );
    this.area.addEventListener("input", () => {
      this.texts[this.tool] = this.area.value;
    });
    this.area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
    });
    this.root.append(
      el("div", { class: "row" }, ...this.tabs.values()),
      this.area,
      el(
        "div",
        { class: "row" },
        button("Run", () => this.run(), { class: "first" }),
        el("span", { class: "note" }, "Ctrl+Enter"),
      ),
      this.result,
    );
    this.turnTo(this.tool);
  }

  render(panel: HTMLElement): void {
    if (this.root.parentElement !== panel) panel.replaceChildren(this.root);
    const { found } = this.app;
    if (found === this.shown) return;
    this.shown = found;
    if (found === null) {
      refill(this.result);
      return;
    }
    const canDraw = found.facts.triples.length > 0 || found.facts.nodes.length > 0;
    refill(
      this.result,
      el("p", {}, plain(found.summary)),
      canDraw &&
        el(
          "div",
          { class: "row" },
          button("Draw", () => void this.app.run(async () => await this.app.drawFound()), { "data-key": "draw" }),
        ),
      found.table?.rows.length
        ? tableOf(this.app, found.table)
        : el("pre", { class: "text", tabindex: "0" }, plain(found.text, 20_000)),
    );
  }

  /** Show a query, and run it. */
  open(tool: Tool, text: string): void {
    this.texts[tool] = text;
    this.turnTo(tool);
    this.run();
  }

  private turnTo(tool: Tool): void {
    this.tool = tool;
    this.area.value = this.texts[tool];
    this.area.placeholder = HINTS[tool];
    for (const [each, tab] of this.tabs) tab.setAttribute("aria-pressed", String(each === tool));
  }

  private run(): void {
    const text = this.texts[this.tool].trim();
    if (text) void this.app.run(async () => await this.app.query(this.tool, text));
  }
}

function tableOf(app: App, table: Table): HTMLElement {
  const rows = table.rows
    .slice(0, MOST_ROWS)
    .map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cellOf(app, cell)))));
  const head = el(
    "thead",
    {},
    el("tr", {}, ...table.columns.map((name) => el("th", { scope: "col" }, plain(name, 120)))),
  );
  const rest = table.rows.length - rows.length;
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": "Rows" },
    el("table", {}, head, el("tbody", {}, ...rows)),
    rest > 0 && el("p", { class: "note" }, `and ${counted(rest, "more row")}`),
  );
}

function cellOf(app: App, cell: string): HTMLElement | string {
  const label = app.lexicon.label(cell);
  const isNode = app.found?.facts.labels.has(cell) ?? false;
  if (isNode)
    return button(plain(label, 200), () => void app.run(async () => await app.open(cell)), {
      class: "plain",
      title: plain(cell, 300),
    });
  const relation = app.found?.facts.relations.get(cell);
  return plain(relation ?? cell, 500);
}

/** Recorded runs and memories. */
export class Runs {
  private readonly root = el("div");
  private readonly shown = el("div");
  private readonly memory = el("input", {
    "aria-label": "Handle of a memory",
    placeholder: "mem_…",
    maxlength: "200",
    spellcheck: "false",
  });

  constructor(private readonly app: App) {
    const file = el("input", { type: "file", "aria-label": "Record of a run", accept: ".jsonl,.json,.txt" });
    file.addEventListener("change", () => void app.run(async () => await this.openFile(file)));
    const form = el("form", { class: "row" }, this.memory, el("button", { type: "submit" }, "Open memory"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const handle = this.memory.value.trim();
      if (handle) void app.run(async () => await app.remember(handle));
    });
    this.root.append(
      this.shown,
      file,
      ...(app.tools.has("memory-read") ? [el("h2", { class: "part" }, "A memory"), form] : []),
    );
  }

  render(panel: HTMLElement): void {
    if (this.root.parentElement !== panel) panel.replaceChildren(this.root);
    const { app } = this;
    if (app.memory && !this.memory.value) this.memory.value = app.memory;
    const rows = app.traces.map(([uri, title]) => {
      const open = (): void => void app.run(async () => await app.openTrace(uri));
      return el("div", { class: "row" }, button(plain(title, 120), open, { "data-key": uri }));
    });
    refill(
      this.shown,
      ...(app.replay ? shownRun(app, app.replay) : []),
      el("h2", { class: "part" }, "A recorded run (ask --trace)"),
      ...rows,
    );
  }

  private async openFile(input: HTMLInputElement): Promise<void> {
    const [file] = input.files ?? [];
    if (file === undefined) return;
    if (file.size > MOST_TRACE) throw new Error("This file is too large for the page.");
    this.app.startReplay(readTrace(await file.text()));
  }
}

function shownRun(app: App, { run, step }: Replay): (HTMLElement | false | null)[] {
  const last = run.steps.length;
  const to = (number: number) => (): void => app.stepTo(number);
  const took = run.seconds ? [counted(run.tokens, "token"), `${run.seconds.toFixed(1)} s`] : [];
  const played = [run.agent, run.model, ...took].filter(Boolean).join(" · ");
  const { asking } = app;
  return [
    el("h2", { dir: "auto" }, plain(run.question, 500)),
    el("p", { class: "note" }, plain(played)),
    asking &&
      el(
        "div",
        { class: "row" },
        button("Stop", asking.stop, { class: "first", "data-key": "stop" }),
        plain(`${asking.doing} …`, 120),
      ),
    ...(step === last && !asking ? answersOf(app, run) : []),
    el(
      "div",
      { class: "row" },
      button("First", to(0), { disabled: step === 0, "data-key": "first" }),
      button("Back", to(step - 1), { disabled: step === 0, "data-key": "back" }),
      button("Next", to(step + 1), { disabled: step === last, "data-key": "next" }),
      button("Last", to(last), { disabled: step === last, "data-key": "last" }),
      el("span", { class: "note" }, `step ${step} of ${last}`),
    ),
    el(
      "ol",
      { class: "list", "aria-label": "Steps" },
      ...run.steps.map((each, at) =>
        el(
          "li",
          { "aria-current": at + 1 === step ? "step" : null },
          button(`${at + 1}. ${plain(each.title, 160)}`, to(at + 1), {
            class: each.failed ? "plain bad" : "plain",
            "data-key": `step ${at}`,
          }),
          at + 1 === step && el("pre", { class: "text", tabindex: "0" }, plain(each.detail, 4_000)),
        ),
      ),
    ),
  ];
}

function answersOf(app: App, run: Run): HTMLElement[] {
  const notes = run.notes.map((text) => el("p", { class: "note", dir: "auto" }, plain(text, 1_000)));
  if (!run.answers.length)
    return [el("p", { class: "answer" }, el("strong", {}, `No answer: ${run.status.replaceAll("_", " ")}.`)), ...notes];
  const answers = run.answers.map((each) =>
    el(
      "div",
      { class: "answer" },
      el("strong", { dir: "auto" }, plain(each.text, 500)),
      el("span", { class: "note" }, ` · ${each.source === "model" ? "the model's own knowledge" : each.source}`),
      ...each.facts.slice(0, 20).map((fact) => {
        const [head, relation, tail] = [
          app.lexicon.label(fact.head),
          app.lexicon.relationLabel(fact.relation),
          app.lexicon.label(fact.tail),
        ];
        return el("div", { class: "note" }, plain(`${head} | ${relation} | ${tail}`, 400));
      }),
      ...each.computed.slice(0, 10).map((text) => el("div", { class: "note" }, plain(text, 400))),
    ),
  );
  return [...answers, ...notes];
}

/** Show the last call, as the command line and a client of MCP have it. */
export function renderCall(app: App, parent: HTMLElement): void {
  const call = app.lastCall;
  if (call === null) {
    refill(parent, el("p", { class: "note" }, "Nothing was called yet."));
    return;
  }
  const command = commandOf(call);
  const json = JSON.stringify({ name: call.tool, arguments: call.given });
  const copy = (text: string) => (): void => void app.run(async () => await copied(app, text));
  refill(
    parent,
    el("pre", { tabindex: "0" }, plain(command, 20_000)),
    el(
      "div",
      { class: "row" },
      button("Copy command", copy(command), { "data-key": "copy" }),
      button("Copy JSON", copy(json), { "data-key": "json" }),
    ),
  );
}

async function copied(app: App, text: string): Promise<void> {
  // Pages that were not loaded safely have no clipboard.
  if (!navigator.clipboard)
    throw new Error("This page cannot copy: it was not loaded over https or from this machine.");
  await navigator.clipboard.writeText(text);
  app.say("Copied.");
}
