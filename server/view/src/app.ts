// What the page does: each action calls a tool of the endpoint and draws what it found.

import { reasonOf } from "./dom";
import {
  candidatesOf,
  type Described,
  evidenceOf,
  type Facts,
  factsOf,
  type RelationCount,
  summaryOf,
  type Table,
  type Triple,
  tableOf,
} from "./facts";
import { countOf, countsById, type Data, rowsOf, textOf, textsById } from "./json";
import { Lexicon } from "./lexicon";
import { NOWHERE, type Place } from "./links";
import { type Call, type Endpoint, graphsOf, type OnProgress, type Outcome, paged, type Tool } from "./mcp";
import { EMPTY, isolated, type Scene, shownOf, toggled, withEverything, withFacts, withoutNode } from "./scene";
import { type Run, readTrace, replayed } from "./trace";

/** The most neighbours that are drawn at once; a node with more opens its relations with their counts. */
export const HUB = 60;
const PAGE = 20;
const BATCH = 50;
const BATCHES = 4;
const UNDONE = 100;
const TOKENS = 20_000;
/** How many of the largest classes are drawn even where nothing links them. */
const MOST_ALONE = 40;

/** What a card shows of the selected node. */
export interface Card {
  readonly id: string;
  readonly values: readonly Triple[];
  readonly text: string;
}

export interface Found {
  readonly call: Call;
  readonly table: Table | null;
  readonly facts: Facts;
  readonly text: string;
  readonly summary: string;
}

export interface Replay {
  readonly run: Run;
  readonly step: number;
}

export interface Message {
  readonly text: string;
  readonly bad: boolean;
}

export class App {
  scene: Scene = EMPTY;
  selected: string | null = null;
  /** What was selected before it and kept. */
  also: readonly string[] = [];
  card: Card | null = null;
  found: Found | null = null;
  replay: Replay | null = null;
  /** The run of a model that has not ended yet. */
  asking: { readonly doing: string; readonly stop: () => void } | null = null;
  lastCall: Call | null = null;
  message: Message = { text: "", bad: false };
  /** What the page has to do without, shown beside every message. */
  notice = "";
  /** The end of a path of which the other is not chosen yet. */
  pathFrom: string | null = null;
  graph = "";
  place: Place = NOWHERE;
  memory = "";
  busy = 0;
  lexicon = new Lexicon();
  private past: { readonly scene: Scene; readonly place: Place }[] = [];
  private readonly cursors = new Map<string, string>();
  /** Nodes of which all neighbours were found, although a link that is stated both ways is counted twice. */
  private readonly complete = new Set<string>();
  private readonly listeners: (() => void)[] = [];

  constructor(
    readonly endpoint: Pick<Endpoint, "call" | "read">,
    readonly tools: ReadonlyMap<string, Tool>,
    readonly traces: (readonly [uri: string, title: string])[],
  ) {
    this.graph = this.graphs[0] ?? "";
  }

  /** The graphs to choose from; none where one is served, and its tools have no such argument. */
  get graphs(): string[] {
    for (const tool of this.tools.values()) {
      const names = graphsOf(tool.properties);
      if (names.length > 0) return names;
    }
    return [];
  }

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  changed(): void {
    for (const listener of this.listeners) listener();
  }

  /** Call a tool for the chosen graph. */
  async call(tool: string, given: Data, signal?: AbortSignal, onProgress?: OnProgress): Promise<Outcome> {
    return await this.endpoint.call(this.addressed(tool, given), signal, onProgress);
  }

  private addressed(tool: string, given: Data): Call {
    const takesGraph = this.tools.get(tool)?.properties.graph !== undefined;
    return { tool, given: takesGraph && this.graph ? { ...given, graph: this.graph } : given };
  }

  /** Run an action: show that it runs, and why it failed if it does. */
  async run(action: () => Promise<void>): Promise<void> {
    this.busy += 1;
    this.changed();
    try {
      await action();
    } catch (error) {
      this.message = { text: reasonOf(error), bad: true };
    } finally {
      this.busy -= 1;
      this.changed();
    }
  }

  /** Look a text up, for completion. */
  async search(text: string, signal: AbortSignal): Promise<{ found: Described[]; summary: string; isNamed: boolean }> {
    const { data } = await this.call("Retrieve", { text, limit: 20 }, signal);
    const begins = (each: Described): boolean => each.label.toLowerCase().startsWith(text.toLowerCase());
    const all = candidatesOf(data);
    const found = [...all.filter(begins), ...all.filter((each) => !begins(each))].slice(0, 10);
    return { found, summary: summaryOf(data), isNamed: data.match !== "none" || all.some(begins) };
  }

