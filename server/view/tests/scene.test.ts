import assert from "node:assert/strict";
import { test } from "node:test";
import type { Facts, Triple } from "../src/facts";
import { Lexicon } from "../src/lexicon";
import {
  EMPTY,
  isFiltered,
  isolated,
  linesOf,
  MOST_NODES,
  type Scene,
  shownOf,
  toggled,
  withEverything,
  withFacts,
  withoutNode,
} from "../src/scene";

function facts(...rows: [string, string, string][]): Facts {
  const triples: Triple[] = rows.map(([head, relation, tail]) => ({ head, relation, tail }));
  return { triples, nodes: [], values: [], labels: new Map(), relations: new Map() };
}

const lexicon = new Lexicon();
const shown = (scene: Scene): string[] => [...shownOf(scene, lexicon).nodes].sort();
const star = withFacts(EMPTY, facts(["a", "r", "b"], ["a", "s", "c"], ["c", "r", "d"]));

test("a hidden node takes along what only it held, and comes back when it is asked for", () => {
  const without = withoutNode(star, "c");
  assert.deepEqual(shown(without), ["a", "b"]);
  assert.deepEqual(shown(withFacts(without, facts(["a", "s", "c"]))), ["a", "b", "c", "d"]);
  assert.deepEqual(shown(withEverything(without)), ["a", "b", "c", "d"]);
});

test("an isolated node is shown with its neighbours alone", () => {
  assert.deepEqual(shown(isolated(star, "a")), ["a", "b", "c"]);
});

test("a relation that is filtered out takes its nodes along, unless they were asked for", () => {
  assert.deepEqual(shown({ ...star, withoutRelations: toggled(star.withoutRelations, "s") }), ["a", "b", "c", "d"]);
  assert.deepEqual(shown({ ...star, withoutRelations: toggled(star.withoutRelations, "r") }), ["a", "c"]);
  const without = { ...star, withoutRelations: toggled(star.withoutRelations, "r") };
  assert.deepEqual([star, without, withEverything(without)].map(isFiltered), [false, true, false]);
  const typed = withFacts(EMPTY, { ...facts(["a", "rdf:type", "k"]), nodes: ["a"] });
  assert.deepEqual(shown(typed), ["a"]);
});

test("a scene is left as it was by what is done to it, so that undoing is going back", () => {
  withFacts(star, facts(["x", "r", "y"]));
  withoutNode(star, "a");
  assert.deepEqual(shown(star), ["a", "b", "c", "d"]);
});

test("relations between two nodes are one line that names both directions", () => {
  const both = withFacts(
    EMPTY,
    facts(["a", "child", "b"], ["b", "parent", "a"], ["a", "heir", "b"], ["a", "ward", "b"]),
    true,
  );
  const [line, ...others] = linesOf(both, shownOf(both, lexicon), lexicon);
  assert.equal(others.length, 0);
  assert.equal(line?.label, "child, heir +1 → ← parent");
  assert.equal(line?.whole, "child, heir, ward → ← parent");
  assert.ok(line?.heads === "both" && line.evidence);
});

test("a line has heads for facts alone, and none where its ends only stand in one row", () => {
  const row = "in one row, ?b";
  for (const [heads, source, ...rows] of [
    ["none", "a", ["a", row, "b"]],
    ["end", "b", ["a", row, "b"], ["b", "child", "a"]],
    ["end", "a", ["b", row, "a"], ["a", "child", "b"]],
  ] as const) {
    const scene = withFacts(EMPTY, facts(...rows.map((each): [string, string, string] => [...each])));
    const [line] = linesOf(scene, shownOf(scene, lexicon), lexicon);
    assert.deepEqual([line?.heads, line?.source], [heads, source]);
  }
});

test("a graph beyond what can be drawn is cut, not refused", () => {
  const many = withFacts(
    EMPTY,
    facts(...Array.from({ length: MOST_NODES + 10 }, (_, at): [string, string, string] => ["hub", "r", `n${at}`])),
  );
  assert.equal(many.nodes.size, MOST_NODES);
});

test("a picture of the definition makes way for facts", () => {
  const schema: Scene = { ...withFacts(EMPTY, facts(["K1", "r", "K2"])), kind: "schema" };
  assert.deepEqual(shown(withFacts(schema, facts(["a", "r", "b"]))), ["a", "b"]);
});
