// A recorded run, read from its JSON lines: what was asked, each call, and what the answer rests on.

import { type Facts, factsOf, type Triple } from "./facts";
import { countOf, type Data, isData, rowsOf, textOf, textsOf } from "./json";

export interface Step {
  readonly title: string;
  readonly detail: string;
  readonly tookS: number;
  readonly failed: boolean;
  /** What a call found; null for a step of the model. */
  readonly facts: Facts | null;
}

export interface Answered {
  readonly text: string;
  readonly source: string;
  readonly facts: readonly Triple[];
  readonly entities: readonly string[];
  readonly computed: readonly string[];
}

export interface Run {
  readonly question: string;
  readonly agent: string;
  readonly model: string;
  readonly graph: string;
  readonly steps: readonly Step[];
  readonly answers: readonly Answered[];
  /** Why it ended without an answer or with a part of one, and claims that only the model makes. */
  readonly notes: readonly string[];
  readonly status: string;
  readonly tokens: number;
  readonly seconds: number;
}

/** A file is no record of a run. */
export class NoTrace extends Error {}

const MOST_TEXT = 4_000;

/** Read a record; a run that was interrupted has no answer. */
export function readTrace(text: string): Run {
  const lines = text.split("\n").filter((line) => line.trim());
  const parsed = lines.map(parse);
  if (parsed[0]?.kind !== "run")
    throw new NoTrace("This is no record of a run: its first line does not say what was asked.");
  return runOf(parsed);
}

/** Return a run by the lines of its record that have arrived. */
export function runOf(parsed: readonly Data[]): Run {
  const [first = {}] = parsed;
  const last = parsed.findLast((line) => line.kind === "answer") ?? {};
  const own = textsOf(last.model_answer);
  return {
    question: textOf(first.question),
    agent: textOf(first.agent),
    model: textOf(first.model),
    graph: textOf(first.graph),
    steps: parsed.filter((line) => line.kind === "tool" || line.kind === "llm").map(stepOf),
    answers: (Array.isArray(last.answers) ? last.answers.filter(isData) : []).map(answerOf),
    notes: [textOf(last.explanation), ...own.map((text) => `The model says, and the graph does not: ${text}`)].filter(
      Boolean,
    ),
    status: textOf(last.status) || "interrupted",
    tokens: countOf(last.tokens),
    seconds: countOf(last.seconds),
  };
}

function parse(line: string, at: number): Data {
  try {
    const found: unknown = JSON.parse(line);
    if (isData(found)) return found;
  } catch {
    // Reported below, as is a line that is JSON of another kind.
  }
  throw new NoTrace(`Line ${at + 1} is no line of a record.`);
}

function stepOf(line: Data): Step {
  const tookS = countOf(line.took_s);
  if (line.kind === "llm") {
    const detail = textOf(line.error) || textOf(line.reply) || "It calls tools.";
    return { title: `model: ${textOf(line.purpose)}`, detail: short(detail), tookS, failed: !!line.error, facts: null };
  }
  const tool = textOf(line.tool);
  const given = isData(line.arguments) ? line.arguments : {};
  const shown = Object.values(given).map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
  const facts = isData(line.data) && line.failed !== true ? factsOf(tool, line.data) : null;
  const detail = short(textOf(line.error) || textOf(line.text));
  return { title: `${tool} ${shown.join(", ")}`, detail, tookS, failed: line.failed === true, facts };
}

function answerOf(data: Data): Answered {
  const facts = rowsOf(data.facts).map(([head = "", relation = "", tail = ""]) => ({ head, relation, tail }));
  return {
    text: textOf(data.text),
    source: textOf(data.source),
    facts,
    entities: textsOf(data.entities),
    computed: textsOf(data.computed),
  };
}

function short(text: string): string {
  return text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)} …` : text;
}

/** Return the facts of the first steps, and those that the answers rest on once the last is among them. */
export function replayed(run: Run, steps: number): { readonly found: Facts[]; readonly evidence: Facts | null } {
  const found = run.steps.slice(0, steps).flatMap((step) => (step.facts === null ? [] : [step.facts]));
  if (steps < run.steps.length) return { found, evidence: null };
  const known = new Set(found.flatMap((facts) => facts.triples.flatMap(({ head, tail }) => [head, tail])));
  const triples = run.answers.flatMap((answer) => answer.facts).filter((each) => known.has(each.tail));
  return { found, evidence: { triples, nodes: [], values: [], labels: new Map(), relations: new Map() } };
}
