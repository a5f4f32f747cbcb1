"""A question set's surroundings in a real graph: within the hops, everything is as in the whole of it."""

import json
from pathlib import Path

import pytest

from extractions import WatchedGraph, extracted, offline, order_for
from kg_adapters.extraction.journal import Bounds
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Node, node_from_key
from kg_adapters.testing import feature_page

QUESTIONS = 25
BOUNDS = Bounds(hops=2, per_relation=10_000, max_degree=500)


@pytest.fixture(scope="module")
def source(sample_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = ImportOptions(sparql=False)
    return build_store([sample_source], tmp_path_factory.mktemp("sample") / "store", options).folder


@pytest.fixture(scope="module")
def lines(sample_source: Path) -> list[str]:
    questions = sample_source.with_name("simplequestions-dev.jsonl")
    if not questions.exists():
        pytest.skip(f"needs {questions}")
    return questions.read_text(encoding="utf-8").splitlines()[:QUESTIONS]


async def test_within_the_hops_neighbours_labels_and_literals_are_those_of_the_source(
    source: Path, lines: list[str], tmp_path: Path
) -> None:
    graph = WatchedGraph(open_store(source))
    report = await extracted(graph, order_for(*lines, bounds=BOUNDS), tmp_path / "store")
    requests = len(graph.calls("neighbors"))
    subgraph = offline(report.folder)
    topics: list[Node] = [graph.prefixes.expand(str(json.loads(line)["topic"])) for line in lines]
    first = await subgraph.neighbors(NeighborRequest(tuple(topics), limit=BOUNDS.max_degree))
    near = {node for page in first.values() for triple in page.triples for node in (triple.head, triple.tail)}
    cut = {node_from_key(each.node) for each in report.cut}
    assert cut & near
    whole = sorted(near - cut, key=str)
    around = await graph.neighbors(NeighborRequest(tuple(whole), limit=BOUNDS.max_degree))
    assert await subgraph.neighbors(NeighborRequest(tuple(whole), limit=BOUNDS.max_degree)) == around
    assert requests <= 1 + -(-len(near) // BOUNDS.batch)
    index = open_store(report.folder).index
    terms = [node_from_key(index.nodes[row]) for row in range(0, len(index.nodes), 7)]
    assert await subgraph.labels(terms) == await graph.labels(terms)
    for term in terms[:200]:
        assert await feature_page(subgraph, term) == await feature_page(graph, term)
    inner = sorted(near, key=str)
    assert await subgraph.describe(inner) == await graph.describe(inner)
    assert (subgraph.prefixes, subgraph.vocabulary) == (graph.prefixes, graph.vocabulary)
