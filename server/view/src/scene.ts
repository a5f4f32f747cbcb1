// What is drawn: a value that each action replaces, so that undoing is going back to the one before.

import { type Facts, isOfRow, keyOf, type Triple } from "./facts";
import type { Lexicon } from "./lexicon";

export interface Scene {
  /** The definition of the graph, classes and what links them, or facts. */
  readonly kind: "schema" | "facts";
  readonly nodes: ReadonlySet<string>;
  readonly triples: ReadonlyMap<string, Triple>;
  /** Nodes that were asked for: they are shown even where no relation to them is. */
  readonly roots: ReadonlySet<string>;
  /** The keys of triples that an answer rests on, or that make a path. */
  readonly evidence: ReadonlySet<string>;
  readonly hidden: ReadonlySet<string>;
  /** The only nodes to show; null for all. */
  readonly only: ReadonlySet<string> | null;
  readonly withoutClasses: ReadonlySet<string>;
  readonly withoutRelations: ReadonlySet<string>;
}

export const EMPTY: Scene = {
  kind: "facts",
  nodes: new Set(),
  triples: new Map(),
  roots: new Set(),
  evidence: new Set(),
  hidden: new Set(),
  only: null,
  withoutClasses: new Set(),
  // The class of a node is its colour.
  withoutRelations: new Set(["rdf:type", "P31"]),
};

/** The most nodes that are drawn; more would take seconds to lay out. */
export const MOST_NODES = 5_000;

/** Add facts; a picture of the definition makes way for them. */
export function withFacts(scene: Scene, facts: Facts, evidence = false): Scene {
  const from = scene.kind === "schema" ? EMPTY : scene;
  const nodes = new Set(from.nodes);
  const triples = new Map(from.triples);
  const marked = new Set(from.evidence);
  const hidden = new Set(from.hidden);
  const only = from.only === null ? null : new Set(from.only);
  const enter = (id: string): boolean => {
    if (!nodes.has(id) && nodes.size >= MOST_NODES) return false;
    nodes.add(id);
    hidden.delete(id); // What is asked for again is shown again.
    only?.add(id);
    return true;
  };
  const roots = new Set([...from.roots, ...facts.nodes]);
  for (const id of facts.nodes) enter(id);
  for (const triple of facts.triples) {
    if (!enter(triple.head) || !enter(triple.tail)) continue;
    const key = keyOf(triple);
    triples.set(key, triple);
    if (evidence) marked.add(key);
  }
  return { ...from, nodes, triples, roots, evidence: marked, hidden, only };
}

/** Leave a node out, and what only it held. */
export function withoutNode(scene: Scene, id: string): Scene {
  return { ...scene, hidden: new Set([...scene.hidden, id]) };
}

/** Show only a node and its neighbours. */
export function isolated(scene: Scene, id: string): Scene {
  const only = new Set([id]);
  for (const { head, tail } of scene.triples.values()) {
    if (head === id) only.add(tail);
    if (tail === id) only.add(head);
  }
  return { ...scene, only };
}

export function withEverything(scene: Scene): Scene {
  return {
    ...scene,
    hidden: new Set(),
    only: null,
    withoutClasses: new Set(),
    withoutRelations: EMPTY.withoutRelations,
  };
}

/** Whether something of a scene is left out that showing everything would bring back. */
export function isFiltered(scene: Scene): boolean {
  const { hidden, only, withoutClasses, withoutRelations } = scene;
  return hidden.size > 0 || only !== null || withoutClasses.size > 0 || withoutRelations !== EMPTY.withoutRelations;
}

export function toggled(set: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const changed = new Set(set);
  if (!changed.delete(id)) changed.add(id);
  return changed;
}

/** What of a scene can be seen. */
export interface Shown {
  readonly nodes: readonly string[];
  readonly triples: readonly Triple[];
}

export function shownOf(scene: Scene, lexicon: Lexicon): Shown {
  const visible = (id: string): boolean =>
    !scene.hidden.has(id) && (scene.only?.has(id) ?? true) && !scene.withoutClasses.has(lexicon.classOf(id));
  const triples = [...scene.triples.values()].filter(
    (each) => visible(each.head) && visible(each.tail) && !scene.withoutRelations.has(each.relation),
  );
  const linked = new Set(triples.flatMap(({ head, tail }) => [head, tail]));
  const nodes = [...scene.nodes].filter((id) => visible(id) && (linked.has(id) || scene.roots.has(id)));
  return { nodes, triples };
}

/** Which ends of a line have a head; none where it stands for no fact. */
export type Heads = "none" | "end" | "both";

/** A line of the picture: all relations between two nodes. */
export interface Line {
  readonly source: string;
  readonly target: string;
  readonly label: string;
  /** The names of all its relations. */
  readonly whole: string;
  readonly heads: Heads;
  readonly evidence: boolean;
  readonly triples: readonly Triple[];
}

/** Join the triples between two nodes to one line, as lines upon each other could not be told apart. */
export function linesOf(scene: Scene, shown: Shown, lexicon: Lexicon): Line[] {
  const pairs = new Map<string, Triple[]>();
  for (const triple of shown.triples) {
    if (triple.head === triple.tail) continue;
    const pair = JSON.stringify([triple.head, triple.tail].sort());
    const known = pairs.get(pair);
    if (known) known.push(triple);
    else pairs.set(pair, [triple]);
  }
  return [...pairs.values()].map((triples) => {
    const stated = triples.filter((each) => !isOfRow(each));
    const { head: source = "", tail: target = "" } = stated[0] ?? triples[0] ?? {};
    const forth = triples.filter((each) => each.head === source);
    const back = triples.filter((each) => each.head !== source);
    const named = (most: number): string => {
      const [there, here] = [labelsOf(forth, lexicon, most), labelsOf(back, lexicon, most)];
      return here ? `${there} → ← ${here}` : there;
    };
    return {
      source,
      target,
      label: named(MOST_NAMED),
      whole: named(Number.POSITIVE_INFINITY),
      heads: !stated.length ? "none" : stated.some((each) => each.head !== source) ? "both" : "end",
      evidence: triples.some((each) => scene.evidence.has(keyOf(each))),
      triples,
    };
  });
}

const MOST_NAMED = 2;

function labelsOf(triples: readonly Triple[], lexicon: Lexicon, most: number): string {
  const labels = [...new Set(triples.map((each) => lexicon.relationLabel(each.relation)))];
  const rest = labels.length - most;
  return labels.slice(0, most).join(", ") + (rest > 0 ? ` +${rest}` : "");
}

/** Return the nodes that lines lead to from each. */
export function neighboursIn(lines: readonly Line[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const join = (one: string, other: string): void => {
    const known = found.get(one);
    if (known) known.push(other);
    else found.set(one, [other]);
  };
  for (const { source, target } of lines) {
    join(source, target);
    join(target, source);
  }
  return found;
}
