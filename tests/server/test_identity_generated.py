"""The verdict on 550 generated names is right, whichever adapter finds them."""

from collections.abc import Sequence
from contextlib import aclosing

import pytest
from rdflib import Graph

from generated_names import Asked, generated_names, mistaken
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.local.sparql.store import statements
from kg_adapters.local.store import LocalStore
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter

SIZE = 550
LEAST_RIGHT = 0.98


@pytest.fixture(scope="module")
def asked(sample_files: LocalStore) -> list[Asked]:
    return generated_names(sample_files.index, SIZE)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LocalStore:
    return open_sample(tmp_path_factory.mktemp("world"), "sample:world")


@pytest.fixture(scope="module")
def names_alone(sample_files: LocalStore) -> Graph:
    """The names that the sample gives to its entities, and its types."""
    kept = tuple(f"<{relation}>" for relation in (*Vocabulary().labels, *Vocabulary().aliases, *Vocabulary().types))
    lines = (line for line in statements(sample_files.index) if line.split(" ", 2)[1] in kept)
    graph = Graph()
    graph.parse(data="".join(lines), format="nt")
    return graph


@pytest.fixture(params=["local", "rdflib"])
def graph(request: pytest.FixtureRequest, sample: LocalAdapter, names_alone: Graph) -> KGAdapter:
    return sample if request.param == "local" else RdflibAdapter(names_alone)


async def test_generated_names_are_judged_rightly_and_none_that_is_absent_is_read(
    graph: KGAdapter, asked: list[Asked]
) -> None:
    assert len(asked) == SIZE
    # Reading names in memory is slower, and every third one shows that they are judged alike.
    await judge(graph, asked if isinstance(graph, LocalAdapter) else asked[::3])


async def test_names_of_the_world_are_judged_rightly(world: LocalStore) -> None:
    async with aclosing(LocalAdapter(world)) as graph:
        await judge(graph, generated_names(world.index, SIZE))


async def judge(graph: KGAdapter, asked: Sequence[Asked]) -> None:
    wrong = await mistaken(graph, asked)
    absent = {"absent", "another number"}
    assert [(each.text, found.nodes) for each, found in wrong if each.way in absent] == []
    assert 1 - len(wrong) / len(asked) >= LEAST_RIGHT, [(each.text, found.match) for each, found in wrong]
