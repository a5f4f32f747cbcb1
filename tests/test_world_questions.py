"""The questions about the bundled world: what they rest on, and whether the answers of the tools hold it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

import pyoxigraph as ox
import pytest
from benchmarks.world.answers import Wanted, wanted
from benchmarks.world.findings import (
    EXACT,
    IN_LITTLE,
    IN_NEIGHBORS,
    IN_ONE,
    NO_NAME,
    NO_NEIGHBOR,
    STATED,
    Finding,
    failing,
    findings,
    share,
)
from benchmarks.world.generated import generated
from benchmarks.world.gold import completed, gold_of
from benchmarks.world.graph import World, named
from benchmarks.world.questions import (
    ABSENT,
    INVERSE,
    LITERAL,
    NO_SUCH_ENTITY,
    NO_SUCH_FACT,
    NO_VALUE,
    ONE_HOP,
    QUALIFIER,
    TWO_HOP,
    Asked,
    read_questions,
    short_id,
)
from mcp import Client
from rapidfuzz import fuzz, process

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_server.app import build_server
from kg_server.settings import Settings


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def questions() -> Mapping[str, Asked]:
    return {asked.id: asked for asked in read_questions()}


@pytest.fixture
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    cache = tmp_path_factory.getbasetemp() / "world"
    settings = Settings(cache_folder=cache, data_folder=cache / "data")
    store = open_sample(cache, "sample:world")
    async with aclosing(LocalAdapter(store)) as graph, Client(build_server(graph, settings)) as client:
        yield client


def rows(world: World, asked: Asked) -> list[tuple[str, ...]]:
    facts = gold_of(world, asked).facts
    return [
        tuple(short_id(str(end).strip("<>")) for end in (each.subject, each.predicate, each.object)) for each in facts
    ]


@pytest.mark.parametrize(
    ("number", "topics", "facts"),
    [
        ("q06", ("w:E1351",), [("w:E1351", "w:R149", "w:E5995")]),
        ("q23", ("w:E2611",), [("w:E9320", "w:R198", "w:E2611")]),
        ("q32", ("w:E7879",), [("w:E7879", "w:R130", "w:E9835"), ("w:E9835", "w:R123", "w:E9246")]),
        ("q77", ("w:E8759",), [("w:E8759", "w:R138", "w:E1235"), ("w:E1235", "w:R138", "w:E3199")]),
        ("q26", ("w:E4590", "w:E5201"), [("w:E2526", "w:R125", "w:E4590"), ("w:E5201", "w:R125", "w:E2526")]),
        ("q24", ("w:E4350",), [("w:E4350", "rdf:type", "w:K24"), ("w:E4350", "w:R108", "w:E2328")]),
        ("q46", ("w:E7976", "w:E8885"), []),
    ],
)
def test_a_query_gives_what_its_answer_rests_on(
    world: World, questions: Mapping[str, Asked], number: str, topics: tuple[str, ...], facts: list[tuple[str, ...]]
) -> None:
    assert gold_of(world, questions[number]).topics == topics
    assert sorted(rows(world, questions[number])) == sorted(facts)


def test_what_is_compared_is_looked_for_on_both_sides(world: World, questions: Mapping[str, Asked]) -> None:
    assert [row[0] for row in rows(world, questions["q18"])] == ["w:E2648", "w:E3259"]


def test_every_question_with_an_answer_rests_on_facts_about_its_topics(world: World) -> None:
    for asked in read_questions():
        if asked.kind not in ABSENT:
            gold = gold_of(world, asked)
            assert gold.topics, asked.id
            assert gold.facts or asked.kind == "yes-no", asked.id


def test_what_a_question_asks_for_in_vain_is_read_from_it(world: World, questions: Mapping[str, Asked]) -> None:
    captain, bridge = (completed(world, questions[number]) for number in ("q07", "q50"))
    assert (captain.wanted, world.label(captain.topic)) == ("captain", "TS Wandering Tower")
    assert (bridge.wanted, bridge.topic) == ("Luchloholm Bridge", "")


def fact(world: World, head: str, relation: str, tail: str | ox.Literal) -> Wanted:
    end = named(tail) if isinstance(tail, str) else tail
    (found,) = wanted(world, [ox.Triple(named(head), named(relation), end)])
    return found


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("Turnov Bridge (w:E3553) | crosses (w:R112) | River Mirpá (w:E5305)", True),
        ("Turnov Bridge | spans | 2: River Mirpá, River Ská", True),
        ("Turnov Bridge (w:E3553) | crosses (w:R112)\nRiver Mirpá (w:E5305)", False),
        ("w:E35531 | crosses (w:R112) | w:E5305", False),
        ("Old Turnov Bridges | crosses | River Mirpá", False),
    ],
)
def test_a_fact_stands_in_a_line_that_names_all_of_it(world: World, text: str, stands: bool) -> None:
    assert fact(world, "w:E3553", "w:R112", "w:E5305").stands_in(text) is stands


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("w:E3553 | length (m) (w:R140) | 180.7", True),
        ('w:E3553 | w:R140 | "180.7"^^xsd:decimal', True),
        ("w:E3553 | w:R140 | 180.75", False),
        ("w:E3553 | w:R140 | 1,180.7", False),
    ],
)
def test_a_number_is_not_a_part_of_another(world: World, text: str, stands: bool) -> None:
    value = ox.Literal("180.7", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#decimal"))
    assert fact(world, "w:E3553", "w:R140", value).stands_in(text) is stands


def test_a_number_may_be_grouped_and_an_inverse_may_be_said(world: World) -> None:
    value = ox.Literal("126161", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer"))
    assert fact(world, "w:E9894", "w:R42", value).stands_in("Vlistšehaven | population | 126,161")
    assert fact(world, "w:E9320", "w:R198", "w:E2611").stands_in("Wirna Tončiák | parent | Stechik Zdüleda")


def test_an_entry_without_a_name_is_said_by_what_it_holds(world: World, questions: Mapping[str, Asked]) -> None:
    (entry,) = wanted(world, gold_of(world, questions["q59"]).facts)
    held = "Čautan Lanaru | career entry | player at New Keimwald Wanderers, 2005-04-06 to 2009-08-03"
    assert entry.stands_in(held)
    assert not entry.stands_in(held.replace("2005", "2004"))


def test_generated_questions_are_the_same_every_time_and_rest_on_facts(world: World) -> None:
    asked = generated(world, 12)
    assert asked == generated(World(), 12)
    assert len(asked) == 7 * 12
    assert all(gold_of(world, each).facts for each in asked if each.sparql)
    for each in asked:
        if each.kind == "no-such-entity":
            _, alike, _ = process.extractOne(each.wanted, list(world.bearers), scorer=fuzz.ratio)
            assert alike <= 80, each.wanted


@pytest.mark.anyio
async def test_one_answer_holds_what_is_asked(client: Client, world: World) -> None:
    kinds = {LITERAL, ONE_HOP, TWO_HOP, INVERSE, QUALIFIER}
    found = await findings(client, world, [each for each in read_questions() if each.kind in kinds])
    assert (failing(found, ONE_HOP, IN_ONE), failing(found, ONE_HOP, STATED)) == ([], [])
    assert [failing(found, kind, IN_ONE) for kind in (LITERAL, INVERSE)] == [[], []]
    assert (failing(found, ONE_HOP, EXACT), failing(found, QUALIFIER, IN_NEIGHBORS)) == ([], [])
    assert share(found, TWO_HOP, IN_LITTLE) >= 0.8


@pytest.mark.anyio
async def test_what_the_graph_does_not_say_is_told_by_typed_fields_alone(client: Client, world: World) -> None:
    asked = [*read_questions(), *generated(world, 8)]
    kinds = {NO_SUCH_FACT: NO_NEIGHBOR, NO_VALUE: NO_NEIGHBOR, NO_SUCH_ENTITY: NO_NAME}
    found = await findings(client, world, [each for each in asked if each.kind in kinds])
    assert len(found) == 32
    assert [failing(found, kind, claim) for kind, claim in kinds.items()] == [[], [], []]


def test_shares_are_of_a_kind_and_misses_are_named() -> None:
    found = [
        Finding(Asked(id=str(at), question="", kind=kind), {IN_ONE: held}) for at, (kind, held) in enumerate(_HELD)
    ]
    assert (share(found, ONE_HOP, IN_ONE), failing(found, ONE_HOP, IN_ONE)) == (0.5, ["2"])


_HELD = [(ONE_HOP, True), (INVERSE, False), (ONE_HOP, False)]
