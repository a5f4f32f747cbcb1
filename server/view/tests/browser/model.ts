// A language model on loopback that replies by script, each time when it is told to.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What it replies: the functions that it calls with their arguments, or a status other than 200. */
export type Reply = readonly (readonly [name: string, given: object])[] | number;

export interface Model {
  /** The options that choose it. */
  readonly words: readonly string[];
  /** Give the next reply, once it is asked for. */
  readonly reply: () => Promise<void>;
  /** Resolves when whoever waits for a reply has gone. */
  readonly left: () => Promise<void>;
  readonly stop: () => void;
}

function bodyOf(reply: Reply): object {
  if (typeof reply === "number") return { error: { message: "This is a test." } };
  const calls = reply.map(([name, given], at) => ({
    id: `call${at}`,
    type: "function",
    function: { name, arguments: JSON.stringify(given) },
  }));
  const message = { role: "assistant", content: null, tool_calls: calls };
  return { choices: [{ index: 0, message, finish_reason: "tool_calls" }], usage: { prompt_tokens: 900 } };
}

export async function model(...script: readonly Reply[]): Promise<Model> {
  const left = [...script];
  const waiting: ServerResponse[] = [];
  const noticed: (() => void)[] = [];
  const notice = (): void => {
    for (const each of noticed.splice(0)) each();
  };
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      waiting.push(response);
      notice();
    });
    response.on("close", notice);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) await new Promise<void>((resolve) => noticed.push(resolve));
  };
  const { port } = server.address() as AddressInfo;
  return {
    words: ["--model", "scripted", "--base-url", `http://127.0.0.1:${port}/v1`],
    reply: async () => {
      await until(() => waiting.some((each) => !each.destroyed));
      const reply = left.shift() ?? [];
      while (waiting[0]?.destroyed) waiting.shift();
      const response = waiting.shift();
      response?.writeHead(typeof reply === "number" ? reply : 200, { "content-type": "application/json" });
      response?.end(JSON.stringify(bodyOf(reply)));
    },
    left: async () => {
      await until(() => waiting.some((each) => each.destroyed));
      waiting.shift();
    },
    stop: () => void server.close(),
  };
}
