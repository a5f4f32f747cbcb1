"""Wikidata's services give what the same statements give at hand."""

import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from kg_adapters.http.pacing import Rates
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.local.sparql.store import statements
from kg_adapters.local.store import LocalStore
from kg_adapters.models import EdgeDirection, NeighborPage
from kg_adapters.profile import unknown_profile
from kg_adapters.registry import OpenOptions
from kg_adapters.requests import NeighborRequest, SurroundingsRequest
from kg_adapters.surroundings import gather_surroundings
from kg_adapters.terms import Iri, Node, Triple
from kg_adapters.wikidata.adapter import WikidataAdapter
from kg_adapters.wikidata.opening import open_wikidata
from kg_adapters.wikidata.queries import DIRECT
from small_graphs import store_of
from wikidata_stand_in import WikidataStandIn, as_wikidata, running, wd

SEED, ENTITIES, LIMIT = 7, 80, 30
WHOLE = 50
"""Groups of up to so many neighbours come whole and sorted; larger ones in the order of the engine."""


HUBS = [wd("Q30"), wd("Q5"), wd("Q17")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> LocalStore:
    """The shipped slice of Wikidata."""
    return open_sample(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def service(store: LocalStore) -> WikidataStandIn:
    """The same, behind services like Wikidata's."""
    return WikidataStandIn(as_wikidata(statements(store.index)))


@pytest.fixture
def entities(store: LocalStore) -> Sequence[Node]:
    """Some entities, drawn by chance and always the same."""
    nodes = store.index.nodes
    items = sorted(key for key in map(nodes.__getitem__, range(len(nodes))) if key.startswith(wd("Q").value))
    return [Iri(key) for key in random.Random(SEED).sample(items, ENTITIES)]  # noqa: S311 - no secret


@pytest.fixture
async def here(store: LocalStore) -> AsyncIterator[LocalAdapter]:
    async with aclosing(LocalAdapter(store)) as graph:
        yield graph


@pytest.fixture
async def there(service: WikidataStandIn, tmp_path: Path) -> AsyncIterator[WikidataAdapter]:
    async with running(service):
        options = OpenOptions(tmp_path, wikidata=service.options(timeout_s=60))
        async with aclosing(await open_wikidata("", options, rates=Rates())) as graph:
            yield graph


def shown(pages: Mapping[Node, NeighborPage]) -> Mapping[Node, NeighborPage]:
    """Return pages of which a cursor only says that there is one: what it says is the adapter's own business."""
    return {entity: replace(page, cursor=page.cursor and "more") for entity, page in pages.items()}


def groups(page: NeighborPage, entity: Node) -> Counter[tuple[EdgeDirection, Iri]]:
    """Count what a page shows by direction and relation."""
    return Counter(("out" if triple.head == entity else "in", triple.relation) for triple in page.triples)


async def test_neighbours_are_the_same_in_the_same_order(
    here: LocalAdapter, there: WikidataAdapter, entities: Sequence[Node]
) -> None:
    degrees = await here.degrees(entities)
    small = [each for each in entities if max(count.count.value for count in degrees[each].relations) <= WHOLE]
    assert len(small) > ENTITIES // 2
    mine, theirs = [shown(await graph.neighbors(NeighborRequest(tuple(small), limit=LIMIT))) for graph in (here, there)]
    assert theirs == mine


async def test_degrees_are_the_same_for_hubs_too(
    here: LocalAdapter, there: WikidataAdapter, entities: Sequence[Node]
) -> None:
    for asked in (HUBS, [*entities, *HUBS]):
        assert await there.degrees(asked) == await here.degrees(asked)


@pytest.mark.parametrize("hub", HUBS, ids=str)
async def test_a_hub_shows_as_many_neighbours_of_each_relation(
    here: LocalAdapter, there: WikidataAdapter, hub: Node
) -> None:
    mine, theirs = [(await graph.neighbors(NeighborRequest((hub,), limit=200)))[hub] for graph in (here, there)]
    assert (groups(theirs, hub), theirs.total, theirs.truncated) == (groups(mine, hub), mine.total, mine.truncated)


async def test_the_same_triples_are_there(here: LocalAdapter, there: WikidataAdapter, entities: Sequence[Node]) -> None:
    pages = (await here.neighbors(NeighborRequest(tuple(entities[:20]), limit=5))).values()
    held = [triple for page in pages for triple in page.triples]
    turned = [Triple(triple.tail, triple.relation, triple.head) for triple in held]
    assert await there.contains([*held, *turned]) == await here.contains([*held, *turned])


async def test_names_and_types_are_the_same(
    here: LocalAdapter, there: WikidataAdapter, entities: Sequence[Node]
) -> None:
    relations = [count.relation for degree in (await here.degrees(HUBS)).values() for count in degree.relations]
    assert await there.labels([*entities, *relations]) == await here.labels([*entities, *relations])
    mine = await here.describe(entities)
    assert await there.describe(entities) == mine


async def test_the_edges_around_several_entities_are_those_of_their_neighbours(
    there: WikidataAdapter, entities: Sequence[Node]
) -> None:
    found = await there.surroundings(SurroundingsRequest(tuple(entities), per_relation=WHOLE, per_entity=10_000))
    gathered = await gather_surroundings(
        there, SurroundingsRequest(tuple(entities), per_relation=WHOLE, per_entity=10_000)
    )
    assert [found.triple(place) for place in range(len(found))] == [
        gathered.triple(place) for place in range(len(gathered))
    ]
    assert (list(found.relation_labels), list(found.far_labels)) == (
        list(gathered.relation_labels),
        list(gathered.far_labels),
    )


TOLD = """
{0} <http://www.wikidata.org/prop/direct/P1449> "nickname {1}" .
{0} <http://www.wikidata.org/prop/direct/P1448> "Name {1}"@de .
{0} <http://www.wikidata.org/prop/direct/P2048> "{1}.5"^^<http://www.w3.org/2001/XMLSchema#decimal> .
{0} <http://www.wikidata.org/prop/direct/P17> <http://www.wikidata.org/entity/Q30> .
"""


async def test_values_that_need_no_statements_are_the_same(tmp_path: Path) -> None:
    items = tuple(wd(f"Q{number}") for number in range(100, 140))
    triples = "".join(TOLD.format(f"<{item}>", number) for number, item in enumerate(items))
    stand_in = WikidataStandIn(as_wikidata(triples.splitlines(keepends=True)))
    request, named = NeighborRequest(items, limit=3, values=True), frozenset({Iri(DIRECT + "P1448")})
    async with (
        running(stand_in),
        aclosing(LocalAdapter(store_of(tmp_path, triples))) as here,
        aclosing(await open_wikidata("", OpenOptions(tmp_path, wikidata=stand_in.options()), rates=Rates())) as there,
    ):
        for asked in (request, replace(request, relations=named)):
            mine, theirs = [shown(await graph.neighbors(asked)) for graph in (here, there)]
            assert len(mine) == len(items)
            assert theirs == mine
        around = SurroundingsRequest(items, per_relation=5, per_entity=50, values=True)
        mine_around, their_around = [await graph.surroundings(around) for graph in (here, there)]
        facts = [mine_around.fact(place) for place in range(len(mine_around))]
        assert [their_around.fact(place) for place in range(len(their_around))] == facts
        assert await there.contains(facts) == await here.contains(facts) == frozenset(facts)


async def test_the_profile_is_a_sample_that_few_requests_give(
    here: LocalAdapter, there: WikidataAdapter, service: WikidataStandIn
) -> None:
    before = len(service.endpoint.requests)
    assert await there.profile() == unknown_profile()
    assert len(service.endpoint.requests) == before
    await there.learn_profile()
    assert len(service.endpoint.requests) - before <= 30
    mine, theirs = await here.profile(), await there.profile()
    human, country = (theirs.profile_of(wd(each)) for each in ("Q5", "Q6256"))
    assert human is not None
    assert country is not None
    known = mine.profile_of(wd("Q5"))
    assert known is not None
    assert (human.label, human.instances, human.looked_at, human.at_least) == ("human", known.direct, 200, True)
    assert (theirs.complete, theirs.sampled, theirs.everything.complete) == (False, True, False)
    for each in human.properties:
        full = known.property(each.relation)
        assert full is not None
        assert 0 < each.instances <= min(200, full.instances)
        assert each.label == full.label
    coverage = human.coverage(Iri(f"{DIRECT}P106"))
    assert coverage is not None
    assert (coverage.instances, coverage.sampled) == (200, True)
    assert coverage.share > 0.5
    assert theirs.inverse_of(Iri(f"{DIRECT}P530")) == Iri(f"{DIRECT}P530")  # diplomatic relation
