import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { Authority } from "./authority";
import { launch, missing, type Server, search, start, stopAll, violations } from "./harness";

const LINK = "#entity=w%3AE7939";
const NAME = "Beimus Keilkaru";

describe("logging in at an authorization server", { skip: missing, timeout: 300_000 }, () => {
  let browser: Browser;
  let server: Server;
  const authority = new Authority();

  before(async () => {
    await authority.start();
    const environ = { KG_SEXTANT_HOSTING__ISSUER: authority.issuer };
    [browser, server] = await Promise.all([
      launch(),
      start(["serve", "sample:world", "--http", "127.0.0.1:0"], environ),
    ]);
  });
  after(async () => {
    stopAll();
    authority.stop();
    await browser.close();
  });
  beforeEach(() => {
    authority.requests.length = 0;
    authority.changes = () => {};
    authority.takesDocuments = true;
    authority.grants = ["read", "memory"];
  });

  /** Open the page in a tab that knows nothing yet, and list what should not happen there. */
  async function opened(place = LINK, { url } = server): Promise<{ page: Page; troubles: string[] }> {
    const context = await browser.newContext({ reducedMotion: "reduce" });
    const page = await context.newPage();
    const troubles: string[] = [];
    // A refusal, and metadata that is not at the first place, are on the console by the browser's own rule.
    page.on("console", (message) => {
      if (!/status of 40[134]/.test(message.text())) troubles.push(message.text());
    });
    page.on("pageerror", (error) => troubles.push(error.message));
    page.on("request", (request) => {
      if (/token=|eyJ/.test(request.url())) troubles.push(`a token in ${request.url()}`);
    });
    await page.goto(url + place);
    return { page, troubles };
  }

  async function leave(page: Page): Promise<void> {
    await page.getByRole("button", { name: `Log in with ${new URL(authority.issuer).host}` }).click();
  }

  test("a person comes back to the link, and goes on when the token expires", async () => {
    const { page, troubles } = await opened();
    await leave(page);
    await page.getByRole("heading", { name: NAME }).waitFor();
    assert.equal(page.url(), server.url + LINK);
    assert.deepEqual(authority.requests, [
      "GET /.well-known/oauth-authorization-server/team",
      "GET /.well-known/openid-configuration/team",
      "GET /team/.well-known/openid-configuration",
      "GET /team/authorize",
      "POST /team/token authorization_code",
    ]);
    for (const renewed of [1, 2]) {
      await page.evaluate(
        (token) => {
          const kept = new URLSearchParams(sessionStorage.getItem("kg-sextant-grant") ?? "");
          kept.set("token", token);
          sessionStorage.setItem("kg-sextant-grant", kept.toString());
        },
        authority.token(`${server.url}mcp`, "read", -60),
      );
      await search(page, renewed === 1 ? "Maard Park" : NAME);
      await page.getByRole("heading", { name: renewed === 1 ? "Maard Park" : NAME }).waitFor();
      assert.equal(authority.requests.filter((each) => each.endsWith("refresh_token")).length, renewed);
    }
    assert.deepEqual(await page.evaluate("[{ ...localStorage }, Object.keys(sessionStorage)]"), [
      {},
      ["kg-sextant-grant"],
    ]);
    assert.deepEqual(troubles, []);
    await page.context().close();
  });

  test("nobody is let in by an answer to another tab, of another server, or that says no", async () => {
    const { page } = await opened();
    const wrong: [(back: URLSearchParams) => void, string][] = [
      [(back) => back.set("state", "guess"), "What came back answers no login that this tab began."],
      [(back) => back.delete("iss"), "What came back answers no login that this tab began."],
      [(back) => back.set("iss", "https://evil.example"), "What came back answers no login that this tab began."],
      [(back) => back.delete("code"), `${authority.issuer} did not let you in: <b>no</b>`],
    ];
    for (const [changes, said] of wrong) {
      authority.changes = (back) => {
        back.set("error_description", "<b>no</b>");
        back.set("error", "access_denied");
        changes(back);
      };
      const back = page.waitForEvent("load");
      await leave(page);
      await back;
      await page.getByRole("alert").getByText(said).waitFor();
      assert.equal(page.url(), server.url + LINK);
    }
    await page.goto(`${server.url}?code=stolen&state=undefined`);
    await page.getByRole("alert").getByText("answers no login").waitFor();
    assert.equal(page.url(), server.url);
    assert.equal(authority.requests.filter((each) => each.startsWith("POST")).length, 0);
    await page.context().close();
  });

  test("whoever may do too little is asked once to log in for more", async () => {
    authority.grants = ["read"];
    const { page } = await opened("#memory=mem_x");
    await leave(page);
    await page.getByRole("alert").getByText("This needs the scope read and memory.").waitFor();
    await leave(page);
    await page.getByRole("status").getByText("This needs the scope read and memory.").waitFor();
    assert.equal(authority.requests.filter((each) => each === "GET /team/authorize").length, 2);
    await page.context().close();
  });

  test("the page says what is missing where it cannot log in, and takes a token still", async () => {
    const { page } = await opened();
    authority.takesDocuments = false;
    await leave(page);
    await page.getByRole("alert").getByText("set hosting.page_client_id").waitFor();
    await page.route(`${authority.issuer}/**`, (route) => route.abort());
    await leave(page);
    await page
      .getByRole("alert")
      .getByText(`does not answer, or no pages of ${new URL(server.url).origin}`)
      .waitFor();
    await page.getByLabel("Token").fill(authority.token(`${server.url}mcp`, "read"));
    await page.getByRole("button", { name: "Log in", exact: true }).click();
    await page.getByRole("heading", { name: NAME }).waitFor();
    await page.goto(server.url.replace("127.0.0.1", "localhost"));
    await leave(page);
    await page.getByRole("alert").getByText(`Log in at ${server.url}`).waitFor();
    await page.context().close();
  });

  test("where documents are not read, the id counts that an administrator registered", async () => {
    const environ = { KG_SEXTANT_HOSTING__ISSUER: authority.issuer, KG_SEXTANT_HOSTING__PAGE_CLIENT_ID: "page" };
    const registered = await start(["serve", "sample:world", "--http", "127.0.0.1:0"], environ);
    authority.takesDocuments = false;
    authority.registered.set("page", registered.url);
    const { page, troubles } = await opened(LINK, registered);
    await leave(page);
    await page.getByRole("heading", { name: NAME }).waitFor();
    assert.deepEqual(troubles, []);
    await page.context().close();
    registered.stop();
  });

  for (const colorScheme of ["light", "dark"] as const)
    test(`axe finds nothing amiss where one logs in, ${colorScheme}`, async () => {
      const context = await browser.newContext({ colorScheme, bypassCSP: true });
      const page = await context.newPage();
      await page.goto(server.url);
      await page.getByLabel("Token").waitFor();
      assert.deepEqual(await violations(page), []);
      await context.close();
    });
});
