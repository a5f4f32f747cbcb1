// Takes pictures of the page: eight scenes at two widths, light and dark, and five in the frame of an assistant. Run it as npm run screenshots -- FOLDER.

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Browser, FrameLocator, Page } from "playwright-core";
import type { Data } from "../../src/json";
import { idle, launch, open, RECORD, type Server, search, serve, start, tab } from "./harness";
import { Assistant } from "./host";
import { model, type Reply } from "./model";

interface Scene {
  readonly name: string;
  readonly place: string;
  readonly act: (page: Page) => Promise<void>;
}

const QUERY = 'SELECT ?film ?who WHERE { ?film @"directed by" @"Stewauus Wastšeieda" ; @"cast member" ?who }';
const FILM = "#entity=w%3AE3900";

const SCENES: readonly Scene[] = [
  { name: "schema", place: "", act: async () => {} },
  { name: "entity", place: FILM, act: async () => {} },
  {
    name: "hub",
    place: "#entity=w%3AE2203",
    act: async (page) => await page.getByRole("button", { name: "Draw more of gender" }).click(),
  },
  {
    name: "path",
    place: FILM,
    act: async (page) => {
      await page.getByRole("button", { name: "Path from here" }).click();
      await search(page, "Port Čistov Foods");
      await tab(page, "Facts");
    },
  },
  {
    name: "query",
    place: "",
    act: async (page) => {
      await tab(page, "Query");
      await page.getByRole("textbox", { name: "Query" }).fill(QUERY);
      await page.getByRole("button", { name: "Run" }).click();
      await page.getByRole("button", { name: "Draw", exact: true }).click();
    },
  },
];

const QUESTION = "Through whom did Goethe influence Einstein?";
const INFLUENCED = "Intersect[Neighbor[Albert Einstein, influenced by], Neighbor[Goethe, -influenced by]]";
const STEPS: readonly Reply[] = [
  [["GetNeighbor", { entity: "Albert Einstein", relation: "influenced by" }]],
  [["Compose", { expression: INFLUENCED, evidence: "all" }]],
  [["answer", { answers: [{ text: "Arthur Schopenhauer", results: [2] }] }]],
];

const PICTURES = 4;

/** A question to a model after so many of its replies, and the server of it. */
async function asked(name: string, steps: readonly Reply[]): Promise<[Server, Scene]> {
  const llm = await model(...Array.from({ length: PICTURES }, () => steps).flat());
  const server = await start(["explore", "--no-browser", ...llm.words]);
  const act = async (page: Page): Promise<void> => {
    await page.getByLabel("Ask a question").fill(QUESTION);
    await page.getByLabel("Ask a question").press("Enter");
    for (const _ of steps) await llm.reply();
    if (steps === STEPS) await page.locator(".answer").waitFor();
    else await page.getByRole("button", { name: "4. Compose" }).waitFor();
  };
  const stop = (): void => {
    server.stop();
    llm.stop();
  };
  return [
    { ...server, stop },
    { name, place: "", act },
  ];
}

async function main(): Promise<void> {
  const folder = resolve(process.argv[2] ?? "dist/screenshots");
  mkdirSync(folder, { recursive: true });
  const [browser, world, run] = await Promise.all([
    launch(),
    serve("sample:world"),
    start(["explore", "--no-browser", "--trace", RECORD]),
  ]);
  const answer: Scene = { name: "answer", place: "#trace=kg-trace%3A%2F%2Frun", act: async () => {} };
  const scenes: [Server, Scene][] = [
    ...SCENES.map((scene): [Server, Scene] => [world, scene]),
    [run, answer],
    await asked("asking", STEPS.slice(0, -1)),
    await asked("asked", STEPS),
  ];
  for (const [server, { name, place, act }] of scenes)
    for (const colorScheme of ["light", "dark"] as const)
      for (const width of [1280, 720]) {
        const { page, context } = await open(browser, server.url + place, {
          colorScheme,
          viewport: { width, height: 800 },
        });
        await act(page);
        // A run that goes on is no end to wait for.
        if (name !== "asking") await idle(page);
        await page.mouse.move(0, 0);
        await page.screenshot({ path: join(folder, `${name}-${colorScheme}-${width}.png`) });
        await context.close();
      }
  await inFrames(browser, world, folder);
  await browser.close();
  for (const [server] of scenes) server.stop();
  console.log(folder);
}

/** Take pictures of what assistants show, narrow, wide and as a whole page. */
async function inFrames(browser: Browser, server: Server, folder: string): Promise<void> {
  const who = "Stewauus Wastšeieda";
  const film = "w:E3900";
  const calls: readonly [name: string, tool: string, given: Data, act: (frame: FrameLocator) => Promise<void>][] = [
    ["waiting", "observe", {}, async () => {}],
    ["path", "GetPath", { source: film, target: "w:E7939" }, async () => {}],
    [
      "observe",
      "observe",
      { question: "who directed it", entities: [film] },
      async (frame) => await frame.getByRole("button", { name: who }).first().click(),
    ],
    ["empty", "GetNeighbor", { entity: film, relation: "directed by", direction: "in" }, async () => {}],
    ["whole", "Compose", { expression: `Neighbor[Neighbor[${film}, cast member], alma mater]` }, async () => {}],
  ];
  for (const [name, tool, given, act] of calls)
    for (const theme of ["light", "dark"])
      for (const width of name === "whole" ? [1280] : [420, 760]) {
        const context = { theme, availableDisplayModes: ["inline", "fullscreen"] };
        const options = { viewport: { width, height: 800 } };
        const assistant = await Assistant.open(browser, server, tool, { width, context, options });
        if (name === "waiting") await assistant.notify("tool-input-partial", { arguments: { entities: ["Lyon"] } });
        else await assistant.call(tool, given);
        if (name === "whole") await assistant.frame.getByRole("button", { name: "Full screen" }).click();
        await act(assistant.frame);
        await assistant.idle();
        await assistant.frames();
        await assistant.page.screenshot({ path: join(folder, `app-${name}-${theme}-${width}.png`) });
        await assistant.end();
      }
}

await main();
