import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { drawn, idle, launch, missing, open, serve, start, stopAll, tab } from "./harness";
import { model } from "./model";

const QUESTION = "Where was Beimus Keilkaru born?";
const LOOK = [["GetNeighbor", { entity: "Beimus Keilkaru" }]] as const;
const ANSWER = [["answer", { answers: [{ text: "Vlistšehaven", results: [1] }] }]] as const;

/** Ask by keyboard alone. */
async function put(page: Page, question: string): Promise<void> {
  await page.locator("#stage").press("q");
  await page.keyboard.type(question);
  await page.keyboard.press("Enter");
}

describe("questions to the page", { skip: missing, timeout: 300_000 }, () => {
  let browser: Browser;

  before(async () => {
    browser = await launch();
  });
  after(async () => {
    stopAll();
    await browser.close();
  });

  test("the steps of a model appear one by one, what it finds is drawn, and its answer with the evidence", async () => {
    const llm = await model(LOOK, ANSWER);
    const server = await start(["explore", "sample:world", "--no-browser", ...llm.words]);
    const { page, context, troubles } = await open(browser, server.url);
    await put(page, QUESTION);
    await page.getByRole("heading", { name: QUESTION }).waitFor();
    await page.getByText("Waiting for the model …").first().waitFor();
    assert.deepEqual(await drawn(page), [0, 0]);
    await llm.reply();
    await page.getByRole("button", { name: "2. GetNeighbor Beimus Keilkaru" }).waitFor();
    await page.getByText("Waiting for the model …").first().waitFor();
    const [nodes] = await drawn(page);
    assert.ok(nodes >= 8, `what it found is drawn before there is an answer: ${nodes}`);
    assert.equal(await page.locator(".answer").count(), 0);
    await page.getByRole("button", { name: "Stop" }).waitFor();

    await llm.reply();
    await page.locator(".answer strong").getByText("Vlistšehaven").waitFor();
    await idle(page);
    assert.equal(await page.getByRole("button", { name: "Stop" }).count(), 0);
    await page.getByRole("button", { name: "First" }).click();
    assert.deepEqual(await drawn(page), [0, 0]);
    await page.getByRole("button", { name: "Last" }).click();
    await tab(page, "Facts");
    await page.locator("li.evidence").filter({ hasText: "place of birth → Vlistšehaven" }).waitFor();

    const again = await open(browser, page.url());
    await again.page.locator(".answer strong").getByText("Vlistšehaven").waitFor();
    assert.equal(await again.page.getByLabel("Ask a question").inputValue(), QUESTION);
    await again.page.getByRole("button", { name: QUESTION }).waitFor();
    assert.deepEqual([...troubles, ...again.troubles], []);
    await Promise.all([context.close(), again.context.close()]);
    server.stop();
    llm.stop();
  });

  test("Stop ends the calls to the model, and a key that it refuses is reported", async () => {
    const llm = await model(LOOK, 401);
    const server = await start(["explore", "sample:world", "--no-browser", ...llm.words]);
    const { page, context, troubles } = await open(browser, server.url);
    await put(page, QUESTION);
    await llm.reply();
    await page.getByRole("button", { name: "2. GetNeighbor" }).waitFor();
    await page.getByText("Waiting for the model …").first().waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await llm.left();
    await page.getByRole("status").getByText("Stopped.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Stop" }).count(), 0);
    await page.getByRole("button", { name: "2. GetNeighbor" }).waitFor();

    await put(page, QUESTION);
    await llm.reply();
    await page.locator("#status.bad").getByText("Check the API key.").waitFor();
    await page.getByText("No answer: stopped.").waitFor();
    assert.deepEqual(troubles, []);
    await context.close();
    server.stop();
    llm.stop();
  });

  test("without a model, what is most like the question is drawn, and a link fills the field and asks nothing", async () => {
    const server = await serve("sample:world");
    const { page, context, troubles } = await open(browser, server.url);
    await put(page, QUESTION);
    await page.getByRole("status").getByText("kg-sextant explore --model NAME").waitFor();
    await page.locator("li.evidence").filter({ hasText: "place of birth → Vlistšehaven" }).waitFor();
    const all = await drawn(page);
    const again = await open(browser, page.url());
    assert.ok((await drawn(again.page))[0] >= all[0]);
    await again.page.goto("about:blank");
    await again.page.goto(`${server.url}#question=Who%3F`);
    await idle(again.page);
    assert.equal(await again.page.getByLabel("Ask a question").inputValue(), "Who?");
    assert.equal((await drawn(again.page))[0], 32);
    await put(page, "What is good?");
    await page.locator("#status.bad").getByText("names nothing in the graph").waitFor();
    assert.deepEqual([...troubles, ...again.troubles], []);
    await Promise.all([context.close(), again.context.close()]);
    server.stop();
  });
});
