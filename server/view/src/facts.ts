// What an answer of a tool states: the triples to draw, the values, and what the ids are called.

import { type Data, rowsOf, textOf, textsById, textsOf } from "./json";

/** How many groups of an observation stand out. */
const BEST = 3;

export interface Triple {
  readonly head: string;
  readonly relation: string;
  readonly tail: string;
}

/** What of an answer can be drawn. */
export interface Facts {
  readonly triples: readonly Triple[];
  /** Nodes beside those of the triples. */
  readonly nodes: readonly string[];
  readonly values: readonly Triple[];
  readonly labels: ReadonlyMap<string, string>;
  readonly relations: ReadonlyMap<string, string>;
}

const ROW = "in one row, ";

/** Whether a triple only shows that its ends stand in one row of a query's result, which is no fact of the graph. */
export function isOfRow({ relation }: Triple): boolean {
  return relation.startsWith(ROW);
}

export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export function keyOf({ head, relation, tail }: Triple): string {
  return JSON.stringify([head, relation, tail]);
}

/** Return what an answer of a tool, just made or recorded, states. */
export function factsOf(tool: string, data: Data): Facts {
  const labels = textsById(data.labels);
  const { rows, nodes } = stated(tool, data, labels);
  const all = [...rows, ...rowsOf(data.held)].filter((row) => row.length >= 3 && row[0] && row[1] && row[2]);
  const heads = new Set(all.map((row) => row[0]));
  const triples: Triple[] = [];
  const values = triplesOf(rowsOf(data.values));
  for (const triple of triplesOf(all)) {
    // In rows, nodes and values are both texts; a node has a label, facts of its own, or the id of a blank node.
    const isNode = labels.has(triple.tail) || heads.has(triple.tail) || /^_:|^<[^>]*>$/.test(triple.tail);
    if (isNode || (certain(tool) && rows.some((row) => row[2] === triple.tail))) triples.push(triple);
    else values.push(triple);
  }
  return { triples, nodes, values, labels, relations: textsById(data.relations) };
}

/** Return the part of an answer that stands out: paths, what a memory keeps, the best of an observation, reasons. */
export function evidenceOf(tool: string, data: Data): Facts {
  const { groups, results, ...rest } = data;
  const isNone = tool === "GetNeighbor" || tool === "Sparql";
  return factsOf(tool, isNone ? {} : { ...rest, held: [], groups: rowsOf(groups).slice(0, BEST) });
}

/** Whether the triples of an answer lead to nodes only, as its values stand apart. */
function certain(tool: string): boolean {
  return tool === "GetNeighbor" || tool === "GetPath";
}

function triplesOf(rows: readonly string[][]): Triple[] {
  return rows.map(([head = "", relation = "", tail = ""]) => ({ head, relation, tail }));
}

function stated(tool: string, data: Data, labels: ReadonlyMap<string, string>): { rows: string[][]; nodes: string[] } {
  switch (tool) {
    case "GetNeighbor":
      return { rows: rowsOf(data.triples), nodes: [] };
    case "GetPath":
      return { rows: Array.isArray(data.paths) ? data.paths.flatMap(rowsOf) : [], nodes: [] };
    case "observe":
      return { rows: rowsOf(data.groups).flatMap(ofGroup), nodes: [] };
    case "memory-read":
    case "memory-append":
      return { rows: rowsOf(data.facts).map((row) => row.slice(1, 4)), nodes: [] };
    case "Compose":
      return ofCompose(data, labels);
    case "Sparql":
      return ofSparql(data, labels);
    case "Retrieve":
      return ofRetrieve(data);
    default:
      return { rows: [], nodes: [] };
  }
}

function ofGroup([entity = "", relation = "", direction = "", , , , ...ends]: string[]): string[][] {
  const nodes = ends.filter((end) => !end.startsWith('"'));
  return nodes.map((end) => (direction === "in" ? [end, relation, entity] : [entity, relation, end]));
}

