import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { App } from "../src/app";
import { type Data, textsOf } from "../src/json";
import { placed, separated } from "../src/layout";
import { NOWHERE, readPlace, webAddress, writePlace } from "../src/links";
import { commandOf, Endpoint, LoginNeeded, Refused } from "../src/mcp";
import { namesIn } from "../src/questions";
import { NoTrace, readTrace, replayed } from "../src/trace";

test("a link leads back to where it was made", () => {
  const place = { ...NOWHERE, graph: "people", entities: ["w:E1", "<http://x.example/a b&c>"], question: "who & why?" };
  assert.deepEqual(readPlace(writePlace(place)), place);
  const query = { ...NOWHERE, query: { tool: "Sparql" as const, text: "SELECT ?s\nWHERE { ?s ?p '#' }" } };
  assert.deepEqual(readPlace(writePlace(query)), query);
  assert.equal(writePlace(NOWHERE), "");
});

test("no word of a call ends its word on the command line, whoever made the call", () => {
  const command = commandOf({ tool: "A;b", given: { entity: "it's $(c)", limit: 5, graph: "d\ne" } });
  assert.equal(command, `kg-sextant call 'A;b' 'entity=it'\\''s $(c)' limit=5 --graph 'd\ne'`);
});

test("only addresses of the web become links", () => {
  assert.equal(webAddress("<https://x.example/a>"), "https://x.example/a");
  for (const text of [
    "javascript:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,x",
    "https://",
    "see http://x",
    " http://x",
  ])
    assert.equal(webAddress(text), null, text);
});

test("no box lies upon another once they are pushed apart", () => {
  const boxes = Array.from({ length: 30 }, (_, at) => placed(undefined, at)).map(({ x, y }) => ({
    ...{ x: 8 * x, y: 8 * y, width: 60, height: 20 },
  }));
  const points = separated(boxes);
  points.forEach((one, at) => {
    for (const other of points.slice(at + 1))
      assert.ok(Math.abs(one.x - other.x) > 59.9 || Math.abs(one.y - other.y) > 19.9);
  });
});

test("a recorded run is replayed step by step, and its evidence comes with the last", () => {
  const run = readTrace(readFileSync("../../docs/examples/goethe.jsonl", "utf8"));
  assert.equal(run.question, "Where was Goethe born?");
  assert.equal(run.answers[0]?.text, "Frankfurt");
  assert.equal(replayed(run, 0).found.length, 0);
  assert.equal(replayed(run, run.steps.length - 1).evidence, null);
  const { evidence } = replayed(run, run.steps.length);
  assert.deepEqual(evidence?.triples, [{ head: "Q5879", relation: "P19", tail: "Q1794" }]);
});

test("a file that is no record is refused with the reason", () => {
  assert.throws(() => readTrace('{"kind":"tool"}'), NoTrace);
  assert.throws(() => readTrace('{"kind":"run"}\nnonsense'), /Line 2/);
  assert.throws(() => readTrace(""), NoTrace);
});

/** Return an endpoint that gets these replies in turn, and what it sent. */
function endpoint(...replies: Response[]): { given: Endpoint; sent: RequestInit[] } {
  const sent: RequestInit[] = [];
  const given = new Endpoint(
    "http://server.example/mcp",
    () => "secret",
    async (_, init = {}) => {
      sent.push(init);
      return replies.shift() ?? new Response("", { status: 500 });
    },
  );
  return { given, sent };
}

