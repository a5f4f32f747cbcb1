// The page: it joins the search, the picture and the side, and follows links and keys.

import type { App } from "./app";
import { renderDetails, renderFacts, renderFilter, startPath, tally } from "./details";
import { button, byId, counted, el, plain, refill } from "./dom";
import { Drawing, type DrawnNode } from "./drawing";
import { keyOf, type Triple } from "./facts";
import type { Colors } from "./labels";
import { NO_CLASS } from "./lexicon";
import { readPlace, TRACE, writePlace } from "./links";
import { Queries, Runs, renderCall } from "./queries";
import { Questions } from "./questions";
import { save } from "./saving";
import { isFiltered, type Line, linesOf, type Shown, shownOf } from "./scene";
import type { Search } from "./search";

const COLORS = 10;
const OTHERS = "other classes";
const TABS = ["Details", "Facts", "Filter", "Query", "Schema", "Runs"] as const;
type Tab = (typeof TABS)[number];
/** The tabs that need no server. */
const STILL = 3;

export class Page {
  private readonly stage = byId("stage", HTMLDivElement);
  private readonly panel = byId("panel", HTMLDivElement);
  private readonly status = byId("status", HTMLParagraphElement);
  private readonly queries: Queries;
  private readonly runs: Runs;
  private readonly questions: Questions;
  private drawing: Drawing | null;
  /** What a frame shows below its picture: the selected node, then the facts. */
  private readonly card = el("div");
  private readonly facts = el("div", { class: "facts" });
  private isPaused = false;
  private readonly noPicture: string;
  private readonly tabs: readonly Tab[];
  private tab: Tab = "Details";
  private colors = readColors();
  private classColors = new Map<string, string>();
  private places = new Map<string, number>();
  private drawn: unknown[] = [];
  private shown: Shown = { nodes: [], triples: [] };
  private written = "";
  private chosen: string | null = null;
  /** The ends of the line that was clicked. */
  private ends: readonly string[] = [];

