"""Two adapters that know nothing of each other say the same of a real graph."""

import gzip
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import rdflib

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import LocalStore
from kg_adapters.models import Count, Direction, NeighborPage
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri, Node, Triple
from kg_adapters.testing import feature_page

# The other adapter takes long to read the graph.
pytestmark = pytest.mark.xdist_group("agreement")

HUB = Iri("http://www.wikidata.org/entity/Q30")
DIRECTIONS: tuple[Direction, ...] = ("out", "in", "both")


@pytest.fixture(scope="module")
def local(sample_files: LocalStore) -> LocalAdapter:
    return LocalAdapter(sample_files)


@pytest.fixture(scope="module")
def other(sample_source: Path) -> RdflibAdapter:
    graph = rdflib.Graph()
    with gzip.open(sample_source, "rt", encoding="utf-8") as file:
        graph.parse(file, format="nt")
    return RdflibAdapter(graph)


@pytest.fixture(scope="module")
def sample(sample_source: Path) -> list[Node]:
    """The busiest entity and 199 others, the same every time."""
    with gzip.open(sample_source, "rt", encoding="utf-8") as file:
        heads = sorted({line[1 : line.index(">")] for line in file if "/entity/Q" in line.partition(" ")[0]})
    return [HUB, *(Iri(head) for head in random.Random(2).sample(heads, 199))]  # noqa: S311 - no secret


async def all_neighbors(graph: KGAdapter, entity: Node, direction: Direction) -> list[Triple]:
    """Walk the pages of an entity to the end."""
    triples: list[Triple] = []
    page = NeighborPage((), Count(0), truncated=True, cursor=None)
    while page.truncated:
        found = await graph.neighbors(NeighborRequest((entity,), direction=direction, limit=700, cursor=page.cursor))
        page = found[entity]
        triples += page.triples
    return triples


async def test_neighbors_are_the_same_to_the_last_page(
    local: LocalAdapter, other: RdflibAdapter, sample: Sequence[Node]
) -> None:
    for entity in sample[:40]:
        for direction in DIRECTIONS:
            mine, theirs = [await all_neighbors(graph, entity, direction) for graph in (local, other)]
            assert len(mine) == len(set(mine))
            assert set(mine) == set(theirs)


@pytest.mark.parametrize("direction", DIRECTIONS)
async def test_a_sample_of_each_relation_is_the_same(
    local: LocalAdapter, other: RdflibAdapter, sample: Sequence[Node], direction: Direction
) -> None:
    mine, theirs = [
        await graph.neighbors(NeighborRequest(tuple(sample), direction=direction, limit_per_relation=3, limit=10_000))
        for graph in (local, other)
    ]
    assert mine == theirs


async def test_degrees_and_descriptions_are_the_same(
    local: LocalAdapter, other: RdflibAdapter, sample: Sequence[Node]
) -> None:
    for direction in DIRECTIONS:
        assert await local.degrees(sample, direction=direction) == await other.degrees(sample, direction=direction)
    assert await local.describe(sample) == await other.describe(sample)


async def test_features_are_the_same(local: LocalAdapter, other: RdflibAdapter, sample: Sequence[Node]) -> None:
    for entity in sample:
        assert await feature_page(local, entity) == await feature_page(other, entity)
