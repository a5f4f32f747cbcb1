import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { drawn, idle, launch, missing, open, run, tab, violations } from "./harness";

const HOSTILE = String.raw`
@prefix e: <http://e.example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:a a e:Town ; rdfs:label "Ada </script><script>alert(1)</script>" ; e:knows e:b ; e:born "1815" . e:b e:knows e:c .
e:b rdfs:label "<!--<script>\u202Egnp" . e:c rdfs:label "Cy" . e:knows rdfs:label "knows" .
`;

describe("the page as a file", { skip: missing, timeout: 120_000 }, () => {
  let browser: Browser;
  before(async () => {
    browser = await launch();
  });
  after(async () => await browser.close());

  test("it draws, filters and finds what it holds, and asks no server", async () => {
    const folder = mkdtempSync(join(tmpdir(), "kg-sextant-view-"));
    const [graph, out] = [join(folder, "people.ttl"), join(folder, "graph.html")];
    writeFileSync(graph, HOSTILE);
    const environ = { KG_SEXTANT_CACHE_FOLDER: folder, KG_SEXTANT_DATA_FOLDER: folder };
    run(["draw", "e:a", "e:c", "--graph", graph, "-o", out, "--title", "Who knows whom?"], environ);
    // Others may have written it.
    writeFileSync(out, readFileSync(out, "utf8").replaceAll("\\u003c!--", "\\u0001\\ud800\\u003c!--"));
    const url = pathToFileURL(out).href;
    const { page, context, troubles } = await open(browser, url);
    assert.deepEqual(troubles.splice(0), [`request: ${url}`], "nothing but the file itself is asked for");
    assert.equal(await page.title(), "Who knows whom?");
    assert.deepEqual(await drawn(page), [3, 2]);
    assert.deepEqual(await page.getByRole("tab").allInnerTexts(), ["Details", "Facts", "Filter"]);

    for (const [kind, expected] of [
      ["SVG", />\ufffd\ufffd&lt;!--/],
      ["PNG", /^.PNG/],
    ] as const) {
      const [saved] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: `Save as ${kind}` }).press("Enter"),
      ]);
      assert.match(readFileSync(await saved.path(), "utf8"), expected);
    }
    await tab(page, "Facts");
    assert.equal(await page.locator("li.evidence").count(), 2);
    await page.getByRole("button", { name: "Ada </script><script>alert(1)</script>" }).first().click();
    await tab(page, "Details");
    await page.getByRole("cell", { name: "1815" }).waitFor();
    for (const name of ["Expand", "Path from here", "Observe"])
      assert.equal(await page.getByRole("button", { name }).count(), 0, `${name} needs a server`);
    for (const key of ["e", "p", "6"]) await page.keyboard.press(key);
    await page.getByRole("button", { name: "Hide" }).click();
    assert.deepEqual(await drawn(page), [2, 1]);
    await page.getByRole("button", { name: "Undo" }).click();

    await page.getByRole("combobox", { name: "Search" }).fill("cy");
    await page.getByRole("option", { name: "Cy" }).click();
    await idle(page);
    await page.getByRole("heading", { name: "Cy" }).waitFor();
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(troubles, []);

    writeFileSync(join(folder, "frame.html"), '<iframe sandbox="allow-scripts" src="graph.html"></iframe>');
    await page.goto(new URL("frame.html", url).href);
    await page.frameLocator("iframe").locator("#stage[data-nodes='3']").waitFor({ state: "attached" });
    await context.close();
  });
});
