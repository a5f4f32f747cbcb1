// A client of the MCP endpoint that serves this page: JSON-RPC over streamable HTTP.

import { type Data, dataOf, isData, textOf, textsOf } from "./json";

export interface Tool {
  readonly name: string;
  readonly properties: Data;
  /** Whether what it reads lies elsewhere, where each call takes a while. */
  readonly remote: boolean;
}

export interface Call {
  readonly tool: string;
  readonly given: Data;
}

/** The answer of a tool, in the form for programs and in the one for readers. */
export interface Outcome {
  readonly data: Data;
  readonly text: string;
}

/** The endpoint refused a call; the message says why, and what to try. */
export class Refused extends Error {}

/** The endpoint requires a valid token, and there is none. */
export class LoginNeeded extends Error {}

/** Called with each progress message of a tool. */
export type OnProgress = (message: string) => void;

export interface ServerInfo {
  readonly title: string;
  readonly version: string;
}

const VERSION = "2025-11-25";
const MOST_PAGES = 100;

/** The graphs that the arguments of a tool name, as one or as a list; none where it takes none. */
export function graphsOf(properties: Data): string[] {
  const { anyOf, ...one } = dataOf(properties.graph);
  const forms: unknown[] = Array.isArray(anyOf) ? anyOf : [one];
  return forms.flatMap((form) => textsOf(dataOf(form).enum));
}

/** Read page by page, each by the cursor that the one before gave; return whether that came to an end. */
export async function paged(read: (cursor: Data) => Promise<unknown>): Promise<boolean> {
  const seen = new Set<string>();
  let cursor = textOf(await read({}));
  while (cursor && !seen.has(cursor) && seen.size < MOST_PAGES - 1) {
    seen.add(cursor);
    cursor = textOf(await read({ cursor }));
  }
  return !cursor;
}

export class Endpoint {
  private lastId = 0;
  private session = "";
  private version = "";

  constructor(
    private readonly url: string,
    private readonly token: () => string,
    private readonly request: typeof fetch = (input, init) => fetch(input, init),
    /** Get another token than the one that was refused, after so many tries; false if there is none. */
    private readonly renew: (refusal: Response, used: string, tries: number) => Promise<boolean> = async () => false,
  ) {}

  /** Begin: exchange versions and names. */
  async initialize(): Promise<ServerInfo> {
    const result = await this.send("initialize", {
      protocolVersion: VERSION,
      capabilities: {},
      clientInfo: { name: "kg-sextant-view", version: "0.1.0" },
    });
    this.version = textOf(result.protocolVersion) || VERSION;
    await this.post({ jsonrpc: "2.0", method: "notifications/initialized" });
    const info = dataOf(result.serverInfo);
    return { title: textOf(info.title) || textOf(info.name), version: textOf(info.version) };
  }

  /** List the tools that this caller may use. */
  async tools(): Promise<Tool[]> {
    const found: Tool[] = [];
    await paged(async (cursor) => {
      const result = await this.send("tools/list", cursor);
      for (const each of Array.isArray(result.tools) ? result.tools : []) {
        if (!isData(each)) continue;
        const schema = dataOf(each.inputSchema);
        const notes = dataOf(each.annotations);
        found.push({
          name: textOf(each.name),
          properties: dataOf(schema.properties),
          remote: notes.openWorldHint === true,
        });
      }
      return result.nextCursor;
    });
    return found;
  }

  /** Call a tool, and pass on its progress messages. */
  async call({ tool, given }: Call, signal?: AbortSignal, onProgress?: OnProgress): Promise<Outcome> {
    return outcomeOf(await this.send("tools/call", { name: tool, arguments: given }, signal, onProgress));
  }

  /** List the resources, by URI with their titles. */
  async resources(): Promise<[uri: string, title: string][]> {
    const result = await this.send("resources/list", {});
    const listed = Array.isArray(result.resources) ? result.resources.filter(isData) : [];
    return listed.map((each) => [textOf(each.uri), textOf(each.title) || textOf(each.name)]);
  }

