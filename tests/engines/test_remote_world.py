"""A world of dates, numbers and names says, behind a real engine, exactly what it says locally."""

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.local.sparql.store import statements
from kg_adapters.local.store import LocalStore
from kg_adapters.models import FeaturePage, NeighborPage
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import ClassProfile, GraphProfile, unknown_profile
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest, SurroundingsRequest
from kg_adapters.sparql.adapter import SparqlAdapter, SparqlParts
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.sparql.profile_survey import ProfileLimits
from kg_adapters.sparql.queries import Queries
from kg_adapters.terms import XSD, Attribute, Fact, Iri, Literal, Node
from kg_adapters.values import order_of
from remote_graphs import ENGINE_S, Engine
from small_graphs import store_of

pytestmark = pytest.mark.xdist_group("engines")

WORLD = "http://world.example/"
LABEL, BUILT = Iri("http://www.w3.org/2000/01/rdf-schema#label"), Iri(f"{WORLD}R33")
DECIMAL = Iri(f"{XSD}decimal")
ENTITIES, SEED = 80, 5
_LOADED: dict[str, str] = {}


@pytest.fixture(scope="module")
def world_files(tmp_path_factory: pytest.TempPathFactory) -> LocalStore:
    return open_sample(tmp_path_factory.mktemp("world"), "sample:world")


@pytest.fixture
async def world(world_files: LocalStore) -> AsyncIterator[LocalAdapter]:
    async with aclosing(LocalAdapter(world_files)) as graph:
        yield graph


@pytest.fixture
async def remote_world(engine: Engine, world_files: LocalStore, tmp_path: Path) -> AsyncIterator[SparqlAdapter]:
    """The world behind each engine, into which it is loaded once."""
    if engine.name not in _LOADED:
        _LOADED[engine.name] = engine.load_new("".join(statements(world_files.index)))
    async with engine.opened(_LOADED[engine.name], tmp_path) as graph:
        yield graph


@pytest.fixture(scope="module")
def entities(world_files: LocalStore) -> Sequence[Node]:
    """Some entities, the same every time."""
    nodes = world_files.index.nodes
    names = sorted(name for name in map(nodes.__getitem__, range(len(nodes))) if name.startswith(f"{WORLD}E"))
    return [Iri(name) for name in random.Random(SEED).sample(names, ENTITIES)]  # noqa: S311 - no secret


def kept(value: Literal) -> Literal:
    """Return a value as engines keep it: decimals without a fraction that says nothing."""
    return replace(value, value=value.value.removesuffix(".0")) if value.datatype == DECIMAL else value


def kept_fact(fact: Fact) -> Fact:
    return replace(fact, tail=kept(fact.tail)) if isinstance(fact, Attribute) else fact


def shown(page: NeighborPage) -> NeighborPage:
    """Return a page as any engine gives it, with a cursor that only says that there is one."""
    return replace(page, facts=tuple(map(kept_fact, page.facts)), cursor=page.cursor and "more")


def features_shown(page: FeaturePage) -> FeaturePage:
    return replace(page, features=tuple(replace(each, value=kept(each.value)) for each in page.features))


async def without_blanks(graph: LocalAdapter, entities: Sequence[Node]) -> list[Node]:
    """Return the entities beside which no blank node stands, since engines order and count those as they like."""
    pages = await graph.neighbors(NeighborRequest(tuple(entities), "both", limit=5_000))
    return [
        entity
        for entity, page in pages.items()
        if all(isinstance(end, Iri) for triple in page.triples for end in (triple.head, triple.tail))
    ]


@pytest.mark.parametrize("relations", [None, frozenset({LABEL, BUILT, Iri(f"{WORLD}R140")})])
async def test_edges_and_values_are_the_same(
    world: LocalAdapter, remote_world: SparqlAdapter, entities: Sequence[Node], relations: frozenset[Iri] | None
) -> None:
    some = tuple(await without_blanks(world, entities))
    assert len(some) > ENTITIES // 3
    request = NeighborRequest(some, "both", relations, limit=9, values=True)
    mine, theirs = [await graph.neighbors(request) for graph in (world, remote_world)]
    assert {each: shown(page) for each, page in theirs.items()} == {each: shown(page) for each, page in mine.items()}
    assert sum(isinstance(fact, Attribute) for page in mine.values() for fact in page.facts) > len(some)


async def test_values_are_paged_through_alike(
    world: LocalAdapter, remote_world: SparqlAdapter, entities: Sequence[Node]
) -> None:
    for entity in (await without_blanks(world, entities))[:5]:
        mine, theirs = [await paged(graph, entity) for graph in (world, remote_world)]
        assert theirs == mine


async def paged(graph: KGAdapter, entity: Node) -> list[NeighborPage]:
    """Return what leads away from an entity, page by page."""
    pages: list[NeighborPage] = []
    cursor: str | None = None
    while not pages or cursor:
        request = NeighborRequest((entity,), "out", limit=4, values=True, cursor=cursor)
        page = (await graph.neighbors(request))[entity]
        cursor = page.cursor
        pages.append(shown(page))
    return pages


@pytest.mark.parametrize("limit", [3, 200])
async def test_the_features_of_many_are_the_same(
    world: LocalAdapter, remote_world: SparqlAdapter, entities: Sequence[Node], limit: int
) -> None:
    for relations in (None, frozenset({LABEL, BUILT})):
        request = FeatureRequest(tuple(entities), relations, limit)
        mine = await world.features(request)
        assert len(mine) > ENTITIES // 2
        assert await remote_world.features(request) == {each: features_shown(page) for each, page in mine.items()}


