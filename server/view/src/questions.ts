// The question field: a model answers where the server has one, and its steps are shown as they come. Elsewhere it draws
// what is most like the question around the entities that it names.

import type { App } from "./app";
import { byId } from "./dom";
import { type Data, isData, rowsOf, textOf, textsById } from "./json";
import { runOf } from "./trace";

const MOST_NAMES = 50;
const LONGEST_NAME = 4;
const WORD = /[\p{L}\p{N}]+(?:['’.-][\p{L}\p{N}]+)*/gu;
/** Words that no name begins or ends with. */
const SMALL = /^(?:[Ww]h\w+|\p{Ll}{1,3})$/u;

interface Name {
  readonly text: string;
  readonly at: number;
  readonly end: number;
}

/** Return the possible names in a question, the longest first, with the places of their words. */
export function namesIn(question: string): Name[] {
  const words = [...question.matchAll(WORD)];
  const found = new Map<string, Name>();
  for (let length = LONGEST_NAME; length; length -= 1)
    words.forEach((first, at) => {
      const end = at + length;
      const last = words[end - 1];
      if (!last || SMALL.test(first[0]) || SMALL.test(last[0])) return;
      const text = question.slice(first.index, last.index + last[0].length).replace(/['’]s$/, "");
      found.set(text, { text, at, end });
    });
  return [...found.values()].slice(-MOST_NAMES);
}

export class Questions {
  readonly input = byId("question", HTMLInputElement);

  constructor(
    private readonly app: App,
    private readonly turnTo: (tab: "Facts" | "Runs") => void,
  ) {
    this.input.hidden = !app.tools.has("ask") && !app.tools.has("observe");
    this.input.addEventListener("keydown", (event) => {
      const question = this.input.value.trim();
      if (event.key !== "Enter" || event.isComposing || !question) return;
      void app.run(async () => await (app.tools.has("ask") ? this.ask(question) : this.observe(question)));
    });
  }

  focus(): void {
    this.input.focus();
    this.input.select();
  }

  private async ask(question: string): Promise<void> {
    const { app } = this;
    app.asking?.stop();
    const ended = new AbortController();
    const asking = { doing: "Beginning", stop: (): void => ended.abort(new Error("Stopped.")) };
    const lines: Data[] = [];
    const hear = (line: unknown): void => {
      if (!isData(line) || app.asking !== asking) return;
      if (line.kind === "doing") asking.doing = textOf(line.text);
      else {
        // A second method starts a new record.
        if (line.kind === "run") {
          app.clear();
          app.replay = null;
          lines.length = 0;
        }
        lines.push(line);
        app.follow(runOf(lines));
      }
      app.changed();
    };
    app.asking = asking;
    hear({ kind: "run", question });
    this.turnTo("Runs");
    try {
      const { data } = await app.call("ask", { question }, ended.signal, (text) => hear(JSON.parse(text)));
      const trace = textOf(data.trace);
      app.traces.push([trace, question]);
      await app.openTrace(trace);
    } finally {
      if (app.asking === asking) app.asking = null;
    }
  }

  private async observe(question: string): Promise<void> {
    const { app } = this;
    const named = await this.named(question);
    const around = named.length || app.selected === null ? named : [app.selected];
    if (!around.length) throw new Error("This names nothing in the graph: select a node first.");
    app.clear();
    await app.observe(question, around);
    app.say(`${app.message.text} For an answer, set a model: kg-sextant explore --model NAME.`);
    this.turnTo("Facts");
  }

  /** Return the entities that parts of a question name exactly; those with capitals, where any have. */
  private async named(question: string): Promise<string[]> {
    const names = namesIn(question);
    if (!names[0]) return [];
    const { data } = await this.app.call("Retrieve", { text: names.map(({ text }) => text), limit: 1 });
    const matches = textsById(data.matches);
    const rows = rowsOf(data.candidates);
    const found: (Name & { readonly id: string })[] = [];
    names.forEach((name, at) => {
      const id = rows.find((row) => row[7] === String(at + 1))?.[0];
      const isTaken = found.some((each) => each.at < name.end && name.at < each.end);
      if (id && !isTaken && (matches.get(name.text) ?? data.match) === "exact") found.push({ ...name, id });
    });
    const proper = found.filter(({ text }) => text !== text.toLowerCase());
    return (proper.length ? proper : found).map(({ id }) => id);
  }
}
