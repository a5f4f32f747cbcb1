// An assistant of the tests' own: it holds the page in a sandboxed frame under the policy that the extension has for
// those that ask for nothing, and passes its calls on to a real server.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContext, BrowserContextOptions, Frame, FrameLocator, Page } from "playwright-core";
import { type Data, dataOf, isData, textOf } from "../../src/json";
import { Endpoint, Refused } from "../../src/mcp";
import type { Server } from "./harness";

const VIEW = "ui://kg-sextant/graph.html";
const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'unsafe-inline'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "media-src 'self' data:",
  "connect-src 'none'",
  "frame-src 'none'",
  "object-src 'none'",
  "base-uri 'self'",
].join("; ");

/** Keeps its frame below another screenful, as a long conversation would, and passes messages on. */
const CONVERSATION = `<!doctype html><meta charset="utf-8"><title>Conversation</title>
<body style="margin:0"><iframe title="Graph" sandbox="allow-scripts" src="/view" style="border:0;display:block"></iframe>
<div style="height:3000px"></div><script>
  const frame = document.querySelector("iframe");
  addEventListener("message", ({ data, source }) => { if (source === frame.contentWindow) fromApp(data); });
</script>`;

/** Counts frames and keeps the contexts of WebGL, in every frame before its scripts run. */
const WATCH = `(() => {
  const { requestAnimationFrame: next } = window;
  window.frameCount = 0;
  window.contexts = [];
  window.requestAnimationFrame = (action) => { window.frameCount += 1; return next.call(window, action); };
  const { getContext } = HTMLCanvasElement.prototype;
  HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
    const made = getContext.call(this, kind, ...rest);
    if (made && kind.startsWith("webgl")) window.contexts.push(made);
    return made;
  };
})()`;

export interface Shown {
  readonly width: number;
  /** What the host says of itself at the beginning. */
  readonly context?: Data;
  readonly capabilities?: Data;
  /** The tools that the host does not let the page call. */
  readonly refused?: readonly string[];
  /** The display mode that the host gives whatever the page asks for. */
  readonly mode?: string;
  readonly options?: BrowserContextOptions;
}

export const ABLE: Data = { openLinks: {}, serverTools: {}, updateModelContext: { text: {} } };

export class Assistant {
  /** Whatever the page sent, in order. */
  readonly sent: Data[] = [];
  readonly troubles: string[] = [];
  private readonly answers = new Map<unknown, (answer: Data) => void>();
  private readonly watchers = new Set<() => void>();
  private lastId = 0;

  private constructor(
    readonly page: Page,
    readonly browserContext: BrowserContext,
    private readonly endpoint: Endpoint,
    private readonly shown: Shown,
    private readonly close: () => void,
  ) {}

