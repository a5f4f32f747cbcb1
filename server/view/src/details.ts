// The cards of the side: the selected node, the facts that are drawn, and what filters them.

import type { App } from "./app";
import { button, counted, el, plain, refill } from "./dom";
import type { RelationCount, Triple } from "./facts";
import { isOfRow, keyOf } from "./facts";
import { webAddress } from "./links";
import { shownOf } from "./scene";

const MOST_FACTS = 500;
const MOST_VALUES = 100;
let question = "";

/** Return a value as text, or as a link where it is an address on the web. */
function shownValue(text: string): Node {
  const address = webAddress(text);
  if (address === null) return document.createTextNode(plain(text));
  return el("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, plain(text, 200));
}

function nodeButton(app: App, id: string, key: string): HTMLButtonElement {
  const label = plain(app.lexicon.label(id), 200);
  const select = (event: Event): void => {
    const isMore = event instanceof MouseEvent && event.shiftKey;
    void app.run(async () => await app.select(id, isMore));
  };
  return button(label, select, {
    class: "plain",
    "data-key": key,
    title: plain(id, 300),
  });
}

/** Show the selected node, or else what a line of the picture stands for. */
export function renderDetails(app: App, panel: HTMLElement, line: readonly Triple[]): void {
  const id = app.selected;
  if (id === null) {
    if (line.length) {
      renderLine(app, panel, line);
      return;
    }
    const hint =
      app.scene.kind === "schema"
        ? "The picture shows the classes of the graph, the larger the more instances they have, and what links them. Search for an entity, or choose a class."
        : "Choose a node or a line in the picture, or search for a node.";
    refill(panel, el("p", { class: "note" }, hint));
    return;
  }
  const { lexicon } = app;
  const type = lexicon.classOf(id);
  refill(
    panel,
    el("h2", { dir: "auto" }, plain(lexicon.label(id), 300)),
    lexicon.label(id).length > 300 && el("p", { class: "note" }, counted(lexicon.label(id).length, "character")),
    el("p", { class: "id" }, shownValue(id), type ? ` · ${plain(lexicon.classLabel(type), 120)}` : ""),
    app.also.length > 0 &&
      el("p", { class: "note" }, plain(`Selected with ${app.also.map((each) => lexicon.label(each)).join(", ")}`, 400)),
    lexicon.description(id) && el("p", { dir: "auto" }, plain(lexicon.description(id))),
    app.scene.kind === "schema" ? null : actionsOf(app, id),
    app.card?.text ? el("pre", { class: "text", tabindex: "0" }, plain(app.card.text, 20_000)) : null,
    ...(app.scene.kind === "schema" ? instancesOf(app, id) : [valuesOf(app), ...relationsOf(app, id)]),
  );
}

function renderLine(app: App, panel: HTMLElement, line: readonly Triple[]): void {
  const ends = [...new Set(line.flatMap(({ head, tail }) => [head, tail]))];
  const told = (triple: Triple): string => {
    if (isOfRow(triple)) return "Both ends are in one row of a query's result. That is no fact of the graph.";
    return `${plain(triple.relation, 300)}${isEvidence(app, triple) ? " · An answer or path rests on it." : ""}`;
  };
  refill(
    panel,
    el("h2", { dir: "auto" }, ends.map((end) => plain(app.lexicon.label(end), 150)).join(" – ")),
    ...ends.map((end) => el("p", { class: "id" }, shownValue(end))),
    el(
      "ul",
      { class: "list", "aria-label": "Facts of the line" },
      ...line.flatMap((each) => [factRow(app, each), el("li", { class: "note" }, told(each))]),
    ),
  );
}

function actionsOf(app: App, id: string): HTMLElement {
  const asked = el("input", {
    "aria-label": "Question about this node",
    placeholder: "What matters here for …?",
    maxlength: "500",
    value: question,
    "data-key": "question",
    oninput: (event) => {
      if (event.target instanceof HTMLInputElement) question = event.target.value;
    },
  });
  const form = el("form", { class: "row" }, asked, el("button", { type: "submit", "data-key": "observe" }, "Observe"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (question.trim()) void app.run(async () => await app.observe(question.trim(), [id]));
  });
  return el(
    "div",
    {},
    el(
      "div",
      { class: "row" },
      app.tools.has("GetNeighbor") &&
        button("Expand", () => void app.run(async () => await app.expand(id)), {
          class: "first",
          "data-key": "expand",
        }),
      app.tools.has("GetPath") && button("Path from here", () => startPath(app, id), { "data-key": "path" }),
      button("Isolate", () => app.isolate(id), { "data-key": "isolate" }),
      button("Hide", () => app.hide(id), { "data-key": "hide" }),
    ),
    app.tools.has("observe") && form,
  );
}

export function startPath(app: App, id: string): void {
  if (!app.tools.has("GetPath")) return;
  app.pathFrom = id;
  app.say(
    `Path from ${app.lexicon.label(id)}: choose the other end, in the picture, a list or by search. Esc cancels.`,
  );
}

function valuesOf(app: App): HTMLElement | null {
  const values = app.card?.values ?? [];
  if (!values.length) return null;
  const rows = values
    .slice(0, MOST_VALUES)
    .map((each) =>
      el(
        "tr",
        {},
        el("td", {}, plain(app.lexicon.relationLabel(each.relation), 120)),
        el("td", { dir: "auto" }, shownValue(each.tail)),
      ),
    );
  const more =
    values.length > MOST_VALUES &&
    el("p", { class: "note" }, `and ${counted(values.length - MOST_VALUES, "more value")}`);
  const head = el(
    "thead",
    {},
    el("tr", {}, el("th", { scope: "col" }, "Value of"), el("th", { scope: "col" }, "Value")),
  );
  return el(
    "div",
    {},
    el("h2", { class: "part" }, "Values"),
    el("table", {}, head, el("tbody", {}, ...rows)),
    more || null,
  );
}

function relationsOf(app: App, id: string): (HTMLElement | null)[] {
  const counts = app.lexicon.countsOf(id);
  if (!counts?.length) return [];
  const total = counts.reduce((sum, each) => sum + each.count, 0);
  const sorted = [...counts].sort((one, other) => other.count - one.count);
  return [
    el("h2", { class: "part" }, `${counted(total, "link")}, ${app.undrawn(id).toLocaleString("en")} not drawn`),
    button("Draw a sample of each", () => void app.run(async () => await app.sample(id)), { "data-key": "sample" }),
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, "Relation"),
          el("th", { scope: "col" }, "Drawn"),
          el("th", { scope: "col" }, "Draw"),
        ),
      ),
      el("tbody", {}, ...sorted.map((each) => relationRow(app, id, each))),
    ),
  ];
}

