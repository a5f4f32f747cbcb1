import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { type Data, dataOf, textOf } from "../../src/json";
import { HOSTILE, launch, missing, type Server, serve, stopAll, violations } from "./harness";
import { Assistant, type Shown } from "./host";

const FILM = "w:E3900";
const PERSON = "w:E7939";

/** What the page may send, with the names of its parameters. */
const METHODS: Readonly<Record<string, readonly string[]>> = {
  "ui/initialize": ["appCapabilities", "appInfo", "protocolVersion"],
  "ui/notifications/initialized": [],
  "ui/notifications/size-changed": ["height", "width"],
  "ui/open-link": ["url"],
  "ui/update-model-context": ["content"],
  "ui/request-display-mode": ["mode"],
  "tools/call": ["arguments", "name"],
  "notifications/cancelled": ["requestId"],
};

describe("the page inside an assistant", { skip: missing, timeout: 300_000 }, () => {
  let browser: Browser;
  let world: Server;
  const shown: Assistant[] = [];

  before(async () => {
    [browser, world] = await Promise.all([launch(), serve("sample:world")]);
  });
  after(async () => {
    stopAll();
    await Promise.all(shown.map(async (each) => await each.end()));
    await browser.close();
  });

  async function open(tool: string, how: Partial<Shown> = {}, server = world): Promise<Assistant> {
    const assistant = await Assistant.open(browser, server, tool, { width: 600, ...how });
    shown.push(assistant);
    return assistant;
  }

  async function memories(): Promise<Data> {
    const assistant = shown[0] ?? (await open("observe"));
    return await assistant.ask("memory-append", { triples: [`${FILM} | directed by | w:E2503`] });
  }

  test("APP-100, APP-101, APP-102: it begins with ui/initialize and its capabilities, then says that it has", async () => {
    const { sent, troubles } = await open("observe");
    const [first, second] = sent;
    assert.equal(first?.method, "ui/initialize");
    const { appCapabilities, appInfo, protocolVersion } = dataOf(first?.params);
    assert.deepEqual(appCapabilities, { availableDisplayModes: ["inline", "fullscreen"] });
    assert.equal(dataOf(appInfo).name, "kg-sextant-view");
    assert.equal(protocolVersion, "2026-01-26");
    assert.deepEqual(second, { jsonrpc: "2.0", method: "ui/notifications/initialized", params: {} });
    assert.deepEqual(troubles, []);
  });

  test("APP-103: all that it sends is JSON-RPC of known methods, as it is selected, expanded, searched and widened", async () => {
    const context = { availableDisplayModes: ["inline", "fullscreen"] };
    const assistant = await open("GetNeighbor", { context });
    const { frame, sent, troubles } = assistant;
    await assistant.call("GetNeighbor", { entity: FILM });
    await frame.getByRole("button", { name: "Stewauus Wastšeieda" }).first().click();
    await assistant.idle();
    const before = await assistant.drawn();
    await frame.getByRole("button", { name: "Expand" }).click();
    await assistant.idle();
    assert.ok((await assistant.drawn())[0] > before[0], "more is drawn");
    await frame.getByRole("button", { name: "Full screen" }).click();
    await frame.getByRole("tab", { name: "Query" }).waitFor();
    await frame.getByRole("combobox", { name: "Search" }).pressSequentially("Maard Park");
    await frame.getByRole("option").first().waitFor();
    await assistant.page.keyboard.press("Enter");
    await frame.getByRole("heading", { name: "Maard Park" }).waitFor();
    for (const { jsonrpc, id, method, params, result } of sent) {
      assert.equal(jsonrpc, "2.0");
      if (method === undefined) assert.deepEqual(result, {});
      if (method === undefined) continue;
      assert.deepEqual(Object.keys(dataOf(params)).sort(), METHODS[textOf(method)], textOf(method));
      assert.equal(id === undefined, textOf(method).includes("notifications/"), textOf(method));
    }
    const tools = new Set(
      sent.filter(({ method }) => method === "tools/call").map(({ params }) => dataOf(params).name),
    );
    assert.deepEqual([...tools].sort(), ["Degree", "Feature", "GetNeighbor", "Retrieve"]);
    assert.deepEqual(troubles, []);
  });

  test("APP-104: it says how high it is whenever that changes, and no higher than the host lets it be", async () => {
    const assistant = await open("GetNeighbor", { context: { containerDimensions: { width: 600, maxHeight: 500 } } });
    const { height } = await assistant.message("ui/notifications/size-changed");
    assert.ok(Number(height) < 150, `nothing is drawn yet: ${height}`);
    await assistant.call("GetNeighbor", { entity: FILM });
    await assistant.message("ui/notifications/size-changed", (size) => size.height === 500 && size.width === 600);
    assert.equal(await assistant.frame.locator("body").evaluate("document.documentElement.scrollHeight"), 500);
  });

  test("APP-105: it offers no tools, and answers what it knows", async () => {
    const assistant = await open("observe");
    const { error } = await assistant.request("tools/list");
    assert.equal(dataOf(error).code, -32601);
    assert.deepEqual((await assistant.request("ping")).result, {});
  });

  test("APP-106: it asks for no display mode that the host has not, and keeps to the one that it gets", async () => {
    const plain = await open("GetNeighbor", { context: { availableDisplayModes: ["inline", "pip"] } });
    await plain.call("GetNeighbor", { entity: FILM });
    assert.equal(await plain.frame.getByRole("button", { name: "Full screen" }).count(), 0);
    const context = { availableDisplayModes: ["inline", "fullscreen"] };
    for (const mode of ["fullscreen", "inline"]) {
      const able = await open("GetNeighbor", { context, mode });
      await able.call("GetNeighbor", { entity: FILM });
      await able.frame.getByRole("button", { name: "Full screen" }).click();
      assert.deepEqual(await able.message("ui/request-display-mode"), { mode: "fullscreen" });
      await able.idle();
      assert.equal(await able.frame.getByRole("tab").count(), mode === "inline" ? 0 : 6);
      await able.notify("host-context-changed", { displayMode: "inline" });
      await able.frame.getByRole("tab").first().waitFor({ state: "hidden" });
      assert.deepEqual(able.troubles, []);
    }
  });

  for (const [tool, given, [nodes, lines], marked] of [
    ["observe", { question: "who directed it", entities: [FILM] }, [12, 11], 4],
    ["GetNeighbor", { entity: FILM, relation: "cast member" }, [10, 9], 0],
    ["GetPath", { source: FILM, target: PERSON }, [4, 3], 3],
    ["Compose", { expression: `Neighbor[Neighbor[${FILM}, cast member], alma mater]` }, [9, 6], 6],
    ["memory-read", {}, [2, 1], 1],
  ] as const)
    test(`what ${tool} found is drawn, whether or not the host names the tool`, async () => {
      const { memory } = dataOf((await (await memories()).structuredContent) as Data);
      for (const context of [{}, { toolInfo: undefined }]) {
        const assistant = await open(tool, { context });
        await assistant.call(tool, tool === "memory-read" ? { memory } : given);
        assert.deepEqual(await assistant.drawn(), [nodes, lines]);
        assert.equal(await assistant.frame.locator("li.evidence").count(), marked);
        await assistant.frame
          .getByRole("list", { name: "Classes" })
          .getByText(/^film \d/)
          .waitFor();
        assert.deepEqual(assistant.troubles, []);
      }
    });

  test("the selected nodes reach the model, and no longer once none is selected", async () => {
    const assistant = await open("GetNeighbor");
    await assistant.call("GetNeighbor", { entity: FILM });
    await assistant.frame.getByRole("button", { name: "Stewauus Wastšeieda" }).first().click();
    const text = "Selected in the picture of the graph: Stewauus Wastšeieda (w:E2503)";
    const update = "ui/update-model-context";
    assert.deepEqual(await assistant.message(update), { content: [{ type: "text", text }] });
    await assistant.frame.getByRole("button", { name: "romance" }).click({ modifiers: ["Shift"] });
    await assistant.message(update, ({ content }) => JSON.stringify(content).includes(`${text}, romance (w:E5787)`));
    await assistant.frame.getByText("Selected with Stewauus Wastšeieda").waitFor();
    await assistant.frame.getByRole("heading", { name: "romance" }).waitFor();
    await assistant.frame.locator("#stage").click({ position: { x: 3, y: 3 } });
    await assistant.message(update, ({ content }) => Array.isArray(content) && content.length === 0);
    const silent = await open("GetNeighbor", { capabilities: { serverTools: {} } });
    await silent.call("GetNeighbor", { entity: FILM });
    await silent.frame.getByRole("button", { name: "Stewauus Wastšeieda" }).first().click();
    await silent.frame.getByRole("heading", { name: "Stewauus Wastšeieda" }).waitFor();
    await silent.frames();
    assert.equal(silent.sent.filter(({ method }) => method === update).length, 0);
  });

  test("it says what is looked at while the call is written, and that it failed, was cancelled or found nothing", async () => {
    const assistant = await open("GetNeighbor");
    const says = async (text: string): Promise<void> =>
      await assistant.frame.getByText(text, { exact: false }).first().waitFor();
    await says("Waiting for what the assistant asks …");
    await assistant.notify("tool-input-partial", {});
    await assistant.notify("tool-input-partial", { arguments: { entity: "Lyo" } });
    await says("Looking around Lyo …");
    await assistant.notify("tool-input-partial", { arguments: { entities: ["Lyon", 7], question: "what" } });
    await says("Looking around Lyon …");
    await assistant.notify("tool-cancelled", { reason: "by <b>Ada</b>" });
    await says("The call was cancelled. by <b>Ada</b>");
    await assistant.call("GetNeighbor", { entity: "Nobody Of This Name" });
    await says("No entity");
    assert.equal(await assistant.frame.locator("#empty.bad").count(), 1);
    await assistant.call("GetNeighbor", { entity: FILM, relation: "directed by", direction: "in" });
    await says("Amber Engine (w:E3900) has no incoming directed by");
    assert.equal(await assistant.frame.locator("#empty.bad").count(), 0);
    await assistant.notify("tool-result", { content: [{ type: "text", text: "No structure." }] });
    await says("No structure.");
    assert.deepEqual(await assistant.drawn(), [0, 0]);
    assert.deepEqual(assistant.troubles, []);
  });

  test("nobody sees it, so it rests: no frame is asked for until it is seen again", async () => {
    const assistant = await open("GetNeighbor", { options: { reducedMotion: "no-preference" } });
    const result = await assistant.ask("GetNeighbor", { entity: "w:E2203", direction: "in", limit: 100 });
    await assistant.page.evaluate("scrollTo(0, 3000)");
    await assistant.frames();
    const before = await assistant.frames();
    await assistant.notify("tool-result", result);
    await assistant.idle();
    assert.equal((await assistant.drawn())[0], 91);
    assert.equal(await assistant.frames(), before);
    await assistant.page.evaluate("scrollTo(0, 0)");
    while ((await assistant.frames()) < before + 3);
    await assistant.page.evaluate("scrollTo(0, 3000)");
    await assistant.frames();
    const rested = await assistant.frames();
    assert.equal(await assistant.frames(), rested);
  });

  test("taken down, it answers, gives its WebGL back and asks for no frame", async () => {
    const assistant = await open("GetNeighbor", { options: { reducedMotion: "no-preference" } });
    await assistant.call("GetNeighbor", { entity: FILM });
    assert.equal(
      await assistant.inner.evaluate("contexts.length > 0 && contexts.every((each) => !each.isContextLost())"),
      true,
    );
    assert.deepEqual((await assistant.request("ui/resource-teardown", { reason: "closed" })).result, {});
    assert.equal(await assistant.inner.evaluate("contexts.every((each) => each.isContextLost())"), true);
    const before = await assistant.frames();
    await assistant.call("GetNeighbor", { entity: PERSON });
    await assistant.widen(500);
    assert.equal(await assistant.frames(), before);
    assert.deepEqual(assistant.troubles, []);
  });

  test("labels, values and ids of any text are drawn as text, and a link is the host's to open", async () => {
    const file = join(mkdtempSync(join(tmpdir(), "kg-sextant-view-")), "hostile.ttl");
    writeFileSync(file, HOSTILE);
    const server = await serve(file);
    const assistant = await open("GetNeighbor", {}, server);
    const { frame, troubles } = assistant;
    await assistant.call("GetNeighbor", { entity: "e:a" });
    assert.equal((await assistant.drawn())[0], 4);
    await frame.getByRole("button", { name: "<img src=x" }).first().click();
    await frame.getByRole("heading", { name: "<img src=x onerror=alert(1)>" }).waitFor();
    assert.equal(await frame.locator("main img, main svg, main b, main script").count(), 0);
    assert.doesNotMatch(await frame.locator("body").innerText(), /[\u202a-\u202e]/);
    const { content } = await assistant.message("ui/update-model-context");
    assert.match(JSON.stringify(content), /^.{60,300}$/);
    const link = frame.getByRole("link", { name: "https://good.example/?a=<b>" });
    await link.click();
    await link.click({ button: "middle" });
    assert.deepEqual(await assistant.message("ui/open-link"), { url: "https://good.example/?a=%3Cb%3E" });
    assert.equal(assistant.sent.filter(({ method }) => method === "ui/open-link").length, 2);
    assert.deepEqual(troubles, []);
    server.stop();
  });

  test("what the host does not let it call is reported once, and the rest goes on", async () => {
    const assistant = await open("GetNeighbor", { refused: ["Retrieve", "Degree", "GetPath"] });
    const { frame } = assistant;
    await assistant.call("GetNeighbor", { entity: FILM });
    await frame.getByRole("status").getByText("without Retrieve, which the assistant refuses").waitFor();
    await frame.getByRole("button", { name: "Stewauus Wastšeieda" }).first().click();
    await frame.getByRole("status").getByText("without Retrieve, Degree, which the assistant refuses").waitFor();
    await frame.getByRole("button", { name: "Expand" }).click();
    await assistant.idle();
    assert.ok((await assistant.drawn())[0] > 16);
    await frame.getByRole("button", { name: "Path from here" }).click();
    await frame.getByRole("button", { name: "Amber Engine" }).first().click();
    await frame.getByRole("status").getByText("GetPath is not allowed.").waitFor();
    const unable = await open("GetNeighbor", { capabilities: {} });
    await unable.call("GetNeighbor", { entity: FILM });
    await unable.frame.getByRole("button", { name: "Stewauus Wastšeieda" }).first().click();
    await unable.idle();
    assert.equal(unable.sent.filter(({ method }) => method === "tools/call").length, 0);
  });

  test("of several graphs it asks the one that the model asked, whether or not the host shows the choice", async () => {
    const folder = mkdtempSync(join(tmpdir(), "kg-sextant-view-"));
    const words = ["people", "films"].map((name) => {
      const file = join(folder, `${name}.ttl`);
      writeFileSync(
        file,
        `@prefix e: <http://e.example/> . @prefix r: <http://www.w3.org/2000/01/rdf-schema#> .
        e:x r:label "X of ${name}" ; e:r e:y . e:y r:label "Y of ${name}" .`,
      );
      return `${name}=${file}`;
    });
    const server = await serve(...words);
    for (const context of [{}, { toolInfo: undefined }]) {
      const assistant = await open("GetNeighbor", { context }, server);
      await assistant.call("GetNeighbor", { entity: "e:x", graph: "films" });
      await assistant.frame.getByRole("button", { name: "Y of films" }).click();
      await assistant.idle();
      const graphs = assistant.sent.filter(({ method }) => method === "tools/call").map(({ params }) => dataOf(params));
      assert.deepEqual([...new Set(graphs.map(({ arguments: given }) => dataOf(given).graph))], ["films"]);
      assert.deepEqual(assistant.troubles, []);
    }
    server.stop();
  });

  test("only the window that holds it is heard", async () => {
    const assistant = await open("GetNeighbor");
    await assistant.page.evaluate(`new Promise((resolve) => {
      const other = document.body.appendChild(document.createElement("iframe"));
      other.contentWindow.eval("parent.frames[0].postMessage({ jsonrpc: '2.0', method: 'ui/notifications/tool-cancelled' }, '*')");
      setTimeout(resolve);
    })`);
    await assistant.request("ping");
    assert.match(await assistant.frame.locator("#empty").innerText(), /^Waiting for what/);
  });

  for (const theme of ["light", "dark"])
    test(`axe finds nothing amiss in the frame, ${theme}`, async () => {
      const context = { theme, availableDisplayModes: ["inline", "fullscreen"] };
      for (const width of [420, 760]) {
        const assistant = await open("observe", { width, context, options: { bypassCSP: true } });
        assert.deepEqual(await violations(assistant.inner), [], "waiting");
        await assistant.call("observe", { question: "who directed it", entities: [FILM] });
        await assistant.frame.getByRole("button", { name: "Amber Engine" }).first().click();
        await assistant.idle();
        assert.deepEqual(await violations(assistant.inner), [], "inline");
        await assistant.frame.getByRole("button", { name: "Full screen" }).click();
        await assistant.idle();
        assert.deepEqual(await violations(assistant.inner), [], "fullscreen");
      }
    });
});