function ofCompose(data: Data, labels: ReadonlyMap<string, string>): { rows: string[][]; nodes: string[] } {
  const rows = rowsOf(data.evidence);
  const nodes: string[] = [];
  for (const [, node = "", relation = "", result = "", kind = ""] of rowsOf(data.results)) {
    if (labels.has(node)) nodes.push(node);
    if (kind === "node" && labels.has(result)) nodes.push(result);
    if (kind !== "node" || !node || !relation) continue;
    rows.push(relation.startsWith("-") ? [result, relation.slice(1), node] : [node, relation, result]);
  }
  return { rows, nodes };
}

/** Draw rows of a query: its triples, or the first node of a row joined to the others, as being in one row is no fact. */
function ofSparql(data: Data, labels: ReadonlyMap<string, string>): { rows: string[][]; nodes: string[] } {
  const names = textsOf(data.variables);
  const found = rowsOf(data.rows);
  if (names.join(" ") === "subject predicate object") return { rows: found, nodes: [] };
  const rows: string[][] = [];
  const nodes: string[] = [];
  for (const row of found) {
    const first = row.find((cell) => labels.has(cell));
    if (first === undefined) continue;
    nodes.push(first);
    row.forEach((cell, at) => {
      if (cell !== first && labels.has(cell)) rows.push([first, `${ROW}?${names[at] ?? at}`, cell]);
    });
  }
  return { rows, nodes };
}

function ofRetrieve(data: Data): { rows: string[][]; nodes: string[] } {
  const [only] = rowsOf(data.candidates);
  const cards: [string, unknown][] = Object.entries(data.cards ?? {});
  if (data.card !== undefined && only?.[0]) cards.push([only[0], data.card]);
  const rows = cards.flatMap(([entity, card]) =>
    rowsOf(card).flatMap(([direction, relation = "", , ...ends]) =>
      ends.map((end) => (direction === "in" ? [end, relation, entity] : [entity, relation, end])),
    ),
  );
  return { rows, nodes: cards.map(([entity]) => entity) };
}

/** Return the rows of an answer as a table; null for one that has none. */
export function tableOf(tool: string, data: Data): Table | null {
  if (tool === "Sparql") return { columns: textsOf(data.variables).map((name) => `?${name}`), rows: rowsOf(data.rows) };
  if (tool !== "Compose") return null;
  const rows = rowsOf(data.results).map(([, node = "", relation = "", result = ""]) => [node, relation, result]);
  const used = [0, 1, 2].filter((at) => rows.some((row) => row[at]));
  const names = ["node", "relation", "result"];
  return { columns: used.map((at) => names[at] ?? ""), rows: rows.map((row) => used.map((at) => row[at] ?? "")) };
}

/** What is known of a node beside its triples. */
export interface Described {
  readonly id: string;
  readonly label: string;
  readonly description: string;
  readonly classes: readonly { readonly id: string; readonly label: string }[];
}

/** Read the candidates of a `Retrieve`. */
export function candidatesOf(data: Data): Described[] {
  return rowsOf(data.candidates).map(([id = "", label = "", description = "", types = ""]) => ({
    id,
    label,
    description,
    classes: classesOf(types),
  }));
}

/** Read `person (w:K70), writer (w:K7)` or `rdfs:Class`, as a column of types has it. */
function classesOf(types: string): { id: string; label: string }[] {
  return types
    .split(/, (?=[^()]*(?:\(|$))/)
    .filter((each) => each.trim())
    .map((each) => {
      const found = /^(.*) \(([^()\s]+)\)$/.exec(each.trim());
      return found ? { id: found[2] ?? "", label: found[1] ?? "" } : { id: each.trim(), label: each.trim() };
    });
}

/** The numbers of neighbours by relation and direction. */
export interface RelationCount {
  readonly relation: string;
  readonly direction: "out" | "in";
  readonly count: number;
}

export function summaryOf(data: Data): string {
  return textOf(data.summary);
}