function relationRow(app: App, id: string, each: RelationCount): HTMLElement {
  const label = plain(app.lexicon.relationLabel(each.relation), 120);
  const drawn = app.drawnOver(id, each).length;
  const left = each.count - drawn;
  const name = each.direction === "in" ? `← ${label}` : `${label} →`;
  const next = left > 20 ? "+20" : `+${left}`;
  const more = button(next, () => void app.run(async () => await app.more(id, each.relation, each.direction)), {
    "aria-label": `${next}, draw more of ${label}, ${each.direction === "in" ? "incoming" : "outgoing"}`,
    "data-key": `more ${each.direction} ${each.relation}`,
  });
  return el(
    "tr",
    {},
    el("td", {}, name),
    el("td", { class: "number" }, `${drawn} of ${each.count.toLocaleString("en")}`),
    el("td", {}, left > 0 ? more : "all"),
  );
}

function instancesOf(app: App, id: string): HTMLElement[] {
  const count = app.lexicon.instances.get(id);
  if (!count || !app.tools.has("Compose")) return [];
  const text = `Type[${id}]`;
  const draw = async (): Promise<void> => {
    await app.query("Compose", text);
    await app.drawFound();
  };
  return [
    el(
      "p",
      {},
      button(`Draw instances (${count.toLocaleString("en")})`, () => void app.run(draw), { "data-key": "instances" }),
    ),
  ];
}

