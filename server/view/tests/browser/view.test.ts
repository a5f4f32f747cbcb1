import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import {
  drawn,
  HOSTILE,
  idle,
  launch,
  missing,
  open,
  RECORD,
  run,
  type Server,
  search,
  serve,
  start,
  stopAll,
  tab,
  violations,
} from "./harness";

const ENTITY = "#entity=w%3AE7939";
const HUB = "#entity=w%3AE2203";
describe("the page in a browser", { skip: missing, timeout: 300_000 }, () => {
  let browser: Browser;
  let world: Server;

  before(async () => {
    [browser, world] = await Promise.all([launch(), serve("sample:world")]);
  });
  after(async () => {
    stopAll();
    await browser.close();
  });

  test("a person searches, expands, links, queries and replays a run, and nothing goes wrong", async () => {
    const { page, context, troubles } = await open(browser, world.url);
    const [classes, links] = await drawn(page);
    assert.ok(classes === 32 && links > 50, `the definition is drawn: ${classes} and ${links}`);

    await search(page, "Beimus Keil");
    await page.getByRole("heading", { name: "Beimus Keilkaru" }).waitFor();
    await page.getByRole("cell", { name: "1980-03-13" }).waitFor();
    const [nodes] = await drawn(page);
    assert.ok(nodes >= 8 && nodes < 32, `its neighbours are drawn: ${nodes}`);
    await tab(page, "Facts");
    await page.getByRole("listitem").filter({ hasText: "Beimus Keilkaru place of birth → Vlistšehaven" }).waitFor();

    await tab(page, "Details");
    await page.getByRole("button", { name: "Path from here" }).click();
    await search(page, "Maard Park");
    assert.match(await page.getByRole("status").innerText(), /paths? links? Beimus Keilkaru .* and Maard Park/);
    await tab(page, "Facts");
    assert.ok((await page.locator("li.evidence").count()) >= 3, "the path stands out in the list");

    await tab(page, "Query");
    await page
      .getByRole("textbox", { name: "Query" })
      .fill('SELECT ?who WHERE { @"Amber Engine" @"cast member" ?who }');
    await page.keyboard.press("Control+Enter");
    await page.getByRole("button", { name: "Krichia H. Dostard" }).waitFor();
    assert.equal(await page.getByRole("group", { name: "Rows" }).getByRole("row").count(), 10);
    await page.getByText("The call behind this").click();
    assert.match(await page.locator("#call-text pre").innerText(), /^kg-sextant call Sparql 'query=SELECT \?who/);
    const [before] = await drawn(page);
    await page.getByRole("button", { name: "Draw", exact: true }).click();
    await idle(page);
    assert.ok((await drawn(page))[0] > before, "its rows are drawn as well");

    await tab(page, "Runs");
    await page.getByLabel("Record of a run").setInputFiles(RECORD);
    await page.getByText("Frankfurt", { exact: true }).waitFor();
    await page.getByRole("button", { name: "First" }).click();
    assert.deepEqual(await drawn(page), [0, 0]);
    assert.equal(await page.getByText("Frankfurt", { exact: true }).count(), 0);
    for (let step = 0; step < 3; step += 1) await page.getByRole("button", { name: "Next" }).click();
    assert.ok((await drawn(page))[0] > 3, "what the first calls found is drawn");
    assert.deepEqual(troubles, []);
    await context.close();
  });

  test("keys alone select, expand, hide, isolate and undo, and the address leads back to the same", async () => {
    const { page, context, troubles } = await open(browser, world.url + ENTITY);
    const first = await drawn(page);
    await page.locator("#stage").focus();
    for (const key of ["ArrowDown", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowRight"]) await page.keyboard.press(key);
    await idle(page);
    const chosen = await page.getByRole("heading", { level: 2 }).first().innerText();
    await page.keyboard.press("h");
    assert.equal((await drawn(page))[0] < first[0], true, `${chosen} is hidden`);
    await page.keyboard.press("u");
    assert.deepEqual(await drawn(page), first);
    await page.keyboard.press("2");
    await page.getByRole("button", { name: "Vlistšehaven" }).focus();
    await page.keyboard.press("Enter");
    await idle(page);
    await page.keyboard.press("i");
    assert.deepEqual(await drawn(page), [2, 1]);
    await page.keyboard.press("a");
    await page.keyboard.press("e");
    await idle(page);
    assert.ok((await drawn(page))[0] > first[0], "it is expanded");
    const wrong = await open(browser, `${world.url}#from=w%3AE7939&to=w%3AE0`);
    assert.match(await wrong.page.getByRole("status").innerText(), /^This graph has no entity 'w:E0'/);
    await wrong.context.close();
    const again = await open(browser, page.url());
    assert.deepEqual(await drawn(again.page), first);
    assert.deepEqual([...troubles, ...again.troubles], []);
    await context.close();
    await again.context.close();
  });

  test("a click on a line shows what it stands for, and one beside it no more", async () => {
    const { page, context, troubles } = await open(browser, world.url + ENTITY);
    const facts = page.getByRole("list", { name: "Facts of the line" });
    const box = await page.locator("#stage").boundingBox();
    assert.ok(box);
    const [x, middle] = [box.x + box.width / 2, box.y + box.height / 2];
    /** Click on the only line, which leads through the middle. */
    const click = async (): Promise<void> => {
      await page.keyboard.press("f");
      const isFound = `document.getElementById("stage").style.cursor === "pointer"`;
      for (let step = -40; step < 40 && !(await page.evaluate(isFound)); step += 2)
        await page.mouse.move(x, middle + step);
      await page.mouse.down();
      await page.mouse.up();
      await facts.waitFor();
    };
    await tab(page, "Facts");
    await page.getByRole("button", { name: "Vlistšehaven" }).click();
    await idle(page);
    await page.keyboard.press("i");
    assert.deepEqual(await drawn(page), [2, 1]);
    await click();
    await page
      .getByRole("heading", { name: /^(Beimus Keilkaru – Vlistšehaven|Vlistšehaven – Beimus Keilkaru)$/ })
      .waitFor();
    assert.match(await facts.innerText(), /Beimus Keilkaru\s+place of birth →\s+Vlistšehaven\s+w:\S+$/);
    // What comes soon after a click is a double click, and only the one after that a click.
    for (let tries = 0; tries < 9 && (await facts.isVisible()); tries += 1) await page.mouse.click(x, box.y + 8);
    await page.getByText("Choose a node or a line").waitFor();

    await page.getByRole("button", { name: "Clear" }).click();
    await tab(page, "Query");
    await page.getByRole("textbox", { name: "Query" }).fill('SELECT ?a ?b { ?a @"cast member" ?b } LIMIT 1');
    await page.keyboard.press("Control+Enter");
    await page.getByRole("button", { name: "Draw", exact: true }).click();
    await idle(page);
    assert.deepEqual(await drawn(page), [2, 1]);
    await page.locator("#stage").focus();
    await click();
    await facts.getByText("That is no fact of the graph.").waitFor();
    const saving = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save as SVG" }).press("Enter");
    assert.match(readFileSync(await (await saving).path(), "utf8"), /^(?!.*<polygon).*<line /s, "it has no head");
    await facts.getByRole("button").first().click();
    await page.getByRole("button", { name: "Path from here" }).waitFor();
    assert.deepEqual(troubles, []);
    await context.close();
  });

  test("a hub opens its relations with their counts before any line is drawn", async () => {
    const { page, context, troubles } = await open(browser, world.url + HUB);
    assert.deepEqual(await drawn(page), [1, 0]);
    await page.getByRole("heading", { name: "1,030 links, 1,030 not drawn" }).waitFor();
    const more = page.getByRole("button", { name: "Draw more of gender, incoming" });
    for (const expected of [21, 41]) {
      await more.click();
      await idle(page);
      assert.equal((await drawn(page))[0], expected);
    }
    await page.getByRole("cell", { name: "40 of 1,029" }).waitFor();
    await tab(page, "Filter");
    await page.getByRole("checkbox", { name: "gender" }).first().uncheck();
    assert.deepEqual(await drawn(page), [1, 0]);
    await page.getByRole("button", { name: "Show all", exact: true }).click();
    assert.deepEqual(await drawn(page), [41, 40]);
    assert.deepEqual(troubles, []);
    await context.close();
  });

  test("labels, values and ids of any text are drawn as text, and only addresses of the web become links", async () => {
    const file = join(mkdtempSync(join(tmpdir(), "kg-sextant-view-")), "hostile.ttl");
    writeFileSync(file, HOSTILE);
    const server = await serve(file);
    const { page, context, troubles } = await open(browser, `${server.url}#entity=e%3Aa`);
    assert.equal((await drawn(page))[0], 4);
    await page.getByRole("heading", { name: "<img src=x onerror=alert(1)><script>alert(2)</script>" }).waitFor();
    for (const kind of ["SVG", "PNG"]) {
      const [saved] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: `Save as ${kind}` }).press("Enter"),
      ]);
      const file = readFileSync(await saved.path());
      if (kind === "PNG") assert.equal(file.subarray(1, 4).toString(), "PNG");
      else assert.match(file.toString(), /^<svg [^>]*>(?!.*<(img|script|b)\b).*<circle .*>&lt;img src=x/s);
    }
    for (const name of ["Facts", "Filter", "Schema", "Details"]) {
      await tab(page, name);
      assert.equal(await page.locator("main img, main svg, main b, main script").count(), 0);
      for (const link of await page.locator("main a").all())
        assert.match((await link.getAttribute("href")) ?? "", /^https?:/);
    }
    assert.doesNotMatch(await page.locator("body").innerText(), /[\u202a-\u202e]/);
    assert.deepEqual(troubles, []);
    await context.close();
    server.stop();
  });

  test("five thousand nodes with long names are drawn, one of a million characters, and the mouse finds them", async () => {
    const labels = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, at) => [`e:${at}`, `${at} ${"name ".repeat(40)}`]),
    );
    labels["e:0"] = "x".repeat(1_000_000);
    const rows = Array.from({ length: 4_999 }, (_, at) => [`e:${at + 1}`, "e:r", "e:0"]);
    const data = { variables: ["subject", "predicate", "object"], rows, labels };
    const [asked] = readFileSync(RECORD, "utf8").split("\n");
    const record = join(mkdtempSync(join(tmpdir(), "kg-sextant-view-")), "many.jsonl");
    writeFileSync(record, `${asked}\n${JSON.stringify({ kind: "tool", tool: "Sparql", data })}\n`);
    const { page, context, troubles } = await open(browser, world.url);
    await tab(page, "Runs");
    await page.getByLabel("Record of a run").setInputFiles(record);
    await page.getByRole("button", { name: "1. Sparql" }).waitFor();
    await idle(page);
    assert.deepEqual(await drawn(page), [5_000, 4_999]);
    await tab(page, "Facts");
    await page.getByRole("button", { name: "xxx" }).first().click();
    await tab(page, "Details");
    await page.getByText("1,000,000 characters").waitFor();
    const box = await page.locator("#stage").boundingBox();
    assert.ok(box);
    const isFound = async (): Promise<boolean> => await page.locator("canvas.sigma-hovers").isVisible();
    for (let step = 0; step < 200 && !(await isFound()); step += 1)
      await page.mouse.move(box.x + box.width / 2 + step, box.y + box.height / 2 + (step % 7));
    await page.mouse.down();
    await page.mouse.up();
    await page.getByRole("heading", { name: /^\d+ name|^xxx/ }).waitFor();
    assert.deepEqual(troubles, []);
    await context.close();
  });

  test("ids that JavaScript has uses for are drawn like others", async () => {
    const file = join(mkdtempSync(join(tmpdir(), "kg-sextant-view-")), "graph.json");
    const node = (name: string, ...calls: string[]): object => ({ features: { name }, neighbors: { calls } });
    const nodes = [
      ["constructor", node("C", "toString", "__proto__")],
      ["toString", node("T")],
      ["__proto__", node("P", "constructor")],
    ];
    writeFileSync(file, JSON.stringify({ function_nodes: Object.fromEntries(nodes) }));
    const server = await serve(file);
    const { page, context, troubles } = await open(browser, `${server.url}#entity=constructor`);
    assert.deepEqual(await drawn(page), [3, 2]);
    assert.equal(await page.locator("#status.bad").count(), 0);
    await tab(page, "Facts");
    await page.getByRole("button", { name: "P", exact: true }).first().click();
    await tab(page, "Details");
    await page.getByRole("heading", { name: "P", exact: true }).waitFor();
    assert.deepEqual(troubles, []);
    await context.close();
    server.stop();
  });

  test("of several graphs one is chosen, which the address and the call name", async () => {
    const folder = mkdtempSync(join(tmpdir(), "kg-sextant-view-"));
    const words = ["people", "films"].map((name) => {
      const file = join(folder, `${name}.ttl`);
      writeFileSync(file, `<http://e.example/x> <http://www.w3.org/2000/01/rdf-schema#label> "X of ${name}" .`);
      return `${name}=${file}`;
    });
    const server = await serve(...words);
    const { page, context, troubles } = await open(browser, server.url);
    await page.locator("#graph").selectOption("films");
    await idle(page);
    await search(page, "X of");
    await page.getByRole("heading", { name: "X of films" }).waitFor();
    await page.getByText("The call behind this").click();
    assert.match(await page.locator("#call-text pre").innerText(), / --graph films$/);
    const again = await open(browser, page.url());
    await again.page.getByRole("heading", { name: "X of films" }).waitFor();
    assert.equal(await again.page.locator("#graph").inputValue(), "films");
    assert.deepEqual([...troubles, ...again.troubles], []);
    await context.close();
    await again.context.close();
    server.stop();
  });

  test("where callers log in, the page asks for a token, and for another one if that is wrong", async () => {
    const folder = mkdtempSync(join(tmpdir(), "kg-sextant-view-"));
    const environ = { KG_SEXTANT_HOSTING__TOKENS: join(folder, "tokens.json"), KG_SEXTANT_DATA_FOLDER: folder };
    const token = run(["token", "add", "ada"], environ).trim();
    const server = await start(["serve", "sample:world", "--http", "127.0.0.1:0"], environ);
    const context = await browser.newContext({ reducedMotion: "reduce" });
    const page = await context.newPage();
    await page.goto(server.url + ENTITY);
    for (const [given, asked] of [
      ["\u2022\u2022\u2022", "The server asks for a login."],
      ["kgs_wrong", "The server asks for a login."],
      [token, "The token is not valid."],
    ] as const) {
      await page.getByText(asked).waitFor();
      await page.getByLabel("Token").fill(given);
      await page.getByRole("button", { name: "Log in" }).click();
    }
    await page.getByRole("heading", { name: "Beimus Keilkaru" }).waitFor();
    await context.close();
    server.stop();
  });

  test("explore shows the run that it is given, with the graph that it asked", async () => {
    const server = await start(["explore", "--no-browser", "--trace", RECORD]);
    const { page, context, troubles } = await open(browser, `${server.url}#trace=kg-trace%3A%2F%2Frun`);
    await page.getByRole("heading", { name: "Where was Goethe born?" }).waitFor();
    await page.getByText("Johann Wolfgang von Goethe | place of birth | Frankfurt").waitFor();
    const legend = page.getByRole("list", { name: "Classes" });
    await legend.getByText("human").waitFor();
    const counts = (await legend.locator(".note").allInnerTexts()).map(Number);
    const [nodes] = await drawn(page);
    assert.equal(
      counts.reduce((sum, each) => sum + each, 0),
      nodes,
      "the classes beyond the colours are counted together",
    );
    await tab(page, "Schema");
    const [classes, links] = await drawn(page);
    assert.ok(classes < 100 && links > 50, `of many classes the foremost are drawn: ${classes} and ${links}`);
    assert.deepEqual(troubles, []);
    await context.close();
    server.stop();
  });

  test("without WebGL the list of facts stands in for the picture", async () => {
    const blind = await launch("--disable-gpu", "--disable-3d-apis");
    const { page } = await open(blind, world.url + ENTITY);
    await page.getByText("This browser draws no WebGL.").waitFor();
    await tab(page, "Facts");
    await page.getByRole("button", { name: "Vlistšehaven" }).waitFor();
    await blind.close();
  });

  for (const colorScheme of ["light", "dark"] as const)
    test(`axe finds nothing amiss in any tab, ${colorScheme}`, async () => {
      const { page, context } = await open(browser, world.url + ENTITY, { colorScheme, bypassCSP: true });
      await tab(page, "Query");
      await page
        .getByRole("textbox", { name: "Query" })
        .fill('SELECT ?who WHERE { @"Amber Engine" @"cast member" ?who }');
      await page.getByRole("button", { name: "Run" }).click();
      await page.getByRole("button", { name: "Krichia H. Dostard" }).waitFor();
      await page.getByText("The call behind this").click();
      for (const name of ["Query", "Details", "Facts", "Filter", "Runs", "Schema"]) {
        await tab(page, name);
        assert.deepEqual(await violations(page), [], name);
      }
      await page.getByRole("button", { name: "Help and keys" }).click();
      assert.deepEqual(await violations(page), [], "help");
      await context.close();
    });
});