function stream(...parts: string[]): Response {
  const encoded = parts.map((part) => new TextEncoder().encode(part));
  const body = new ReadableStream({
    start(controller) {
      for (const part of encoded) controller.enqueue(part);
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

test("what may be a name in a question is found, the longest first, with its place", () => {
  const names = namesIn("Where was Johann's friend of Goethe born?");
  const [longest] = names;
  assert.deepEqual(longest, { text: "Johann's friend of Goethe", at: 2, end: 6 });
  const texts = names.map(({ text }) => text);
  assert.deepEqual(texts.slice(-4), ["Johann", "friend", "Goethe", "born"]);
  assert.equal(new Set(texts).size, texts.length);
  assert.equal(namesIn("Ada met Bea ".repeat(100)).length <= 50, true);
  assert.deepEqual(namesIn("Who is it?"), []);
});

test("an answer is read from a stream that stays open, whatever its pieces, and what comes before is passed on", async () => {
  const progress = (message: string): string =>
    `data: ${JSON.stringify({ method: "notifications/progress", params: { progressToken: 1, message } })}\n\n`;
  const { given, sent } = endpoint(
    stream(
      `: ping\n\nevent: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n${progress("one\ntwo")}da`,
      'ta: {"id":1,"result":',
      '{"structuredContent":{"total":3}}}\r\n\r\n',
    ),
  );
  const heard: string[] = [];
  const { data } = await given.call({ tool: "Degree", given: {} }, undefined, (text) => heard.push(text));
  assert.deepEqual([data.total, heard], [3, ["one\ntwo"]]);
  assert.match(String(sent[0]?.body), /"_meta":\{"progressToken":1\}/);
  assert.equal(new Headers(sent[0]?.headers).get("authorization"), "Bearer secret");
});

test("pages are read to the last, and no further where a server has no last", async () => {
  for (const [next, reads] of [
    [(read: number) => (read < 3 ? `p${read}` : ""), 3],
    [() => "again", 2],
    [(read: number) => `p${read}`, 100],
  ] as const) {
    let asked = 0;
    const given = new Endpoint(
      "http://server.example/mcp",
      () => "",
      async () => {
        asked += 1;
        return Response.json({ id: asked, result: { tools: [{ name: `t${asked}` }], nextCursor: next(asked) } });
      },
    );
    assert.equal((await given.tools()).length, reads);
    assert.equal(asked, reads);
  }
});

test("an error of a tool, of the protocol and of the login are told apart", async () => {
  const json = (body: object, init: ResponseInit = {}): Response =>
    new Response(JSON.stringify(body), { ...init, headers: { "content-type": "application/json", ...init.headers } });
  const { given } = endpoint(
    json({ id: 1, result: { isError: true, content: [{ type: "text", text: "No entity matches 'x'." }] } }),
    json({ id: 2, error: { code: -32602, message: "Unknown tool" } }),
    json({ error: "x", error_description: "Too many calls." }, { status: 429, headers: { "retry-after": "3" } }),
    json({}, { status: 401 }),
  );
  const call = { tool: "Degree", given: {} };
  await assert.rejects(given.call(call), new Refused("No entity matches 'x'."));
  await assert.rejects(given.call(call), /Unknown tool/);
  await assert.rejects(given.call(call), /Too many calls. Try again in 3 s./);
  await assert.rejects(given.call(call), LoginNeeded);
});

/** Return the actions of the page on a star of 40 nodes; an answer on its nodes has room for 15. */
function star(): App {
  const ids = Array.from({ length: 40 }, (_, at) => `e:${at}`);
  const answers: Readonly<Record<string, (given: Data) => Data>> = {
    Retrieve: ({ text }) => {
      if (!Array.isArray(text)) return { candidates: [["e:1", "Near", "", "", "0.10"]], match: "none" };
      const asked = textsOf(text);
      const candidates = asked.slice(0, 15).map((id, at) => [id, id, "", "Kind (e:K)", "1.00", "", "", String(at + 1)]);
      return { candidates, status: asked.length > 15 ? "truncated" : "ok" };
    },
    Degree: ({ entity }) => {
      if (!ids.includes(String(entity))) throw new Refused("No entity matches.");
      return {};
    },
    GetNeighbor: () => ({ triples: ids.slice(1).map((id) => ["e:0", "e:r", id]), summary: "All here." }),
  };
  const call = async ({ tool, given }: { tool: string; given: Data }) => {
    const answer = answers[tool];
    if (answer === undefined) throw new Refused("This bracket is never closed.");
    return { data: answer(given), text: "" };
  };
  const tools = ["Retrieve", "Degree", "GetNeighbor", "Compose"].map(
    (name) => [name, { name, properties: {}, remote: false }] as const,
  );
  return new App({ call, read: async () => "" }, new Map(tools), []);
}

test("the class of every node is found where an answer has room for some of them", async () => {
  const app = star();
  await app.open("e:0");
  assert.deepEqual(new Set([...app.scene.nodes].map((id) => app.lexicon.classOf(id))), new Set(["e:K"]));
});

test("what is only near a text is not opened unless it is chosen, unlike what begins with it", async () => {
  const app = star();
  const { signal } = new AbortController();
  assert.equal((await app.search("zzz", signal)).isNamed, false);
  assert.equal((await app.search("near", signal)).isNamed, true);
});

test("a link to what the graph does not have draws nothing", async () => {
  const app = star();
  await assert.rejects(app.open("e:nowhere"), Refused);
  assert.equal(app.scene.nodes.size, 0);
});

test("undoing takes back the address and the message too", async () => {
  const app = star();
  await app.open("e:0");
  await app.open("e:1");
  assert.deepEqual(app.place.entities, ["e:0", "e:1"]);
  app.undo();
  app.undo();
  assert.deepEqual(app.place.entities, ["e:0"]);
  assert.equal(app.message.text, "");
});

test("a query that fails takes the place of the one before, with the reason", async () => {
  const app = star();
  await assert.rejects(app.query("Compose", "Top["), Refused);
  assert.equal(app.found?.text, "This bracket is never closed.");
  assert.equal(app.found?.table, null);
  assert.deepEqual(app.found?.call.given, { expression: "Top[", max_tokens: 20_000 });
});
