import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesOf, factsOf, tableOf } from "../src/facts";

const labels = { "w:E1": "Ada", "w:E2": "Oslo", "w:E3": "Norway" };

test("neighbours are triples, and their values stand apart", () => {
  const found = factsOf("GetNeighbor", {
    triples: [["w:E1", "w:R1", "w:E2"]],
    values: [["w:E1", "w:R2", "1815-12-10"]],
    labels,
    relations: { "w:R1": "born in" },
  });
  assert.deepEqual(found.triples, [{ head: "w:E1", relation: "w:R1", tail: "w:E2" }]);
  assert.deepEqual(found.values, [{ head: "w:E1", relation: "w:R2", tail: "1815-12-10" }]);
  assert.equal(found.relations.get("w:R1"), "born in");
});

test("what nodes without a name hold is drawn where it leads to a node", () => {
  const held = [
    ["_:b1", "w:R3", "w:E3"],
    ["_:b1", "w:R4", "1998-05-09"],
  ];
  const found = factsOf("GetNeighbor", { triples: [["w:E1", "w:R1", "_:b1"]], held, labels });
  assert.deepEqual(
    found.triples.map((each) => each.tail),
    ["_:b1", "w:E3"],
  );
  assert.deepEqual(
    found.values.map((each) => each.tail),
    ["1998-05-09"],
  );
});

test("a group of an observation that comes in points at its entity", () => {
  const groups = [
    ["w:E2", "w:R1", "in", "1", "0.3", "1", "w:E1"],
    ["w:E1", "w:R2", "out", "1", "0.2", "1", '"1815"^^xsd:gYear'],
  ];
  assert.deepEqual(factsOf("observe", { groups, labels }).triples, [{ head: "w:E1", relation: "w:R1", tail: "w:E2" }]);
});

test("rows of a query are a table, and join the first node of each to the others", () => {
  const data = { variables: ["who", "town", "year"], rows: [["w:E1", "w:E2", "1815"]], labels };
  assert.deepEqual(tableOf("Sparql", data), { columns: ["?who", "?town", "?year"], rows: [["w:E1", "w:E2", "1815"]] });
  assert.deepEqual(factsOf("Sparql", data).triples, [{ head: "w:E1", relation: "in one row, ?town", tail: "w:E2" }]);
});

test("results of an expression keep their direction, and columns without a cell are left out", () => {
  const results = [
    ["1", "w:E2", "-w:R1", "w:E1", "node"],
    ["1", "w:E3", "", "", ""],
  ];
  const found = factsOf("Compose", { results, evidence: [], labels });
  assert.deepEqual(found.triples, [{ head: "w:E1", relation: "w:R1", tail: "w:E2" }]);
  assert.ok(found.nodes.includes("w:E3"));
  assert.deepEqual(tableOf("Compose", { results: [["1", "", "", "42", "count"]] })?.columns, ["result"]);
});

test("classes are read from the column of types", () => {
  const [found] = candidatesOf({ candidates: [["w:E1", "Ada", "", "person (w:K1), poet, of odes (w:K2)", "1"]] });
  assert.deepEqual(found?.classes[0], { id: "w:K1", label: "person" });
});

test("an answer of unexpected shape states nothing", () => {
  for (const data of [{}, { triples: 3 }, { triples: [[1, 2, 3], "x", ["a"]] }, { paths: [null] }])
    for (const tool of ["GetNeighbor", "GetPath", "Sparql", "Compose", "observe", "memory-read", "Retrieve", "other"])
      assert.deepEqual(factsOf(tool, data).triples, []);
});
