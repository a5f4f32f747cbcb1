// The start of the page: it connects to the endpoint beside it, and logs in where that is required.

import { App } from "./app";
import { assist } from "./assistant";
import { button, byId, el, reasonOf, refill } from "./dom";
import { keptApp } from "./kept";
import { TRACE } from "./links";
import { finish, renew, token } from "./login";
import { Endpoint } from "./mcp";
import { Page } from "./page";
import { Search } from "./search";

const THEME = "kg-sextant-theme";

const KEYS: readonly (readonly [key: string, what: string])[] = [
  ["/", "search"],
  ["q", "ask a question"],
  ["arrows", "go from node to node, in the picture"],
  ["Enter, e", "expand the selected node"],
  ["p", "path from the selected node"],
  ["h, i", "hide or isolate the selected node"],
  ["a", "show everything again"],
  ["u", "undo"],
  ["f, +, −", "fit, zoom in, zoom out"],
  ["1 … 6", "the tabs of the side"],
  ["Esc", "leave the search or the path"],
];

function help(): void {
  const dialog = byId("dialog", HTMLDialogElement);
  const rows = KEYS.map(([key, what]) => el("tr", {}, el("td", {}, el("kbd", {}, key)), el("td", {}, what)));
  refill(
    dialog,
    el("h2", {}, "Keys"),
    el("table", {}, el("tbody", {}, ...rows)),
    el(
      "p",
      { class: "note" },
      "Click selects, with Shift one more; a double click expands, dragging moves. What is drawn is also a list, in the tab Facts.",
    ),
    button("Close", () => dialog.close(), { class: "first" }),
  );
  dialog.setAttribute("aria-label", "Help");
  dialog.showModal();
}

/** Return what the browser keeps for the page; null in a frame that is kept from it. */
function storage(): Storage | null {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

function useTheme(theme: string): void {
  document.documentElement.dataset.theme = theme;
}

async function begin(): Promise<void> {
  // The server forbids frames, so only an assistant can frame the page, or others a file that stands alone.
  if (window.parent !== window && !document.getElementById("kept")) return await assist();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  useTheme(storage()?.getItem(THEME) ?? (dark.matches ? "dark" : "light"));
  let app: App | null = null;
  let page: Page | null = null;
  const search = new Search(() => app);
  byId("help", HTMLButtonElement).addEventListener("click", help);
  byId("theme", HTMLButtonElement).addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    storage()?.setItem(THEME, theme);
    useTheme(theme);
    page?.retheme();
  });
  dark.addEventListener("change", () => {
    if (storage()?.getItem(THEME)) return;
    useTheme(dark.matches ? "dark" : "light");
    page?.retheme();
  });
  const kept = keptApp();
  app = kept ?? (await connect());
  page = new Page(app, search);
  if (!kept) await page.open(location.hash);
}

async function connect(): Promise<App> {
  const url = new URL("mcp", location.href).href;
  await finish();
  const endpoint = new Endpoint(url, token, undefined, renew);
  const { title } = await endpoint.initialize();
  const tools = new Map((await endpoint.tools()).map((tool) => [tool.name, tool]));
  const traces = (await endpoint.resources()).filter(([uri]) => uri.startsWith(TRACE));
  document.title = title || document.title;
  return new App(endpoint, tools, traces);
}

begin().catch((error: unknown) => {
  const status = byId("status", HTMLParagraphElement);
  document.body.classList.remove("empty");
  status.className = "bad";
  status.textContent = `The server cannot be used: ${reasonOf(error)}`;
});
