// Deep links: what the page shows, as the part of its address after #.

/** How the URIs of records of runs begin that the server was given. */
export const TRACE = "kg-trace:";

/** What a link opens. */
export interface Place {
  readonly graph: string;
  readonly entities: readonly string[];
  readonly path: readonly [source: string, target: string] | null;
  readonly query: { readonly tool: "Sparql" | "Compose"; readonly text: string } | null;
  readonly question: string;
  readonly memory: string;
  readonly trace: string;
  readonly schema: boolean;
}

export const NOWHERE: Place = {
  graph: "",
  entities: [],
  path: null,
  query: null,
  question: "",
  memory: "",
  trace: "",
  schema: false,
};

const MOST_ENTITIES = 20;

/** Read a link; what it does not know is ignored. */
export function readPlace(hash: string): Place {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const [source, target] = [given.get("from"), given.get("to")];
  const sparql = given.get("sparql");
  const compose = given.get("compose");
  return {
    graph: given.get("graph") ?? "",
    entities: given.getAll("entity").slice(0, MOST_ENTITIES),
    path: source && target ? [source, target] : null,
    query: sparql ? { tool: "Sparql", text: sparql } : compose ? { tool: "Compose", text: compose } : null,
    question: given.get("question") ?? "",
    memory: given.get("memory") ?? "",
    trace: given.get("trace") ?? "",
    schema: given.has("schema"),
  };
}

export function writePlace(place: Place): string {
  const given = new URLSearchParams();
  if (place.graph) given.set("graph", place.graph);
  for (const id of place.entities.slice(-MOST_ENTITIES)) given.append("entity", id);
  if (place.path) {
    given.set("from", place.path[0]);
    given.set("to", place.path[1]);
  }
  if (place.query) given.set(place.query.tool.toLowerCase(), place.query.text);
  if (place.question) given.set("question", place.question);
  if (place.memory) given.set("memory", place.memory);
  if (place.trace) given.set("trace", place.trace);
  if (place.schema) given.set("schema", "");
  const text = given.toString();
  return text ? `#${text}` : "";
}

/** Return an address that may be opened from a value; null for anything but http(s). */
export function webAddress(text: string): string | null {
  const plain = text.replace(/^<(.*)>$/, "$1");
  if (!/^https?:\/\/[^\s]+$/i.test(plain)) return null;
  try {
    const url = new URL(plain);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}