  /** Show an entity and what is around it. */
  async open(id: string): Promise<void> {
    const other = this.pathFrom;
    if (other !== null && other !== id) return await this.path(other, id);
    await Promise.all([this.describe([id]), this.count(id)]);
    this.draw({ triples: [], nodes: [id], values: [], labels: new Map(), relations: new Map() });
    this.mark({ entities: [...this.place.entities.filter((each) => each !== id), id] });
    await this.expand(id);
  }

  /** Draw the neighbours of a node; of a hub, only count them. */
  async expand(id: string): Promise<void> {
    if (!this.tools.has("GetNeighbor")) return await this.select(id);
    this.choose(id);
    const [counts] = await Promise.all([this.count(id), this.showCard(id)]);
    const total = counts.reduce((sum, each) => sum + each.count, 0);
    if (total > HUB) {
      this.say(`${this.lexicon.label(id)} has ${total.toLocaleString("en")} links: choose a relation in Details.`);
      return;
    }
    await this.neighbors(id, { direction: "both", limit: HUB * 2 });
  }

  /** Draw some neighbours of a node, sampled over its relations. */
  async sample(id: string): Promise<void> {
    await this.neighbors(id, { direction: "both", limit: PAGE * 2 });
  }

  /** Draw the next neighbours over one relation. */
  async more(id: string, relation: string, direction: "out" | "in"): Promise<void> {
    await this.neighbors(id, { relation, direction, limit: PAGE });
  }

  private async neighbors(id: string, given: Data): Promise<void> {
    const key = JSON.stringify([id, given]);
    const cursor = this.cursors.get(key);
    const { facts, data } = await this.facts("GetNeighbor", {
      entity: id,
      ...given,
      max_tokens: TOKENS,
      ...(cursor ? { cursor } : {}),
    });
    const next = textOf(data.cursor);
    if (next) this.cursors.set(key, next);
    else this.cursors.delete(key);
    if (!next && given.direction === "both") this.complete.add(id);
    this.draw({ ...facts, nodes: [id] });
    this.say((summaryOf(data).split(" Next page")[0] ?? "").trim());
    await this.describe();
  }

  /** Draw how two nodes are linked. */
  async path(source: string, target: string): Promise<void> {
    this.pathFrom = null;
    const { facts, data } = await this.facts("GetPath", { source, target, max_tokens: TOKENS });
    this.draw({ ...facts, nodes: [source, target] }, true);
    this.choose(target);
    this.mark({ path: [source, target] });
    this.say(summaryOf(data), facts.triples.length === 0);
    await Promise.all([this.describe(), this.showCard(target)]);
  }

  /** Draw what around nodes is most like a question. */
  async observe(question: string, entities: readonly string[]): Promise<void> {
    const { facts, data } = await this.facts("observe", { question, entities, hops: 2, top_n: 20 });
    this.draw({ ...facts, nodes: entities });
    this.add(evidenceOf("observe", data), true);
    this.mark({ question, entities });
    this.say(summaryOf(data));
    await this.describe();
  }

  /** Run a query and show its rows. */
  async query(tool: "Sparql" | "Compose", text: string): Promise<void> {
    const given = tool === "Sparql" ? { query: text } : { expression: text, max_tokens: TOKENS };
    const call = this.addressed(tool, given);
    // What failed takes the place of what was found before.
    const fail = (error: unknown): never => {
      this.found = { call, table: null, facts: factsOf(tool, {}), text: reasonOf(error), summary: "" };
      throw error;
    };
    const { facts, outcome } = await this.facts(tool, given).catch(fail);
    const summary = summaryOf(outcome.data) || outcome.text;
    this.found = { call, table: tableOf(tool, outcome.data), facts, text: outcome.text, summary };
    this.mark({ query: { tool, text } });
    this.say(summary);
  }

  /** Draw what the last query found. */
  async drawFound(): Promise<void> {
    if (this.found === null) return;
    this.lastCall = this.found.call;
    this.draw(this.found.facts);
    await this.describe();
  }

  /** Draw an answer to a call that the page did not make. */
  async show(call: Call, { data, text }: Outcome): Promise<void> {
    this.lastCall = call;
    const facts = factsOf(call.tool, data);
    const { entity, entities, source, target } = call.given;
    const read = textsById(data.read);
    const asked = [entity, entities, source, target].flat().map((each) => read.get(textOf(each)) ?? textOf(each));
    const isAny = facts.triples.length + facts.values.length > 0;
    this.add({ ...facts, nodes: [...facts.nodes, ...asked.filter((id) => isAny && facts.labels.has(id))] });
    this.add(evidenceOf(call.tool, data), true);
    this.say(summaryOf(data) || text);
    await this.describe();
  }

