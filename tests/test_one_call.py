"""Each question about the bundled world is answered by one call, and what counts as an answer."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from benchmarks.world.graph import World
from benchmarks.world.matching import Given, is_right
from benchmarks.world.one_call import WAYS, outcomes, read_calls
from benchmarks.world.plain import plain_answer, plain_schema
from benchmarks.world.questions import Asked, read_questions
from mcp import Client

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_server.app import build_server
from kg_server.settings import Settings


@pytest.fixture
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    cache = tmp_path_factory.getbasetemp() / "world"
    settings = Settings(cache_folder=cache, data_folder=cache / "data")
    store = open_sample(cache, "sample:world")
    async with aclosing(LocalAdapter(store)) as graph, Client(build_server(graph, settings)) as client:
        yield client


@pytest.mark.parametrize("way", WAYS)
async def test_one_call_gives_the_answer_and_nothing_else(client: Client, way: str) -> None:
    found = await outcomes(client, World(), read_questions(), way)
    wrong = [outcome.asked.id for outcome in found if not outcome.right]
    assert len(wrong) <= 0.05 * len(found), wrong
    assert sorted(outcome.spent.tokens for outcome in found)[len(found) // 2] <= 150


def test_somebody_with_plain_sparql_looks_every_name_up_first() -> None:
    world = World()
    asked = {asked.id: asked for asked in read_questions()}
    calls = read_calls()
    assert plain_answer(world, asked["q25"], calls["q25"].sparql).calls == 2
    # A misspelt name takes two look-ups, and another name one.
    assert plain_answer(world, asked["q18"], calls["q18"].sparql).calls == 4
    assert plain_schema(world).calls == 3


@pytest.mark.parametrize(
    ("answers", "ids", "given", "right"),
    [
        ((), ("w:E1", "w:E2"), Given(("w:E2", "w:E1", "w:E1")), True),
        ((), ("w:E1", "w:E2"), Given(("w:E2",)), False),
        ((), ("w:E1",), Given(("w:E1", "w:E2")), False),
        ((7983,), (), Given(values=("7,983",)), True),
        ((180.7,), (), Given(values=("181 m",)), True),
        ((180.7,), (), Given(values=("182",)), False),
        (("1934-10-18",), (), Given(values=("1934-10-18",)), True),
        (("1934-10-18",), (), Given(values=("1934",)), False),
        (("true",), (), Given(values=("True",)), True),
        (("true",), (), Given(values=("false",)), False),
    ],
)
def test_an_answer_is_matched_by_the_rules_of_the_world(
    answers: tuple[str | int | float, ...], ids: tuple[str, ...], given: Given, *, right: bool
) -> None:
    asked = Asked(id="q", question="?", kind="count", answers=answers, answer_ids=ids)
    assert is_right(asked, given) == right


def test_what_the_graph_does_not_know_must_be_said_to_be_unknown() -> None:
    asked = Asked(id="q", question="?", kind="no-such-fact", wanted="captain")
    assert is_right(asked, Given(unknown="No relation is called 'Captain'."))
    assert not is_right(asked, Given(unknown="'[' was expected."))
    assert not is_right(asked, Given(("w:E1",), unknown="captain"))
