// The page as a file that needs no server: its facts, and what is known of the nodes, are in it.

import { App } from "./app";
import { byId, plain } from "./dom";
import { type Data, dataOf, rowsOf, textOf } from "./json";
import type { Outcome, Tool } from "./mcp";

/** Return an app over the facts in this file; null where it holds none. */
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
