"""Questions about the bundled world find their facts wherever the world is."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import rdflib
from benchmarks.world.findings import IN_NEIGHBORS, IN_ONE, NO_NEIGHBOR, STATED, failing, findings
from benchmarks.world.graph import World
from benchmarks.world.questions import INVERSE, NO_SUCH_FACT, ONE_HOP, QUALIFIER, read_questions
from mcp import Client

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import sample_store
from kg_adapters.local.store import open_store
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_server.app import build_server
from kg_server.settings import Settings
from remote_graphs import ENGINE_S, Engine

pytestmark = pytest.mark.xdist_group("engines")

KINDS = (ONE_HOP, INVERSE, NO_SUCH_FACT, QUALIFIER)
PLACES = ("local", "rdflib", "oxigraph", "virtuoso")


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest, world: World) -> tuple[str, Engine | None, str]:
    """Where the world is: a name, and the engine and the graph in it where it is behind one."""
    name = str(request.param)
    if name in {"local", "rdflib"}:
        return name, None, ""
    engine: object = request.getfixturevalue(f"{name}_engine")
    assert isinstance(engine, Engine)
    return name, engine, engine.load_new(world.triples.decode())


@pytest.fixture
async def graph(place: tuple[str, Engine | None, str], world: World, tmp_path: Path) -> AsyncIterator[KGAdapter]:
    name, engine, iri = place
    if engine is not None:
        async with engine.opened(iri, tmp_path) as remote:
            yield remote
    elif name == "rdflib":
        held = rdflib.Graph().parse(data=world.triples, format="nt")
        async with aclosing(RdflibAdapter(held)) as adapter:
            yield adapter
    else:
        async with aclosing(LocalAdapter(open_store(sample_store(tmp_path, "sample:world")))) as local:
            yield local


async def test_one_answer_holds_the_facts_wherever_they_are(graph: KGAdapter, world: World, tmp_path: Path) -> None:
    settings = Settings(cache_folder=tmp_path, data_folder=tmp_path, timeout_s=ENGINE_S)
    async with Client(build_server(graph, settings)) as client:
        found = await findings(client, world, [each for each in read_questions() if each.kind in KINDS])
    assert [failing(found, kind, IN_ONE) for kind in (ONE_HOP, INVERSE)] == [[], []]
    assert (failing(found, ONE_HOP, STATED), failing(found, NO_SUCH_FACT, NO_NEIGHBOR)) == ([], [])
    if graph.prefixes.blank_nodes:
        assert failing(found, QUALIFIER, IN_NEIGHBORS) == []
