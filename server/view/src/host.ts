// The assistant that holds this page in a frame: JSON-RPC by messages, by the extension io.modelcontextprotocol/ui of MCP.

import { type Data, dataOf, isData, textOf } from "./json";
import { Refused } from "./mcp";

const VERSION = "2026-01-26";

/** The host refused a call; no tool was asked. */
export class HostRefused extends Refused {}

export class Host {
  context: Data = {};
  /** Handle a message of the host, and return the result of a request. */
  onMessage: (method: string, params: Data) => Data | undefined = () => undefined;
  private lastId = 0;
  private readonly waiting = new Map<unknown, (answer: Data) => void>();

  constructor() {
    window.addEventListener("message", ({ data, source }) => {
      // Other frames may write to this one as well.
      if (source === window.parent && isData(data) && data.jsonrpc === "2.0") this.receive(data);
    });
  }

  /** Start the session: return the capabilities of the host, and store its context. */
  async initialize(): Promise<Data> {
    const result = await this.request("ui/initialize", {
      protocolVersion: VERSION,
      appInfo: { name: "kg-sextant-view", version: "0.1.0" },
      appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
    });
    this.context = dataOf(result.hostContext);
    return dataOf(result.hostCapabilities);
  }

  notify(method: string, params: Data): void {
    this.send({ method, params });
  }

  /** Send a request to the host. @throws HostRefused */
  async request(method: string, params: Data, signal?: AbortSignal): Promise<Data> {
    this.lastId += 1;
    const id = this.lastId;
    const answer = await new Promise<Data>((resolve, reject) => {
      this.waiting.set(id, resolve);
      signal?.addEventListener("abort", () => {
        this.waiting.delete(id);
        this.notify("notifications/cancelled", { requestId: id });
        reject(new Refused("The call was cancelled."));
      });
      this.send({ id, method, params });
    });
    if (isData(answer.error)) throw new HostRefused(textOf(answer.error.message) || `The assistant refused ${method}.`);
    return dataOf(answer.result);
  }

  private receive({ id, method, params, ...rest }: Data): void {
    if (typeof method !== "string") {
      this.waiting.get(id)?.(rest);
      this.waiting.delete(id);
      return;
    }
    const result = this.onMessage(method, dataOf(params));
    if (id !== undefined)
      this.send(result ? { id, result } : { id, error: { code: -32601, message: "Unknown method" } });
  }

  private send(message: Data): void {
    // The host may have any origin.
    window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }
}
