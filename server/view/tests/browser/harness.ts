// Real servers of this repository, and a real Chromium that looks at them.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Frame,
  type Page,
} from "playwright-core";

const ROOT = resolve("../..");
export const RECORD = join(ROOT, "docs/examples/goethe.jsonl");
const COMMAND = join(ROOT, ".venv/bin/kg-sextant");
const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const WEBGL = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"];

const found = process.env.CHROMIUM ?? BROWSERS.find(existsSync);

/** Why no browser can be started; false where one can. Where CI is set, that is a failure. */
export const missing: string | false =
  found || process.env.CI ? false : "Chromium is not installed: tools/install_engines.sh brings it.";

export async function launch(...args: string[]): Promise<Browser> {
  if (!found) throw new Error("Chromium is not installed: tools/install_engines.sh brings it.");
  return await chromium.launch({ executablePath: found, args: ["--no-sandbox", ...(args.length ? args : WEBGL)] });
}

const running = new Set<() => void>();

/** End the servers that a test which failed has left. */
export function stopAll(): void {
  for (const stop of running) stop();
}

export interface Server {
  /** The address of its page. */
  readonly url: string;
  readonly stop: () => void;
}

/** Start a command that serves HTTP, and wait until it does; what it keeps is in a folder of its own. */
export async function start(words: readonly string[], environ: NodeJS.ProcessEnv = {}): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), "kg-sextant-view-"));
  const env = { ...process.env, KG_SEXTANT_CACHE_FOLDER: folder, KG_SEXTANT_DATA_FOLDER: folder, ...environ };
  const server = spawn(COMMAND, [...words], { env, stdio: ["ignore", "ignore", "pipe"] });
  const stop = (): void => {
    running.delete(stop);
    server.kill();
    rmSync(folder, { recursive: true, force: true });
  };
  running.add(stop);
  const said: string[] = [];
  for await (const line of createInterface(server.stderr)) {
    said.push(line);
    const endpoint = /^Serving .* at (\S+)mcp$/.exec(line)?.[1];
    if (endpoint) {
      server.stderr.resume();
      return { url: endpoint, stop };
    }
  }
  stop();
  throw new Error(`The server did not start: ${said.join("\n")}`);
}

export async function serve(...words: string[]): Promise<Server> {
  return await start(["serve", ...words, "--http", "127.0.0.1:0"]);
}

/** Run a command to its end, and return what it prints. */
export function run(words: readonly string[], environ: NodeJS.ProcessEnv): string {
  return execFileSync(COMMAND, [...words], {
    env: { ...process.env, ...environ },
    stdio: ["ignore", "pipe", "ignore"],
  }).toString();
}

/** A page, and whatever happened in it that should not. */
export interface Watched {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly troubles: string[];
}

/** Open a page; everything on its console is a trouble, as is every request to anything but the page and its endpoint. */
export async function open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const troubles: string[] = [];
  const origin = new URL(url).origin;
  page.on("console", (message) => troubles.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const asked = new URL(request.url());
    if (asked.protocol !== "data:" && (asked.origin !== origin || !["/", "/mcp"].includes(asked.pathname)))
      troubles.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  await idle(page);
  return { page, context, troubles };
}

/** Wait until nothing is under way. */
export async function idle(page: Page): Promise<void> {
  await page.waitForSelector("body[aria-busy=false]");
}

/** Turn to a tab of the side. */
export async function tab(page: Page, name: string): Promise<void> {
  await page.getByRole("tab", { name, exact: true }).click();
  await idle(page);
}

/** Search by keyboard, and open the best match. */
export async function search(page: Page, text: string): Promise<void> {
  await page.keyboard.press("/");
  await page.keyboard.type(text);
  await page.locator("#found").getByRole("option").first().waitFor();
  await page.keyboard.press("Enter");
  await page.locator("#found").waitFor({ state: "hidden" });
  await idle(page);
}

/** Return how many nodes and lines are drawn. */
export async function drawn(page: Page): Promise<[nodes: number, lines: number]> {
  const stage = page.locator("#stage");
  return [Number(await stage.getAttribute("data-nodes")), Number(await stage.getAttribute("data-lines"))];
}

/** A graph whose texts would do harm wherever they were not taken as text. */
export const HOSTILE = String.raw`
@prefix e: <http://e.example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:a rdfs:label "<img src=x onerror=alert(1)><script>alert(2)</script>" ; e:r e:b , e:c , <javascript:alert(3)> ;
  e:home "javascript:alert(4)" , "https://good.example/?a=<b>" , "${"long ".repeat(20_000)}" .
e:b rdfs:label "\u202Egnp.evil\u202C" . e:c rdfs:label "\"><svg onload=alert(5)>" . e:r rdfs:label "</td><b>r</b>" .
<javascript:alert(3)> rdfs:label "href" .
`;

const AXE = readFileSync("node_modules/axe-core/axe.min.js", "utf8");
const CHECK = `axe.run().then((result) =>
  result.violations.flatMap((each) => each.nodes.map((node) => each.id + ": " + node.html)))`;

/** Return what axe finds amiss, in a page that bypasses its policy: that would keep axe out. */
export async function violations(page: Page | Frame): Promise<string[]> {
  await page.evaluate(AXE);
  const found: unknown = await page.evaluate(CHECK);
  assert.ok(Array.isArray(found));
  return found.map(String);
}