  /** Show the page in a frame, for a call of a tool that the server has. */
  static async open(browser: Browser, server: Server, tool: string, shown: Shown): Promise<Assistant> {
    const endpoint = new Endpoint(`${server.url}mcp`, () => "");
    await endpoint.initialize();
    const view = await endpoint.read(VIEW);
    const pages = createServer((request, response) => {
      const isView = request.url === "/view";
      response.setHeader("content-type", "text/html; charset=utf-8");
      if (isView) response.setHeader("content-security-policy", POLICY);
      response.end(isView ? view : CONVERSATION);
    });
    await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
    const { port } = pages.address() as AddressInfo;
    const context = await browser.newContext({ reducedMotion: "reduce", ...shown.options });
    await context.addInitScript(WATCH);
    const page = await context.newPage();
    const found = (await endpoint.tools()).find(({ name }) => name === tool);
    const toolInfo = found && { tool: { name: tool, inputSchema: { type: "object", properties: found.properties } } };
    const given = { theme: "light", displayMode: "inline", toolInfo, ...shown.context };
    const assistant = new Assistant(page, context, endpoint, { ...shown, context: given }, () => pages.close());
    const { troubles } = assistant;
    page.on("console", (message) => troubles.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
    page.on("request", (request) => {
      if (!/^http:\/\/127\.0\.0\.1:\d+\/(view)?$|^data:/.test(request.url()))
        troubles.push(`request: ${request.url()}`);
    });
    context.on("page", (opened) => troubles.push(`window: ${opened.url()}`));
    await page.exposeFunction("fromApp", (message: unknown) => assistant.receive(message));
    await page.goto(`http://127.0.0.1:${port}/`);
    await assistant.widen(shown.width);
    await assistant.message("ui/notifications/initialized");
    return assistant;
  }

  /** The frame itself, to run something in. */
  get inner(): Frame {
    const found = this.page.frames().find((frame) => frame.url().endsWith("/view"));
    if (!found) throw new Error("The frame is gone.");
    return found;
  }

  get frame(): FrameLocator {
    return this.page.frameLocator("iframe[title]");
  }

  /** Have a tool called as by the model: tell the page its arguments, then its result. */
  async call(tool: string, given: Data): Promise<void> {
    await this.notify("tool-input", { arguments: given });
    await this.notify("tool-result", await this.ask(tool, given));
    await this.idle();
  }

  /** Call a tool, and return its result as the server has it. */
  async ask(tool: string, given: Data): Promise<Data> {
    try {
      const { data, text } = await this.endpoint.call({ tool, given });
      return { content: [{ type: "text", text }], structuredContent: data };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return { content: [{ type: "text", text: error.message }], isError: true };
    }
  }

  async notify(kind: string, params: Data): Promise<void> {
    await this.send({ method: `ui/notifications/${kind}`, params });
  }

  /** Ask the page, and return its whole answer. */
  async request(method: string, params: Data = {}): Promise<Data> {
    this.lastId += 1;
    const id = `host ${this.lastId}`;
    const answer = new Promise<Data>((resolve) => this.answers.set(id, resolve));
    await this.send({ id, method, params });
    return await answer;
  }

  /** Return the parameters of the first message of a method that passes, which may still have to come. */
  async message(method: string, passes: (params: Data) => boolean = () => true): Promise<Data> {
    const find = (): Data | undefined =>
      this.sent.find((each) => each.method === method && passes(dataOf(each.params)));
    while (!find()) await new Promise<void>((resolve) => this.watchers.add(resolve));
    return dataOf(find()?.params);
  }

  async idle(): Promise<void> {
    // Whatever was sent before has arrived once this is answered.
    await this.request("ping");
    await this.frame.locator("body[aria-busy=false]").waitFor();
  }

  /** Return how many nodes and lines are drawn. */
  async drawn(): Promise<[nodes: number, lines: number]> {
    const stage = this.frame.locator("#stage");
    return [Number(await stage.getAttribute("data-nodes")), Number(await stage.getAttribute("data-lines"))];
  }

  /** Return how many frames the page has asked for since it began, once the conversation has had some more. */
  async frames(): Promise<number> {
    await this.page.evaluate(`new Promise((resolve) => {
      let left = 20;
      const next = () => (left-- ? requestAnimationFrame(next) : resolve());
      next();
    })`);
    return Number(await this.inner.evaluate("window.frameCount"));
  }

  async widen(width: number, height = 0): Promise<void> {
    const [wide, high] = [`${width}px`, height ? `${height}px` : ""];
    await this.page.evaluate(
      `Object.assign(frame.style, { width: "${wide}", ...("${high}" && { height: "${high}" }) })`,
    );
  }

  async end(): Promise<void> {
    await this.browserContext.close();
    this.close();
  }

  private async send(message: Data): Promise<void> {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    await this.page.evaluate(`frame.contentWindow.postMessage(${text}, "*")`);
  }

  private async receive(message: unknown): Promise<void> {
    if (!isData(message)) throw new Error(`The page sent no message: ${String(message)}`);
    this.sent.push(message);
    for (const watcher of this.watchers) watcher();
    this.watchers.clear();
    const { id, method } = message;
    if (method === undefined) this.answers.get(id)?.(message);
    else if (id !== undefined) await this.send({ id, ...(await this.answer(textOf(method), dataOf(message.params))) });
    else if (method === "ui/notifications/size-changed" && !this.isFixed)
      await this.widen(this.shown.width, Number(dataOf(message.params).height));
  }

  private get isFixed(): boolean {
    return dataOf(dataOf(this.shown.context).containerDimensions).height !== undefined;
  }

  private async answer(method: string, params: Data): Promise<Data> {
    const tool = textOf(params.name);
    switch (method) {
      case "ui/initialize":
        return {
          result: {
            protocolVersion: "2026-01-26",
            hostInfo: { name: "tests", version: "1" },
            hostCapabilities: this.shown.capabilities ?? ABLE,
            hostContext: this.shown.context,
          },
        };
      case "tools/call":
        if (this.shown.refused?.includes(tool)) return { error: { code: -32000, message: `${tool} is not allowed.` } };
        return { result: await this.ask(tool, dataOf(params.arguments)) };
      case "ui/request-display-mode":
        await this.widen(this.shown.width, 700);
        return { result: { mode: this.shown.mode ?? params.mode } };
      default:
        return { result: {} };
    }
  }
}
