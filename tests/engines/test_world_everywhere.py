"""Questions about the bundled world find their facts wherever the world is."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import rdflib
from benchmarks.world.findings import (
    EXACT,
    IN_LITTLE,
    IN_ONE,
    NO_NAME,
    NO_NEIGHBOR,
    STATED,
    failing,
    findings,
    read_facts,
    share,
)
from benchmarks.world.graph import World
from benchmarks.world.questions import (
    INVERSE,
    LITERAL,
    NO_SUCH_ENTITY,
    NO_SUCH_FACT,
    NO_VALUE,
    ONE_HOP,
    QUALIFIER,
    TWO_HOP,
)
from mcp import Client

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.protocol import KGAdapter, SupportsLearning
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_server.app import build_server
from kg_server.settings import Settings
from remote_graphs import ENGINE_S, Engine

pytestmark = pytest.mark.xdist_group("engines")

PRESENT = (LITERAL, ONE_HOP, TWO_HOP, INVERSE, QUALIFIER)
ABSENT = {NO_SUCH_FACT: NO_NEIGHBOR, NO_VALUE: NO_NEIGHBOR, NO_SUCH_ENTITY: NO_NAME}
LEAST, LEAST_IN_LITTLE = 0.95, 0.8
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
        async with aclosing(LocalAdapter(open_sample(tmp_path, "sample:world"))) as local:
            yield local


async def test_one_answer_holds_the_facts_or_says_what_is_missing(graph: KGAdapter, tmp_path: Path) -> None:
    settings = Settings(cache_folder=tmp_path, data_folder=tmp_path, timeout_s=ENGINE_S)
    asked = [each for each in read_facts() if each.id.startswith("q") or each.kind == NO_VALUE]
    if isinstance(graph, SupportsLearning):
        await graph.learn_profile()
    async with Client(build_server(graph, settings)) as client:
        found = await findings(client, asked)
    assert {kind: share(found, kind, IN_ONE) for kind in PRESENT if share(found, kind, IN_ONE) < LEAST} == {}
    assert share(found, TWO_HOP, IN_LITTLE) >= LEAST_IN_LITTLE
    assert (failing(found, ONE_HOP, STATED), failing(found, ONE_HOP, EXACT)) == ([], [])
    assert [failing(found, kind, claim) for kind, claim in ABSENT.items()] == [[], [], []]