  /** Draw a memory. */
  async remember(memory: string): Promise<void> {
    const isWhole = await paged(async (cursor) => {
      const { facts, data } = await this.facts("memory-read", { memory, ...cursor });
      this.draw(facts, true);
      this.say(summaryOf(data));
      return data.cursor;
    });
    this.memory = memory;
    this.mark({ memory });
    if (!isWhole) this.say("The memory has more pages than were read.", true);
    await this.describe();
  }

  /** Draw the classes of the graph, and what links them. */
  async schema(): Promise<void> {
    const { data } = await this.facts("Schema", { max_tokens: TOKENS });
    const links = rowsOf(data.links).map(([head = "", relation = "", tail = ""]) => ({ head, relation, tail }));
    const tree = rowsOf(data.tree).flatMap(([upper = "", ...below]) =>
      upper ? below.map((each) => ({ head: each, relation: "subclass of", tail: upper })) : [],
    );
    const labels = textsById(data.labels);
    this.lexicon.learn({ labels, relations: labels });
    const classes = countsById(data.classes);
    for (const [id, count] of classes) this.lexicon.instances.set(id, count);
    const triples = [...links, ...tree];
    this.keepForUndo();
    const all = { triples, nodes: [...classes.keys()].slice(0, MOST_ALONE), values: [], labels, relations: new Map() };
    this.scene = { ...withFacts(EMPTY, all), kind: "schema" };
    this.selected = null;
    this.card = null;
    this.mark({ schema: true });
    this.say(summaryOf(data).split(" How to read")[0] ?? "");
  }

  /** Open the record of a run that the server was given. */
  async openTrace(uri: string): Promise<void> {
    const run = readTrace(await this.endpoint.read(uri));
    this.startReplay(run);
    this.mark({ question: run.question, trace: uri });
  }

  startReplay(run: Run): void {
    this.asking?.stop();
    this.replay = { run, step: 0 };
    this.message = { text: "", bad: false };
    this.stepTo(run.steps.length);
  }

  /** Show a run that has not ended, and draw what it finds, unless an earlier step is shown. */
  follow(run: Run): void {
    const { run: before, step } = this.replay ?? { run, step: run.steps.length };
    const isLast = step === before.steps.length;
    this.replay = { run, step: isLast ? run.steps.length : step };
    for (const { facts } of isLast ? run.steps.slice(step) : []) if (facts) this.draw(facts);
    void this.run(async () => await this.describe());
  }

  /** Draw what a recorded run had found after so many steps. */
  stepTo(step: number): void {
    if (this.replay === null) return;
    const { run } = this.replay;
    this.replay = { run, step: Math.max(0, Math.min(step, run.steps.length)) };
    const { found, evidence } = replayed(run, this.replay.step);
    this.keepForUndo();
    this.scene = EMPTY;
    this.selected = null;
    for (const facts of found) this.add(facts);
    if (evidence) this.add(evidence, true);
    this.changed();
    void this.run(async () => await this.describe());
  }

  /** Select a node, instead of those before it or beside them, and read what the graph has of it. */
  async select(id: string | null, isMore = false): Promise<void> {
    if (id !== null && this.pathFrom !== null && this.pathFrom !== id) return await this.path(this.pathFrom, id);
    const kept = isMore && this.selected !== null ? [...this.also, this.selected] : [];
    this.choose(id);
    this.also = kept.filter((each) => each !== id);
    this.changed();
    if (id !== null) await Promise.all([this.count(id), this.showCard(id)]);
  }

  hide(id: string): void {
    this.change(withoutNode(this.scene, id));
    if (this.selected === id) this.choose(null);
    this.changed();
  }

  isolate(id: string): void {
    this.change(isolated(this.scene, id));
  }

  showAll(): void {
    this.change(withEverything(this.scene));
  }

  toggleClass(id: string): void {
    this.change({ ...this.scene, withoutClasses: toggled(this.scene.withoutClasses, id) });
  }

  toggleRelation(id: string): void {
    this.change({ ...this.scene, withoutRelations: toggled(this.scene.withoutRelations, id) });
  }

  clear(): void {
    this.change(EMPTY);
    this.choose(null);
    this.place = { ...NOWHERE, graph: this.place.graph };
    this.changed();
  }

  undo(): void {
    const before = this.past.pop();
    if (before === undefined) return;
    ({ scene: this.scene, place: this.place } = before);
    if (this.selected !== null && !this.scene.nodes.has(this.selected)) this.choose(null);
    this.say("");
  }