export function renderFacts(app: App, panel: HTMLElement): void {
  const shown = shownOf(app.scene, app.lexicon);
  if (!shown.nodes.length) {
    refill(panel, el("p", { class: "note" }, "Nothing is drawn yet."));
    return;
  }
  const first = [...shown.triples].sort((one, other) => rank(app, one) - rank(app, other)).slice(0, MOST_FACTS);
  const linked = new Set(shown.triples.flatMap(({ head, tail }) => [head, tail]));
  const alone = shown.nodes.filter((id) => !linked.has(id)).slice(0, MOST_FACTS);
  const rest = shown.triples.length - first.length;
  refill(
    panel,
    el(
      "p",
      { class: "note" },
      "The same facts as the picture, those that an answer or path rests on first. Choose either end.",
    ),
    el(
      "ul",
      { class: "list", "aria-label": "Facts" },
      ...first.map((each) => factRow(app, each)),
      ...alone.map((id) => el("li", {}, nodeButton(app, id, `alone ${id}`))),
    ),
    rest > 0 && el("p", { class: "note" }, `and ${counted(rest, "more fact")}`),
  );
}

function rank(app: App, triple: Triple): number {
  if (triple.head === app.selected || triple.tail === app.selected) return 0;
  return isEvidence(app, triple) ? 1 : 2;
}

function isEvidence(app: App, triple: Triple): boolean {
  return app.scene.evidence.has(keyOf(triple));
}

function factRow(app: App, triple: Triple): HTMLElement {
  const key = keyOf(triple);
  return el(
    "li",
    {
      class: isEvidence(app, triple) ? "fact evidence" : "fact",
      "aria-current": triple.head === app.selected || triple.tail === app.selected ? "true" : null,
    },
    nodeButton(app, triple.head, `head ${key}`),
    el(
      "span",
      { class: "relation" },
      ` ${plain(app.lexicon.relationLabel(triple.relation), 120)} ${isOfRow(triple) ? "–" : "→"} `,
    ),
    nodeButton(app, triple.tail, `tail ${key}`),
  );
}

export function renderFilter(app: App, panel: HTMLElement): void {
  const { scene, lexicon } = app;
  const classes = tally([...scene.nodes].map((id) => lexicon.classOf(id)));
  const relations = tally([...scene.triples.values()].map((each) => each.relation));
  const choice = (label: string, count: number, isOn: boolean, toggle: () => void, key: string): HTMLElement =>
    el(
      "label",
      { class: "choice" },
      el("input", { type: "checkbox", checked: isOn, onchange: toggle, "data-key": key }),
      plain(label, 120),
      el("span", { class: "note" }, count.toLocaleString("en")),
    );
  refill(
    panel,
    el(
      "div",
      { class: "row" },
      button("Show everything", () => app.showAll(), { "data-key": "all" }),
    ),
    el("h2", { class: "part" }, "Relations"),
    ...relations.map(([id, count]) =>
      choice(
        lexicon.relationLabel(id),
        count,
        !scene.withoutRelations.has(id),
        () => app.toggleRelation(id),
        `relation ${id}`,
      ),
    ),
    el("h2", { class: "part" }, "Classes"),
    ...classes.map(([id, count]) =>
      choice(lexicon.classLabel(id), count, !scene.withoutClasses.has(id), () => app.toggleClass(id), `class ${id}`),
    ),
    scene.hidden.size > 0 && el("p", { class: "note" }, `${counted(scene.hidden.size, "node")} hidden one by one.`),
  );
}

export function tally(ids: readonly string[]): [id: string, count: number][] {
  const counts = new Map<string, number>();
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1]);
}