  /** Read a resource as text. */
  async read(uri: string): Promise<string> {
    const result = await this.send("resources/read", { uri });
    const contents = Array.isArray(result.contents) ? result.contents.filter(isData) : [];
    return contents.map((each) => textOf(each.text)).join("\n");
  }

  private async send(method: string, params: Data, signal?: AbortSignal, onProgress?: OnProgress): Promise<Data> {
    this.lastId += 1;
    const id = this.lastId;
    const sent = onProgress ? { ...params, _meta: { progressToken: id } } : params;
    const response = await this.post({ jsonrpc: "2.0", id, method, params: sent }, signal);
    const answer = await answerTo(id, response, onProgress);
    if (isData(answer.error)) throw new Refused(textOf(answer.error.message) || "The server refused the call.");
    return dataOf(answer.result);
  }

  private async post(message: Data, signal?: AbortSignal): Promise<Response> {
    const headers = new Headers({
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    });
    if (this.version) headers.set("mcp-protocol-version", this.version);
    if (this.session) headers.set("mcp-session-id", this.session);
    const init: RequestInit = { method: "POST", headers, body: JSON.stringify(message), credentials: "omit" };
    if (signal) init.signal = signal;
    for (let tries = 0; ; tries += 1) {
      const used = this.token();
      if (used) headers.set("authorization", `Bearer ${used}`);
      const response = await this.request(this.url, init);
      this.session = response.headers.get("mcp-session-id") ?? this.session;
      if ([401, 403].includes(response.status) && (await this.renew(response, used, tries))) continue;
      if (response.status === 401)
        throw new LoginNeeded("The server asks for a login. Load this page again to log in.");
      if (!response.ok) throw new Refused(await failure(response));
      return response;
    }
  }
}

/** Read the result of a call. @throws Refused where the tool failed */
export function outcomeOf(result: Data): Outcome {
  const content = Array.isArray(result.content) ? result.content.filter(isData) : [];
  const text = content.map((part) => textOf(part.text)).join("\n");
  if (result.isError === true) throw new Refused(text || "The tool failed, and gave no reason.");
  return { data: dataOf(result.structuredContent), text };
}

async function failure(response: Response): Promise<string> {
  const text = await response.text();
  const wait = response.headers.get("retry-after");
  const later = wait ? ` Try again in ${wait} s.` : "";
  try {
    const found: unknown = JSON.parse(text);
    if (isData(found)) {
      const inner = isData(found.error) ? textOf(found.error.message) : textOf(found.error_description);
      if (inner) return inner + later;
    }
  } catch {
    // No JSON: its status is all there is to show.
  }
  return `The server answered ${response.status}.${later}`;
}

/** Read the answer with an id, from JSON or from a stream of events. */
async function answerTo(id: number, response: Response, onProgress?: OnProgress): Promise<Data> {
  if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    const found: unknown = await response.json();
    if (isData(found)) return found;
    throw new Refused("The server answered with something else than a message.");
  }
  for await (const message of events(response)) {
    if (message.id === id) return message;
    if (isData(message.params) && message.method === "notifications/progress")
      onProgress?.(textOf(message.params.message));
  }
  throw new Refused("The connection ended before the answer came.");
}

async function* events(response: Response): AsyncGenerator<Data> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (reader) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value.replaceAll("\r", "")).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const lines = block.split("\n").filter((line) => line.startsWith("data:"));
      const found: unknown = lines.length ? JSON.parse(lines.map((line) => line.slice(5)).join("\n")) : null;
      if (isData(found)) yield found;
    }
  }
}

/** Return the words of a call on the command line. */
export function commandOf({ tool, given }: Call): string {
  const { graph, ...rest } = given;
  const words = Object.entries(rest).map(
    ([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  // One graph has no name here, only where it lies.
  const all = [tool, ...words, "--graph", typeof graph === "string" ? graph : "GRAPH"];
  // A host may name any tool and any graph.
  const quoted = all.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`));
  return `kg-sextant call ${quoted.join(" ")}`;
}
