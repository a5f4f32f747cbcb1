// The page as a file that stands alone: what it draws, and what is known of the nodes, is in it in place of a server.

import { App } from "./app";
import { byId, plain } from "./dom";
import { type Data, dataOf, rowsOf, textOf } from "./json";
import type { Outcome, Tool } from "./mcp";

/** Return what draws the facts of a file; null where the page is none. */
export function keptApp(): App | null {
  const text = document.getElementById("kept")?.textContent;
  if (!text) return null;
  const { title, answer, candidates, values } = dataOf(JSON.parse(text));
  const ask = (tool: string, given: Data): Data => {
    const asked = [given.text].flat();
    const isNamed = ([id = "", label = ""]: string[]): boolean =>
      asked.includes(id) || label.toLowerCase().includes(textOf(given.text).toLowerCase() || "\n");
    if (tool === "Retrieve") return { candidates: rowsOf(candidates).filter(isNamed) };
    return { features: rowsOf(values).flatMap(([id, ...rest]) => (id === given.entity ? [rest] : [])) };
  };
  const call = async ({ tool, given }: { tool: string; given: Data }): Promise<Outcome> => ({
    data: ask(tool, given),
    text: "",
  });
  const offered = ["Retrieve", "Feature"].map((name): [string, Tool] => [
    name,
    { name, properties: {}, remote: false },
  ]);
  const app = new App({ call, read: async () => "" }, new Map(offered), []);
  document.title = plain(textOf(title), 90);
  byId("name", HTMLHeadingElement).textContent = document.title;
  byId("call", HTMLDetailsElement).hidden = true;
  void app.run(() => app.show({ tool: "GetPath", given: {} }, { data: dataOf(answer), text: "" }));
  return app;
}