  constructor(
    private readonly app: App,
    private readonly search: Search,
    /** Inside an assistant, the button that changes how much room the page has. */
    private readonly modeButton?: () => HTMLElement | false,
  ) {
    this.tabs = TABS.slice(0, app.tools.has("Schema") ? TABS.length : STILL);
    this.queries = new Queries(app);
    this.runs = new Runs(app);
    this.questions = new Questions(app, (tab) => this.turnTo(tab));
    [this.drawing, this.noPicture] = this.makeDrawing();
    this.fillTabs();
    app.onChange(() => this.render());
    document.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.drawing?.resize()).observe(this.stage);
    window.addEventListener("hashchange", () => {
      if (location.hash !== this.written) void this.open(location.hash);
    });
    const graph = byId("graph", HTMLSelectElement);
    graph.append(...app.graphs.map((name) => el("option", { value: name }, name)));
    graph.addEventListener("change", () => {
      app.turnTo(graph.value);
      this.turnTo("Schema");
    });
    byId("graph-choice", HTMLLabelElement).hidden = app.graphs.length < 2;
  }

  /** Go where a link points; without one, to the picture of the definition. */
  async open(hash: string): Promise<void> {
    const { app } = this;
    const place = readPlace(hash);
    if (place.graph && place.graph !== app.graph && app.graphs.includes(place.graph)) app.turnTo(place.graph);
    byId("graph", HTMLSelectElement).value = app.graph;
    // A link must not run the model, which costs money.
    if (place.question) this.questions.input.value = place.question;
    await app.run(async () => {
      for (const id of place.entities) await app.open(id);
      if (place.path) await app.path(...place.path);
      if (place.question && place.entities.length) await app.observe(place.question, place.entities);
      if (place.memory) await app.remember(place.memory);
      if (place.trace.startsWith(TRACE)) await app.openTrace(place.trace);
    });
    if (place.query) this.queries.open(place.query.tool, place.query.text);
    if (place.query) this.turnTo("Query");
    else if (place.memory || place.trace) this.turnTo("Runs");
    else if (place.schema || !(app.scene.nodes.size || app.message.bad)) this.turnTo("Schema");
  }

  retheme(): void {
    this.colors = readColors();
    this.drawn = [];
    this.render();
  }

  /** Draw nothing while the page is hidden; changes are drawn afterwards. */
  pause(isPaused: boolean): void {
    this.isPaused = isPaused;
    this.drawing?.pause(isPaused);
    if (!isPaused) this.render();
  }

  /** Release the picture and its WebGL context. */
  end(): void {
    this.drawing?.end();
    this.drawing = null;
  }

  private makeDrawing(): [Drawing | null, string] {
    try {
      const handlers = {
        onSelect: (id: string | null, isMore: boolean) => {
          this.ends = [];
          void this.app.run(async () => await this.app.select(id, isMore));
        },
        onLine: (ends: readonly string[]) => {
          void this.app.run(async () => {
            await this.app.select(null);
            [this.ends, this.tab] = [ends, "Details"];
          });
        },
        onExpand: (id: string) => void this.app.run(async () => await this.app.expand(id)),
      };
      return [new Drawing(this.stage, () => this.colors, handlers), ""];
    } catch {
      return [null, "This browser draws no WebGL. The tab Facts has what the picture would show."];
    }
  }

  private fillTabs(): void {
    const tabs = this.tabs.map((name) =>
      button(name, () => this.turnTo(name), {
        role: "tab",
        id: `tab-${name}`,
        "aria-controls": "panel",
        "aria-selected": "false",
      }),
    );
    const list = byId("tabs", HTMLDivElement);
    list.replaceChildren(...tabs);
    list.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!step) return;
      event.stopPropagation();
      this.turnTo(this.tabs.at((this.tabs.indexOf(this.tab) + step) % this.tabs.length) ?? "Details");
      byId(`tab-${this.tab}`, HTMLButtonElement).focus();
    });
  }

  private turnTo(tab: Tab): void {
    this.tab = tab;
    if (tab === "Schema" && this.app.scene.kind !== "schema" && this.app.tools.has("Schema"))
      void this.app.run(async () => await this.app.schema());
    this.render();
  }

  private render(): void {
    const { app } = this;
    if (app.selected !== null) this.ends = [];
    const state = [app.scene, app.lexicon, app.lexicon.version, this.colors];
    const isSame = state.every((each, at) => each === this.drawn[at]);
    if (!isSame) this.shown = shownOf(app.scene, app.lexicon);
    this.drawn = this.isPaused ? [] : state;
    const { shown } = this;
    // Whoever chooses something in the picture of the definition wants to read about it.
    const isNew = app.selected !== this.chosen && app.selected !== null;
    if (isNew && this.tab === "Schema") this.tab = "Details";
    // Before the picture, whose room it changes.
    document.body.classList.toggle("empty", !app.scene.nodes.size);
    if (!isSame) this.renderPicture(shown);
    else if (app.selected !== this.chosen) this.drawing?.select(app.selected);
    this.chosen = app.selected;
    const empty = byId("empty", HTMLParagraphElement);
    empty.hidden = shown.nodes.length > 0 && !this.noPicture;
    const hint = this.modeButton ? plain(app.message.text) : "Search for an entity, or open Schema.";
    empty.textContent = this.noPicture || (app.busy ? "Loading …" : hint);
    empty.className = app.message.bad ? "bad" : "";
    for (const name of this.tabs) {
      const tab = byId(`tab-${name}`, HTMLButtonElement);
      tab.setAttribute("aria-selected", String(name === this.tab));
      tab.tabIndex = name === this.tab ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `tab-${this.tab}`);
    const isBoth = this.modeButton && (this.tab === "Details" || document.body.classList.contains("inline"));
    const tab = isBoth ? this.renderBoth(isNew) : this.tab;
    if (tab === "Details") renderDetails(app, this.panel, this.line);
    if (tab === "Facts") renderFacts(app, this.panel);
    if (tab === "Filter") renderFilter(app, this.panel);
    if (tab === "Query") this.queries.render(this.panel);
    if (tab === "Schema") this.renderSchema();
    if (tab === "Runs") this.runs.render(this.panel);
    renderCall(app, byId("call-text", HTMLDivElement));
    this.renderTools();
    this.renderStatus(shown);
    const place = writePlace(app.place);
    if (place !== this.written && app.busy === 0 && !this.modeButton) {
      this.written = place;
      history.replaceState(null, "", place || location.pathname);
    }
  }

  private renderBoth(isNew: boolean): null {
    const { app, panel, card, facts } = this;
    if (card.parentElement !== panel) panel.replaceChildren(card, facts);
    card.hidden = app.selected === null && !this.line.length;
    renderDetails(app, card, this.line);
    renderFacts(app, facts);
    if (isNew) panel.scrollTop = 0;
    return null;
  }

  /** The triples of the line that was clicked, as far as they are shown. */
  private get line(): Triple[] {
    const { ends } = this;
    return ends.length
      ? this.shown.triples.filter(({ head, tail }) => ends.includes(head) && ends.includes(tail) && head !== tail)
      : [];
  }

  private renderPicture(shown: Shown): void {
    const { app } = this;
    const lines = linesOf(app.scene, shown, app.lexicon);
    this.assignColors(shown);
    const nodes = this.drawnNodes(shown, lines);
    this.stage.setAttribute("aria-label", `Graph: ${counted(nodes.length, "node")}, ${counted(lines.length, "line")}`);
    this.stage.dataset.nodes = String(nodes.length);
    this.stage.dataset.lines = String(lines.length);
    if (!this.isPaused) this.drawing?.show(nodes, lines, app.selected);
    this.renderLegend(shown);
  }

  private drawnNodes(shown: Shown, lines: readonly Line[]): DrawnNode[] {
    const { app } = this;
    const degrees = new Map(tally(lines.flatMap(({ source, target }) => [source, target])));
    const evidence = new Set(
      shown.triples.filter((each) => app.scene.evidence.has(keyOf(each))).flatMap(({ head, tail }) => [head, tail]),
    );
    return shown.nodes.map((id) => {
      const isClass = app.scene.kind === "schema";
      const instances = app.lexicon.instances.get(id) ?? 0;
      const more = isClass ? 0 : app.undrawn(id);
      const size = isClass
        ? 5 + 2.2 * Math.log10(instances + 1)
        : 5 + Math.min(9, 1.6 * Math.sqrt(degrees.get(id) ?? 0));
      const note =
        isClass && instances ? instances.toLocaleString("en") : more ? `${more.toLocaleString("en")} more` : "";
      const color = this.classColors.get(isClass ? id : app.lexicon.classOf(id)) ?? css("--none");
      return {
        id,
        label: plain(app.lexicon.label(id), 200),
        note,
        color,
        size,
        evidence: evidence.has(id),
        also: app.also.includes(id),
      };
    });
  }

  /** The largest classes have colours, and keep them as long as they are among those; all others share one. */
  private assignColors(shown: Shown): void {
    const { app } = this;
    const isSchema = app.scene.kind === "schema";
    const sizes = isSchema
      ? [...app.lexicon.instances].sort((one, other) => other[1] - one[1])
      : tally(shown.nodes.map((id) => app.lexicon.classOf(id)).filter((id) => id !== NO_CLASS));
    const present = sizes.slice(0, COLORS).map(([id]) => id);
    const before = new Map([...this.places].filter(([id]) => present.includes(id)));
    const taken = new Set(before.values());
    const free = Array.from({ length: COLORS }, (_, at) => at).filter((at) => !taken.has(at));
    this.places = new Map(
      present.flatMap((id) => {
        const at = before.get(id) ?? free.shift();
        return at === undefined ? [] : [[id, at] as const];
      }),
    );
    this.classColors = new Map([...this.places].map(([id, at]) => [id, css(`--c${at}`)]));
  }

  private renderLegend(shown: Shown): void {
    const { app } = this;
    const classes = app.scene.kind === "schema" ? [] : shown.nodes.map((id) => app.lexicon.classOf(id));
    const told = classes.map((id) => (id === NO_CLASS || this.classColors.has(id) ? id : OTHERS));
    const rows = tally(told).map(([id, count]) => {
      const dot = el("span", { class: "dot" });
      dot.style.background = this.classColors.get(id) ?? css("--none");
      const name = id === OTHERS ? id : plain(app.lexicon.classLabel(id), 60);
      return el("li", {}, dot, name, el("span", { class: "note" }, ` ${count}`));
    });
    refill(byId("legend", HTMLUListElement), ...rows);
  }

  private renderSchema(): void {
    const { app } = this;
    const classes = [...app.lexicon.instances].sort((one, other) => other[1] - one[1]);
    const rows = classes.map(([id, count]) =>
      el(
        "tr",
        {},
        el(
          "td",
          {},
          button(plain(app.lexicon.label(id), 120), () => this.openClass(id), {
            class: "plain",
            "data-key": `class ${id}`,
          }),
        ),
        el("td", { class: "number" }, count.toLocaleString("en")),
      ),
    );
    const head = el(
      "thead",
      {},
      el("tr", {}, el("th", { scope: "col" }, "Class"), el("th", { scope: "col" }, "Instances")),
    );
    const again =
      app.scene.kind !== "schema" &&
      button("Show the picture of the schema", () => this.turnTo("Schema"), { "data-key": "picture" });
    refill(
      this.panel,
      again,
      rows.length ? el("table", {}, head, el("tbody", {}, ...rows)) : el("p", { class: "note" }, "Reading …"),
    );
  }

  private openClass(id: string): void {
    this.tab = "Details";
    const { app } = this;
    void app.run(async () => {
      if (app.scene.kind !== "schema") await app.schema();
      await app.select(id);
    });
  }

  private renderTools(): void {
    const { app, drawing } = this;
    const { scene } = app;
    refill(
      byId("tools", HTMLDivElement),
      button("Undo", () => app.undo(), { disabled: !app.canUndo, "data-key": "undo" }),
      button("Fit", () => drawing?.fit(), { "data-key": "fit" }),
      button("+", () => drawing?.zoom(true), { "aria-label": "Zoom in", "data-key": "in" }),
      button("−", () => drawing?.zoom(false), { "aria-label": "Zoom out", "data-key": "out" }),
      button("Show all", () => app.showAll(), { disabled: !isFiltered(scene), "data-key": "all" }),
      button("Clear", () => app.clear(), { disabled: !scene.nodes.size, "data-key": "clear" }),
      ...this.savers(),
      this.modeButton?.(),
      app.pathFrom !== null && button("Cancel path", () => this.cancelPath(), { class: "first", "data-key": "cancel" }),
    );
  }

  /** Return the buttons that save the picture; a frame of an assistant may save nothing. */
  private savers(): HTMLElement[] {
    const { app, drawing } = this;
    if (!drawing || this.modeButton) return [];
    return (["svg", "png"] as const).map((kind) =>
      button(kind.toUpperCase(), () => void app.run(async () => await save(drawing.sheet(), kind)), {
        "aria-label": `Save as ${kind.toUpperCase()}`,
        disabled: !app.scene.nodes.size,
        "data-key": kind,
      }),
    );
  }

  private renderStatus(shown: Shown): void {
    const { app } = this;
    const all = app.scene.nodes.size;
    const drawn = shown.nodes.length;
    const filtered = `${drawn.toLocaleString("en")} of ${counted(all, "node")} shown`;
    const numbers = all === 0 ? "" : isFiltered(app.scene) ? filtered : counted(drawn, "node");
    const doing = app.asking ? `${app.asking.doing} …` : app.busy ? "Working …" : "";
    const text = doing || app.message.text;
    this.status.className = app.message.bad && !doing ? "bad" : "";
    this.status.textContent = plain([numbers, text, app.notice].filter(Boolean).join(" · "), 400);
    // Screen readers read progress of a model at once.
    document.body.setAttribute("aria-busy", String(app.busy > 0 && !app.asking));
  }

  private cancelPath(): void {
    this.app.pathFrom = null;
    this.app.say("");
  }

  private key(event: KeyboardEvent): void {
    const { target } = event;
    const isTyping =
      target instanceof HTMLInputElement ||
      target instanceof HTMLTextAreaElement ||
      target instanceof HTMLSelectElement;
    if (event.key === "Escape" && this.app.pathFrom !== null) this.cancelPath();
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || byId("dialog", HTMLDialogElement).open) return;
    if (target === this.stage && this.move(event.key)) {
      event.preventDefault();
      return;
    }
    const action = this.actionOf(event.key);
    if (action === null) return;
    event.preventDefault();
    action();
  }

  private move(key: string): boolean {
    const { app } = this;
    const directions: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    };
    const direction = directions[key];
    if (direction) {
      const next = this.drawing?.towards(app.selected, { x: direction[0], y: direction[1] }) ?? null;
      if (next !== null && next !== app.selected) void app.run(async () => await app.select(next));
      return true;
    }
    if (key !== "Enter" || app.selected === null) return false;
    const id = app.selected;
    if (app.scene.kind === "facts") void app.run(async () => await app.expand(id));
    return true;
  }

  private actionOf(key: string): (() => void) | null {
    const { app, drawing } = this;
    const tab = this.tabs[Number(key) - 1];
    if (tab !== undefined) return () => this.turnTo(tab);
    const general: Record<string, () => void> = {
      "/": () => this.search.focus(),
      q: () => this.questions.focus(),
      "?": () => byId("help", HTMLButtonElement).click(),
      a: () => app.showAll(),
      f: () => drawing?.fit(),
      u: () => app.undo(),
      "+": () => drawing?.zoom(true),
      "-": () => drawing?.zoom(false),
    };
    const id = app.selected;
    const ofNode: Record<string, (id: string) => void> = {
      e: (node) => void app.run(async () => await app.expand(node)),
      h: (node) => app.hide(node),
      i: (node) => app.isolate(node),
      p: (node) => startPath(app, node),
    };
    if (id !== null && app.scene.kind === "facts" && ofNode[key]) return () => ofNode[key]?.(id);
    return general[key] ?? null;
  }
}

function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function readColors(): Colors {
  return {
    text: css("--text"),
    muted: css("--muted"),
    background: css("--background"),
    line: css("--line"),
    accent: css("--accent"),
  };
}
