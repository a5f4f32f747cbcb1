"""The answers of the tools to questions about the bundled world hold the facts, or report what is missing."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from benchmarks.world.findings import (
    EXACT,
    IN_LITTLE,
    IN_NEIGHBORS,
    IN_ONE,
    NO_NAME,
    NO_NEIGHBOR,
    STATED,
    failing,
    findings,
    read_facts,
    share,
)
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

from calls import unhurried
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_server.app import build_server


@pytest.fixture
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    cache = tmp_path_factory.getbasetemp() / "world"
    settings = unhurried(cache_folder=cache, data_folder=cache / "data")
    store = open_sample(cache, "sample:world")
    async with aclosing(LocalAdapter(store)) as graph, Client(build_server(graph, settings)) as client:
        yield client


async def test_one_answer_holds_what_is_asked(client: Client) -> None:
    kinds = {LITERAL, ONE_HOP, TWO_HOP, INVERSE, QUALIFIER}
    found = await findings(client, [each for each in read_facts() if each.kind in kinds])
    assert len(found) == 102
    assert (failing(found, ONE_HOP, IN_ONE), failing(found, ONE_HOP, STATED)) == ([], [])
    assert [failing(found, kind, IN_ONE) for kind in (LITERAL, INVERSE)] == [[], []]
    assert (failing(found, ONE_HOP, EXACT), failing(found, QUALIFIER, IN_NEIGHBORS)) == ([], [])
    assert share(found, TWO_HOP, IN_LITTLE) >= 0.8


async def test_typed_fields_alone_report_what_the_graph_does_not_hold(client: Client) -> None:
    kinds = {NO_SUCH_FACT: NO_NEIGHBOR, NO_VALUE: NO_NEIGHBOR, NO_SUCH_ENTITY: NO_NAME}
    found = await findings(client, [each for each in read_facts() if each.kind in kinds])
    assert len(found) == 68
    assert [failing(found, kind, claim) for kind, claim in kinds.items()] == [[], [], []]
