// Measures how fast the page draws graphs of three sizes: npm run frames -- [OTHER_PAGE.html …]
// Each other built page, such as the one before a change, is measured in turn with the page as it is now.

import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { launch, type Server, start } from "./harness";

const SIZES = [100, 1_000, 5_000];
const RUNS = 3;
const MOVING_MS = 2_000;
const COMMUNITY = 25;

/** Return whole numbers below a limit that are always the same. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const SYLLABLES = "ka le mi so tu ra ven dor bel gas tin mor pel ast ien".split(" ");
const RELATIONS = ["part of", "works for", "place of birth", "member of", "influenced by", "located in"];

/** Make a graph of communities around hubs, with links between them, as triples of ids with labels. */
function made(size: number): { triples: string[][]; labels: Record<string, string> } {
  const next = random(size);
  const id = (at: number): string => `e:N${at}`;
  const word = (): string => Array.from({ length: 2 + next(3) }, () => SYLLABLES[next(SYLLABLES.length)]).join("");
  const labels = Object.fromEntries(Array.from({ length: size }, (_, at) => [id(at), `${word()} ${word()}`]));
  const triples = Array.from({ length: size - 1 }, (_, at) => {
    const node = at + 1;
    const hub = node % COMMUNITY ? node - (node % COMMUNITY) : next(node);
    return [id(node), `e:r${next(RELATIONS.length)}`, id(hub)];
  });
  for (let more = 0; more < size / 2; more += 1) {
    const node = next(size);
    const near = node - (node % COMMUNITY) + next(COMMUNITY);
    const other = next(4) ? Math.min(near, size - 1) : next(size);
    if (node !== other) triples.push([id(node), `e:r${next(RELATIONS.length)}`, id(other)]);
  }
  return { triples, labels };
}

/** Serve a made graph, and the record of a run that found all of it at once. */
async function serve(size: number): Promise<Server> {
  const { triples, labels } = made(size);
  const folder = mkdtempSync(join(tmpdir(), "kg-sextant-view-"));
  const full = (id: string): string => `<http://e.example/${id.slice(2)}>`;
  const named = [...Object.entries(labels), ...RELATIONS.map((label, at) => [`e:r${at}`, label] as const)];
  const lines = [
    ...triples.map((triple) => `${triple.map(full).join(" ")} .`),
    ...named.map(([id, label]) => `${full(id)} <http://www.w3.org/2000/01/rdf-schema#label> "${label}" .`),
    ...Object.keys(labels).map((id, at) => `${full(id)} a <http://e.example/Class${Math.floor(at / COMMUNITY) % 8}> .`),
  ];
  const graph = join(folder, "made.ttl");
  writeFileSync(graph, lines.join("\n"));
  const relations = Object.fromEntries(RELATIONS.map((label, at) => [`e:r${at}`, label]));
  const data = { variables: ["subject", "predicate", "object"], rows: triples, labels, relations };
  const asked = readFileSync("../../docs/examples/goethe.jsonl", "utf8").split("\n")[0] ?? "";
  const call = { kind: "tool", tool: "Sparql", arguments: {}, text: "", data, failed: false, error: "", took_s: 0 };
  const record = join(folder, "made.jsonl");
  writeFileSync(record, `${asked}\n${JSON.stringify({ ...call, at_s: 0 })}\n`);
  return await start(["explore", graph, "--no-browser", "--trace", record]);
}

/** What the page is watched by: it notes each frame that draws, each long task, and when the whole was first painted. */
const WATCH = (size: number): string => `
  window.seen = { frames: [], tasks: [], painted: 0, chosen: 0 };
  for (const name of ["drawArrays", "drawArraysInstanced"]) {
    const draw = WebGL2RenderingContext.prototype[name];
    WebGL2RenderingContext.prototype[name] = function (...given) {
      const at = document.timeline.currentTime;
      const { frames } = window.seen;
      if (frames.at(-1)?.at === at) frames.at(-1).drawn = performance.now();
      else frames.push({ at, drawn: performance.now() });
      if (!window.seen.painted && given[2] * (given[3] ?? 1) >= 3 * ${size} && this.canvas.className !== "sigma-hoverNodes") {
        window.seen.painted = performance.now();
        requestAnimationFrame(() => setTimeout(() => { window.seen.painted = performance.now(); }));
      }
      return draw.apply(this, given);
    };
  }
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) window.seen.tasks.push({ at: startTime, duration });
  }).observe({ type: "longtask", buffered: true });
  addEventListener("click", () => {
    const began = performance.now();
    new MutationObserver((_, watcher) => {
      if (!document.querySelector("#panel h2")) return;
      watcher.disconnect();
      requestAnimationFrame(() => setTimeout(() => { window.seen.chosen = performance.now() - began; }));
    }).observe(document.getElementById("panel"), { childList: true, subtree: true });
  }, true);
`;
const ARRIVED = `performance.getEntriesByType("resource").reduce((most, each) =>
  each.decodedBodySize > most.decodedBodySize ? each : most).responseEnd`;
const RESTED = `window.seen.painted > 0 && document.body.getAttribute("aria-busy") === "false"
  && performance.now() - window.seen.frames.at(-1).drawn > 1000`;

async function numberOf(page: Page, expression: string): Promise<number> {
  return Number(await page.evaluate(expression));
}

/** Wait until an expression holds; the page's policy keeps out what playwright has for this. */
async function until(page: Page, expression: string): Promise<void> {
  while (!(await page.evaluate(expression))) await page.waitForTimeout(50);
}