  /** Turn to another of the graphs that the server has. */
  turnTo(graph: string): void {
    this.asking?.stop();
    this.graph = graph;
    this.lexicon = new Lexicon();
    this.scene = EMPTY;
    this.past = [];
    this.cursors.clear();
    this.complete.clear();
    this.choose(null);
    this.found = null;
    this.place = { ...NOWHERE, graph };
    this.changed();
  }

  /** Return how many links of a node are not drawn; 0 where they were not counted. */
  undrawn(id: string): number {
    const total = (this.lexicon.countsOf(id) ?? []).reduce((sum, each) => sum + each.count, 0);
    return total && !this.complete.has(id) ? Math.max(0, total - this.drawnOver(id).length) : 0;
  }

  /** Return the drawn triples of a node, of one relation or all. */
  drawnOver(id: string, over?: RelationCount): Triple[] {
    return [...this.scene.triples.values()].filter((each) => {
      if (over === undefined) return each.head === id || each.tail === id;
      return each.relation === over.relation && (over.direction === "out" ? each.head : each.tail) === id;
    });
  }

  say(text: string, bad = false): void {
    this.message = { text, bad };
    this.changed();
  }

  private mark(place: Partial<Place>): void {
    const joined = place.entities || place.path ? { entities: this.place.entities, path: this.place.path } : {};
    this.place = { ...NOWHERE, graph: this.graphs.length ? this.graph : "", ...joined, ...place };
  }

  private choose(id: string | null): void {
    if (id !== this.selected) this.also = [];
    this.selected = id;
    if (this.card?.id !== id) this.card = null;
  }

  private change(scene: Scene): void {
    this.keepForUndo();
    this.scene = scene;
    this.changed();
  }

  private keepForUndo(): void {
    this.past = [...this.past.slice(-UNDONE), { scene: this.scene, place: this.place }];
  }

  private draw(facts: Facts, evidence = false): void {
    this.keepForUndo();
    this.add(facts, evidence);
    this.changed();
  }

  private add(facts: Facts, evidence = false): void {
    this.lexicon.learn(facts);
    this.scene = withFacts(this.scene, facts, evidence);
  }

  private async facts(tool: string, given: Data): Promise<{ facts: Facts; data: Data; outcome: Outcome }> {
    const outcome = await this.call(tool, given);
    this.lastCall = this.addressed(tool, given);
    const facts = factsOf(tool, outcome.data);
    this.lexicon.learn(facts);
    return { facts, data: outcome.data, outcome };
  }

  private async count(id: string): Promise<readonly RelationCount[]> {
    const known = this.lexicon.countsOf(id);
    if (known !== undefined || this.scene.kind === "schema" || !this.tools.has("Degree")) return known ?? [];
    const { data } = await this.facts("Degree", { entity: id });
    const counted = (direction: "out" | "in"): RelationCount[] =>
      [...countsById(direction === "out" ? data.outgoing : data.incoming)].map(([relation, count]) => ({
        relation,
        direction,
        count,
      }));
    const counts = [...counted("out"), ...counted("in")];
    this.lexicon.count(id, counts);
    this.changed();
    return counts;
  }

  private async showCard(id: string): Promise<void> {
    let card: Card;
    if (this.scene.kind === "schema") {
      const { text } = await this.call("Schema", { about: id });
      card = { id, values: [], text };
    } else if (this.tools.has("Feature")) {
      const { data } = await this.call("Feature", { entity: id });
      this.lexicon.learn({ labels: new Map(), relations: textsById(data.relations) });
      const values = rowsOf(data.features).map(([relation = "", tail = ""]) => ({ head: id, relation, tail }));
      const total = countOf(data.total);
      card = { id, values, text: total > values.length ? `${total - values.length} more values` : "" };
    } else return;
    if (this.selected === id) this.card = card;
    this.changed();
  }

  /** Ask of which class nodes are; of those that are drawn, where none are named. */
  private async describe(ids?: readonly string[]): Promise<void> {
    if (!this.tools.has("Retrieve") || (ids === undefined && this.scene.kind === "schema")) return;
    const shown = ids ?? shownOf(this.scene, this.lexicon).nodes;
    const most = this.tools.get("Retrieve")?.remote ? BATCH : BATCH * BATCHES;
    const missing = this.lexicon.undescribed(shown, most);
    while (missing.length) {
      const asked = missing.splice(0, BATCH);
      const { data } = await this.call("Retrieve", { text: asked, limit: 1 });
      for (const each of candidatesOf(data)) this.lexicon.describe(each);
      // An answer that is cut tells of the first of the texts.
      if (data.status === "truncated")
        missing.unshift(...asked.slice(Number(rowsOf(data.candidates).at(-1)?.[7]) || BATCH));
      this.changed();
    }
  }
}
