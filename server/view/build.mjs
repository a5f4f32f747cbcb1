// Builds the page, one HTML file with all that it needs and the licences of what is in it; with --check, compares it with
// the committed file; with --tests, builds the tests.

import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const PAGE = new URL("../kg_server/view.html", import.meta.url);
const MOST_BYTES = 250_000;
const here = (name) => new URL(name, import.meta.url);

const COMMON = { bundle: true, write: false, legalComments: "none", absWorkingDir: import.meta.dirname };

/** Return the licences of the packages that a bundle took files from: each wording once, below those who use it. */
async function licences(metafile) {
  const names = new Set(
    Object.keys(metafile.inputs).flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
  );
  const byWording = new Map();
  for (const name of [...names].sort()) {
    const { version, license } = JSON.parse(await readFile(here(`node_modules/${name}/package.json`), "utf8"));
    const file = (await readdir(here(`node_modules/${name}`))).find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`${name} has no file of its licence.`);
    const text = (await readFile(here(`node_modules/${name}/${file}`), "utf8")).replace(/\s+/g, " ").trim();
    const [, copyright, wording] = /^(.*?)(Permission is hereby granted.*)$/.exec(text) ?? [text, "", text];
    const holder = `${name} ${version} (${license}) ${copyright}`.trim();
    byWording.set(wording, [...(byWording.get(wording) ?? []), holder]);
  }
  const texts = [...byWording].map(([wording, holders]) => `${holders.join("\n")}\n\n${wording}`);
  return texts.join("\n\n----\n\n").replaceAll("--", "- -");
}

/** Return the source by which a policy allows an inline text. */
function hashOf(text) {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/**
 * Cuts what graphology says of a wrong call down to the name of its method, as the texts are a quarter of the library, and
 * has it take any id for that of a neighbour, such as `constructor`.
 */
const GRAPHOLOGY = {
  name: "graphology",
  setup: ({ onLoad }) =>
    onLoad({ filter: /graphology\.mjs$/ }, async ({ path }) => {
      const messages = /(new \w+GraphError\(\s*)([`'])([\w.]*)(?:(?!\2)[^\\]|\\.)*\2(?=\s*\))/g;
      const neighbours = /(this\.(?:in|out|undirected) = )\{\}/g;
      const contents = (await readFile(path, "utf8")).replace(messages, '$1"$3"');
      return { contents: contents.replace(neighbours, "$1Object.create(null)"), loader: "js" };
    }),
};

/** Return a script without the comments and indents of its shaders, which are texts to whatever else makes it smaller. */
function withSmallShaders(js) {
  return js.replace(/`[^`]*gl_(?:Position|FragColor)[^`]*`/g, (shader) =>
    shader.replace(/\s*\/\/.*$/gm, "").replace(/\n\s+/g, "\n"),
  );
}

async function page() {
  const alias = { events: "./src/events.ts" };
  const options = { ...COMMON, minify: true, charset: "utf8", target: "es2022", alias };
  const script = await build({
    ...options,
    entryPoints: ["src/main.ts"],
    format: "iife",
    metafile: true,
    plugins: [GRAPHOLOGY],
  });
  const style = await build({ ...options, entryPoints: ["src/style.css"] });
  const [js, css] = [withSmallShaders(script.outputFiles[0].text.trim()), style.outputFiles[0].text.trim()];
  if (/<\/script|<!--/i.test(js)) throw new Error("The script would end its own element.");
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(js)}`,
    `style-src ${hashOf(css)}`,
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
  const parts = { policy, style: css, script: js };
  const template = (await readFile(here("index.html"), "utf8")).replace(/^ +/gm, "");
  const html = template.replace(/@(policy|style|script)@/g, (_, name) => parts[name]);
  return `${html.trim()}\n<!--\nBuilt from server/view. It holds these packages:\n\n${await licences(script.metafile)}\n-->\n`;
}

async function tests() {
  const names = (await readdir(here("tests"), { recursive: true })).filter((name) => name.endsWith(".ts"));
  await build({
    ...COMMON,
    entryPoints: names.map((name) => `tests/${name}`),
    write: true,
    outbase: "tests",
    outdir: "dist/tests",
    outExtension: { ".js": ".mjs" },
    format: "esm",
    platform: "node",
    external: ["playwright-core", "axe-core"],
  });
}

async function main() {
  if (process.argv.includes("--tests")) return await tests();
  const built = await page();
  const bytes = Buffer.byteLength(built);
  if (bytes > MOST_BYTES) throw new Error(`The page has ${bytes} bytes; it may have ${MOST_BYTES}.`);
  if (!process.argv.includes("--check")) await writeFile(PAGE, built);
  else if ((await readFile(PAGE, "utf8").catch(() => "")) !== built)
    throw new Error("server/kg_server/view.html is not what server/view builds. Run make view and commit it.");
  console.log(`${bytes} bytes`);
}

await main();