async def test_the_same_attributes_are_stated(
    world: LocalAdapter, remote_world: SparqlAdapter, entities: Sequence[Node]
) -> None:
    pages = await world.features(FeatureRequest(tuple(entities[:20])))
    held = [
        Attribute(entity, each.relation, each.value)
        for entity, page in pages.items()
        for each in page.features
        if kept(each.value) == each.value
    ]
    others = [replace(fact, tail=replace(fact.tail, value=f"{fact.tail.value}0")) for fact in held]
    assert await remote_world.contains([*held, *others]) == await world.contains([*held, *others]) == frozenset(held)


async def test_the_profile_of_a_part_of_it_is_the_same(engine: Engine, world_files: LocalStore, tmp_path: Path) -> None:
    # What is said of the classes and relations, and of a tenth of all else.
    part = "".join(
        line
        for line in statements(world_files.index)
        if line.split("> ", 1)[0][-1] == "7" or line.startswith((f"<{WORLD}K", f"<{WORLD}R"))
    )
    graph = engine.load_new(part)
    async with aclosing(LocalAdapter(store_of(tmp_path, part))) as here, engine.opened(graph, tmp_path) as there:
        mine, theirs = await here.profile(), await there.profile()
    every = ProfileLimits(
        read=0, pause_s=0.0, instances=10_000, together=10_000, rows=100_000, timeout_s=ENGINE_S, total_s=10 * ENGINE_S
    )
    surveyed = await surveyed_profile(engine, graph, every)
    sampled = await surveyed_profile(engine, graph, replace(every, instances=30, together=300, pairs=30, classes=9))
    assert len(mine.classes) > 10
    assert (theirs.complete, theirs.sampled, theirs.values) == (True, False, mine.values)
    assert counts(theirs.everything) == counts(mine.everything)
    for told in (theirs, surveyed):
        assert told.inverses == mine.inverses
        assert list(map(counts, told.classes)) == list(map(counts, mine.classes))
    assert_ends_are_the_same(surveyed, mine)
    assert (sampled.complete, sampled.sampled, len(sampled.classes)) == (False, True, 9)
    assert sampled.everything == unknown_profile().everything
    for part_of, whole in zip(sampled.classes, surveyed.classes, strict=False):
        assert_is_a_sample(part_of, whole)


async def surveyed_profile(engine: Engine, graph: str, limits: ProfileLimits) -> GraphProfile:
    """Return the profile of a graph as though it were too large to be read."""
    queries = Queries.of(DIALECTS[engine.dialect], Vocabulary())
    endpoint = SparqlEndpoint(engine.options(graph))
    parts = SparqlParts("part", endpoint, queries, Prefixes(), timeout_s=ENGINE_S, profiled=limits)
    async with aclosing(SparqlAdapter(parts)) as adapter:
        await adapter.learn_profile()
        return await adapter.profile()


def assert_ends_are_the_same(told: GraphProfile, mine: GraphProfile) -> None:
    """Compare least and greatest values, but years: an engine may well read one of three digits, which is none."""
    compared = 0
    for one, other in zip(told.classes, mine.classes, strict=True):
        for each, expected in zip(one.properties, other.properties, strict=True):
            if each.values is None or expected.values is None or Iri(f"{XSD}gYear") in each.values.datatypes:
                continue
            for end, wanted in (
                (each.values.least, expected.values.least),
                (each.values.greatest, expected.values.greatest),
            ):
                assert (end is None) == (wanted is None)
                assert end is None or wanted is None or order_of(end) == order_of(wanted)
                compared += end is not None
    assert compared > 100


def assert_is_a_sample(part: ClassProfile, whole: ClassProfile) -> None:
    assert (part.iri, part.instances, part.direct) == (whole.iri, whole.instances, whole.direct)
    if whole.instances < 30:
        assert part == whole
        return
    assert part.looked_at == 30
    for each in part.properties:
        full = whole.property(each.relation, each.direction)
        assert full is not None
        assert each.instances <= min(30, full.instances)
        coverage = part.coverage(each.relation, each.direction)
        assert coverage is not None
        assert (coverage.instances, coverage.sampled) == (30, True)


def counts(known: ClassProfile) -> ClassProfile:
    """Return a profile without the least and greatest values, which engines write each in a way of its own."""
    properties = (
        replace(each, values=None if each.values is None else replace(each.values, least=None, greatest=None))
        for each in known.properties
    )
    return replace(known, properties=tuple(properties))


async def test_what_observe_looks_at_is_the_same_with_values(
    world: LocalAdapter, remote_world: SparqlAdapter, entities: Sequence[Node]
) -> None:
    some = tuple(await without_blanks(world, entities))
    request = SurroundingsRequest(some, per_relation=50, per_entity=1_000, values=True)
    mine, theirs = [await graph.surroundings(request) for graph in (world, remote_world)]
    assert theirs.sampled == mine.sampled
    found, expected = [
        [around.fact(place) for place in range(len(around)) if around.entities[around.near[place]] not in mine.sampled]
        for around in (theirs, mine)
    ]
    assert found == list(map(kept_fact, expected))
    assert sum(isinstance(fact, Attribute) for fact in found) > len(some)