/** Return the rate of frames that were drawn since a time, and the longest task, in ms. */
async function since(page: Page, from: number, end = "performance.now()"): Promise<[rate: number, longest: number]> {
  const frames = `window.seen.frames.filter((each) => each.drawn >= ${from}).length`;
  const longest = `Math.max(0, ...window.seen.tasks.filter((each) => each.at + each.duration > ${from}).map((each) => each.duration))`;
  const seconds = (await numberOf(page, end)) - from;
  return [(1_000 * (await numberOf(page, frames))) / seconds, await numberOf(page, longest)];
}

/** Return how long all processes of a browser have used a core, in ms. */
async function usedMs(browser: Browser): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  return 1_000 * processInfo.reduce((sum, each) => sum + each.cpuTime, 0);
}

type Act = (page: Page, step: number, middle: readonly [number, number]) => Promise<void>;

/** Move for a while, and return what `since` does, and the ms of a core that a frame took in all processes. */
async function moving(browser: Browser, page: Page, middle: readonly [number, number], act: Act): Promise<number[]> {
  const from = await numberOf(page, "performance.now()");
  const used = await usedMs(browser);
  for (let step = 0; (await numberOf(page, "performance.now()")) < from + MOVING_MS; step += 1)
    await act(page, step, middle);
  const spent = (await usedMs(browser)) - used;
  const [rate, longest] = await since(page, from);
  return [rate, spent / ((rate * MOVING_MS) / 1_000), longest];
}

const drag: Act = async (page, step) => {
  const turn = step / 8;
  await page.mouse.move(30 + 80 * (1 - Math.cos(turn)), 130 + 60 * Math.sin(turn));
};
const zoom: Act = async (page, step) => {
  await page.mouse.wheel(0, step % 16 < 8 ? -120 : 120);
};
const hover: Act = async (page, step, [x, y]) => {
  await page.mouse.move(x + 3 * step * Math.cos(step / 3), y + 2 * step * Math.sin(step / 3));
};

/** Click the node nearest to the middle, and return how long until its card is painted, in ms. */
async function choose(page: Page, [x, y]: readonly [number, number]): Promise<number> {
  for (let step = 0; step < 400; step += 1) {
    const turn = step / 4;
    await page.mouse.move(x + 2 * turn * Math.cos(turn), y + 2 * turn * Math.sin(turn));
    if ((await page.locator("#stage").evaluate((stage) => stage.style.cursor)) === "pointer") break;
  }
  await page.mouse.down();
  await page.mouse.up();
  await until(page, "window.seen.chosen > 0");
  return await numberOf(page, "window.seen.chosen");
}

async function measured(browser: Browser, url: string, size: number, html: string | null): Promise<number[]> {
  const context = await browser.newContext();
  const page = await context.newPage();
  if (html !== null) await page.route(url, (route) => route.fulfill({ body: html, contentType: "text/html" }));
  await page.addInitScript(WATCH(size));
  await page.goto(`${url}#trace=kg-trace%3A%2F%2Frun`);
  await until(page, RESTED);
  const arrived = await numberOf(page, ARRIVED);
  const first = (await numberOf(page, "window.seen.painted")) - arrived;
  const last = "window.seen.frames.at(-1).drawn";
  const rest = (await numberOf(page, last)) - arrived;
  const [layout, blocked] = await since(page, arrived, last);
  const box = await page.locator("#stage").boundingBox();
  const middle = [(box?.x ?? 0) + (box?.width ?? 0) / 2, (box?.y ?? 0) + (box?.height ?? 0) / 2] as const;
  await page.mouse.move(30, 130);
  await page.mouse.down();
  const panning = await moving(browser, page, middle, drag);
  await page.mouse.up();
  await page.mouse.move(...middle);
  const zooming = await moving(browser, page, middle, zoom);
  await page.keyboard.press("f");
  const hovering = await moving(browser, page, middle, hover);
  const chosen = await choose(page, middle);
  await context.close();
  return [first, layout, blocked, rest, ...panning, ...zooming, ...hovering, chosen];
}

const COLUMNS = [
  ..."first frame ms|layout frames/s|longest task ms|rest ms".split("|"),
  ...["pan", "zoom", "hover"].flatMap((act) => [`${act} frames/s`, "core ms a frame", "longest task ms"]),
  "select ms",
];

function median(numbers: readonly number[]): number {
  return [...numbers].sort((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

async function main(): Promise<void> {
  const pages = process.argv.slice(2).map((path) => [basename(path), readFileSync(path, "utf8")] as const);
  const browser = await launch();
  console.log(
    `Medians of ${RUNS}, Chromium ${browser.version()}, WebGL in software (SwiftShader), ${cpus().length} cores.`,
  );
  console.log(`| nodes | page | ${COLUMNS.join(" | ")} |\n|${"---|".repeat(COLUMNS.length + 2)}`);
  for (const size of SIZES) {
    const server = await serve(size);
    const all = new Map<string, number[][]>();
    for (let run = 0; run < RUNS; run += 1)
      for (const [name, html] of [["now", null] as const, ...pages])
        all.set(name, [...(all.get(name) ?? []), await measured(browser, server.url, size, html)]);
    for (const [name, runs] of all) {
      const cells = COLUMNS.map((_, at) => Math.round(median(runs.map((run) => run[at] ?? Number.NaN))));
      console.log(`| ${size} | ${name} | ${cells.join(" | ")} |`);
    }
    server.stop();
  }
  await browser.close();
}

await main();
