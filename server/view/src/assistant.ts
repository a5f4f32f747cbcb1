// The page inside an assistant: it draws the results of calls by the model, and sends the model what a person selects.

import { App } from "./app";
import { button, byId, plain, reasonOf } from "./dom";
import { Host, HostRefused } from "./host";
import { countOf, type Data, dataOf, textOf, textsOf } from "./json";
import { webAddress } from "./links";
import { graphsOf, outcomeOf, type Tool } from "./mcp";
import { Page } from "./page";
import { Search } from "./search";

/** The tool without an argument for the graph: each fact that it reads names its graph. */
const UNBOUND = "memory-read";

/** The tool of an answer by a field of it, where the host does not name the tool. */
const SHAPES = { paths: "GetPath", groups: "observe", triples: "GetNeighbor", facts: UNBOUND, results: "Compose" };

/** The tools that the page calls, as a host lists none: first those that it can do without, then the others. */
const SPARED = ["Retrieve", "Degree", "Feature"];
const CALLED = [...Object.values(SHAPES), "Schema", "Sparql"];

const PAUSE_MS = 200;
const MOST_TOLD = 20;

/** Start the page as the host wants it, and handle the messages of the host. */
export async function assist(): Promise<void> {
  const { body, documentElement } = document;
  body.classList.add("framed", "inline", "empty");
  const host = new Host();
  const { serverTools, updateModelContext, openLinks } = await host.initialize();
  const info = dataOf(dataOf(host.context.toolInfo).tool);
  const tools = new Map<string, Tool>();
  const properties: { graph?: Data } = {};
  let given: Data = {};
  let told = "";
  let isSeen = true;

  const graphs = graphsOf(dataOf(dataOf(info.inputSchema).properties));
  if (graphs.length > 0) properties.graph = { enum: graphs };
  for (const name of serverTools ? [...SPARED, ...CALLED] : [])
    tools.set(name, { name, properties: name === UNBOUND ? {} : properties, remote: true });

  const call: App["endpoint"]["call"] = async (asked, signal) => {
    try {
      return outcomeOf(await host.request("tools/call", { name: asked.tool, arguments: asked.given }, signal));
    } catch (error) {
      if (!(error instanceof HostRefused && SPARED.includes(asked.tool))) throw error;
      tools.delete(asked.tool);
      app.notice = `without ${SPARED.filter((name) => !tools.has(name)).join(", ")}, which the assistant refuses`;
      return { data: {}, text: "" };
    }
  };
  const app = new App({ call, read: async () => "" }, tools, []);

  /** Turn to the graph that the model asks; of several, the server finds the one that has a node. */
  const turn = (name: string): void => {
    app.graph = name;
    if (name) properties.graph ??= { enum: [name] };
    byId("graph", HTMLSelectElement).value = name;
  };
  const ask = (method: string, params: Data): void => {
    host.request(method, params).catch((error: unknown) => app.say(reasonOf(error), true));
  };

  const modeButton = (): HTMLElement | false => {
    const isFull = !body.classList.contains("inline");
    const mode = isFull ? "inline" : "fullscreen";
    const change = async (): Promise<void> => {
      const { mode: displayMode } = await host.request("ui/request-display-mode", { mode });
      apply({ displayMode });
    };
    return (
      textsOf(host.context.availableDisplayModes).includes(mode) &&
      button(isFull ? "Back to the chat" : "Full screen", () => void app.run(change), { "data-key": "mode" })
    );
  };
  const page = new Page(app, new Search(() => app), modeButton);

  /** Apply changes of how the host shows the page. */
  const apply = (changed: Data): void => {
    host.context = { ...host.context, ...changed };
    const { theme, displayMode, containerDimensions } = host.context;
    const { height, maxHeight } = dataOf(containerDimensions);
    const isFull = displayMode === "fullscreen";
    const isDark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    documentElement.dataset.theme = isDark ? "dark" : "light";
    body.classList.toggle("inline", !isFull);
    body.classList.toggle("fixed", !!height);
    body.style.maxHeight = isFull || !maxHeight ? "" : `${countOf(maxHeight)}px`;
    page.retheme();
  };

  const draw = async (result: Data): Promise<void> => {
    const outcome = outcomeOf(result);
    const [, shape] = Object.entries(SHAPES).find(([part]) => part in outcome.data) ?? [];
    // The host may also send what the page itself has called.
    if (shape || !app.scene.nodes.size) await app.show({ tool: shape ?? textOf(info.name), given }, outcome);
  };

  host.onMessage = (method, params) => {
    switch (method.replace("ui/notifications/", "")) {
      case "ui/resource-teardown":
        for (const observer of observers) observer.disconnect();
        page.end();
        return {};
      case "ping":
        return {};
      case "tool-input":
      case "tool-input-partial":
        given = dataOf(params.arguments);
        if (method.endsWith("input")) turn(textOf(given.graph));
        app.say(asked(given));
        break;
      case "tool-result":
        void app.run(() => draw(params));
        break;
      case "tool-cancelled":
        app.say(`The call was cancelled. ${plain(textOf(params.reason), 200)}`);
        break;
      case "host-context-changed":
        apply(params);
    }
    return undefined;
  };

  const tell = (): void => {
    const { nodes, hidden } = app.scene;
    const chosen = [...app.also, app.selected ?? ""].filter((id) => nodes.has(id) && !hidden.has(id));
    const named = chosen
      .slice(-MOST_TOLD)
      .map((id) => `${plain(app.lexicon.label(id), 120)} (${plain(id, 300)})`.replace(/\s+/g, " "));
    const text = named.join(", ");
    if (text === told || !updateModelContext) return;
    told = text;
    const content = text ? [{ type: "text", text: `Selected in the picture of the graph: ${text}` }] : [];
    ask("ui/update-model-context", { content });
  };
  const follow = (event: Event): void => {
    const hit = event.target instanceof Element ? event.target.closest("a, [type=submit]") : null;
    if (!hit) return;
    event.preventDefault();
    // A sandbox blocks forms and links.
    if (!(hit instanceof HTMLAnchorElement)) {
      hit.closest("form")?.dispatchEvent(new Event("submit", { cancelable: true }));
      return;
    }
    const url = webAddress(hit.href);
    if (url && openLinks) ask("ui/open-link", { url });
    else app.say("The assistant opens no links.", true);
  };
  const rest = (): void => page.pause(document.hidden || !isSeen);
  const measure = (): void => {
    const { width, height } = body.getBoundingClientRect();
    host.notify("ui/notifications/size-changed", { width: Math.ceil(width), height: Math.ceil(height) });
  };
  const observers = [
    new ResizeObserver(later(measure)),
    new IntersectionObserver((entries) => {
      isSeen = !!entries.at(-1)?.isIntersecting;
      rest();
    }),
  ];

  turn("");
  apply({});
  app.say(asked({}));
  app.onChange(later(tell));
  for (const observer of observers) observer.observe(body);
  document.addEventListener("visibilitychange", rest);
  document.addEventListener("click", follow);
  document.addEventListener("auxclick", follow);
  host.notify("ui/notifications/initialized", {});
}

/** Return a sentence on what a call reads, by the arguments that have arrived. */
function asked(given: Data): string {
  const { entities, entity, source, memory, expression, question, target } = given;
  const ends = [entities ?? entity ?? source ?? memory ?? expression ?? question, target];
  const what = plain(ends.flat().filter(textOf).join(", "), 160);
  return what ? `Looking around ${what} …` : "Waiting for what the assistant asks …";
}

/** Return what runs an action once, a moment after it was last asked for. */
function later(action: () => void): () => void {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = window.setTimeout(action, PAUSE_MS);
  };
}
