"""An adapter that remembers: it asks only for what it does not know, once for everybody, and forgets in time."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
import rdflib

from kg_adapters.answer_cache import AnswerCache
from kg_adapters.caching import CacheLimits, CachingAdapter
from kg_adapters.errors import BackendTimeout, BackendUnavailable, InvalidRequest, KGError
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import PathRequest
from kg_adapters.protocol import KGAdapter, SupportsPaths, SupportsSearchNote, SupportsSparql
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.requests import NeighborRequest, SurroundingsRequest
from kg_adapters.surroundings import SupportsSurroundings, SupportsVectors
from kg_adapters.terms import Node
from kg_adapters.testing import NAMED, TANGLE, TOWNS, KGAdapterContract, ValuesContract, feature_page, iri, ntriples
from small_graphs import store_of
from sparql_stand_in import StandInEndpoint, adapter_over, endpoint_of
from surrounding_values import everything

ABILITIES = (SupportsPaths, SupportsSparql, SupportsSearchNote, SupportsVectors, SupportsSurroundings)


class TestCachedGraph(ValuesContract, KGAdapterContract):
    async def open_graph(self, triples: str) -> KGAdapter:
        return CachingAdapter(RdflibAdapter(rdflib.Graph().parse(data=triples, format="nt")))


class Backend:
    """Doubles numbers: it keeps what it was asked, and waits or fails where a test wants that."""

    def __init__(self, *failures: KGError) -> None:
        self.asked: list[list[int]] = []
        self.waiting = anyio.Event()
        self.go_on = anyio.Event()
        self.failures = list(failures)

    async def load(self, keys: Sequence[int]) -> Mapping[int, int]:
        self.asked.append(list(keys))
        self.waiting.set()
        await self.go_on.wait()
        if self.failures:
            raise self.failures.pop(0)
        return {key: 2 * key for key in keys}


class LabelsOf(RdflibAdapter):
    """Keeps the terms that it was asked to name."""

    def __init__(self, statements: Sequence[str]) -> None:
        super().__init__(rdflib.Graph().parse(data=ntriples(statements), format="nt"))
        self.asked: list[list[Node]] = []

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        """See `KGAdapter`."""
        self.asked.append(list(terms))
        return await super().labels(terms)


def abilities(graph: KGAdapter) -> list[bool]:
    return [isinstance(graph, ability) for ability in ABILITIES]


def over(endpoint: StandInEndpoint) -> CachingAdapter:
    return CachingAdapter(adapter_over(endpoint))


async def test_batches_that_overlap_ask_only_for_what_is_missing() -> None:
    graph = LabelsOf(NAMED)
    memory = CachingAdapter(graph)
    assert await memory.labels([iri("tokyo"), iri("nameless")]) == {iri("tokyo"): "Tokyo"}
    assert await memory.labels([iri("nameless"), iri("bern"), iri("tokyo")]) == {
        iri("bern"): "Bern",
        iri("tokyo"): "Tokyo",
    }
    assert graph.asked == [[iri("tokyo"), iri("nameless")], [iri("bern")]]


async def test_neighbors_degrees_and_descriptions_are_remembered_entity_by_entity() -> None:
    endpoint = endpoint_of(TANGLE)
    memory = over(endpoint)
    two, three = [iri("n1"), iri("n2")], [iri("n2"), iri("atlantis"), iri("n1")]
    pages = await memory.neighbors(NeighborRequest(tuple(two), limit=5))
    degrees = await memory.degrees(two)
    described = await memory.describe(two)
    asked = len(endpoint.asked)
    assert await memory.neighbors(NeighborRequest(tuple(three), limit=5)) == pages
    assert await memory.degrees(three) == degrees
    assert await memory.describe(three) == described
    assert len(endpoint.asked) == asked + 3
    assert all(iri("n1").value not in query for query in endpoint.asked[asked:])


async def test_another_question_about_the_same_entity_is_asked() -> None:
    endpoint = endpoint_of(TANGLE)
    memory = over(endpoint)
    for limit, relations in ((5, None), (6, None), (5, frozenset({iri("r1")})), (5, frozenset({iri("r1")}))):
        await memory.neighbors(NeighborRequest((iri("n1"),), relations=relations, limit=limit))
    assert len(endpoint.asked) == 3


async def test_pages_behind_a_cursor_are_remembered_and_bad_cursors_refused() -> None:
    endpoint = endpoint_of(TANGLE)
    memory = over(endpoint)
    first = (await memory.neighbors(NeighborRequest((iri("n1"),), limit=4)))[iri("n1")]
    assert first.cursor is not None
    for _ in range(2):
        second = await memory.neighbors(NeighborRequest((iri("n1"),), limit=4, cursor=first.cursor))
        assert not set(second[iri("n1")].triples) & set(first.triples)
    assert len(endpoint.asked) == 2
    for entities in ([], [iri("n1"), iri("n2")]):
        with pytest.raises(InvalidRequest):
            await memory.neighbors(NeighborRequest(tuple(entities), limit=4, cursor=first.cursor))


async def test_what_cannot_be_answered_is_refused_even_about_nobody() -> None:
    with pytest.raises(InvalidRequest):
        await over(endpoint_of(TANGLE)).neighbors(NeighborRequest((), limit=0))


async def test_single_questions_are_remembered() -> None:
    endpoint = endpoint_of(TOWNS)
    memory = over(endpoint)
    for _ in range(2):
        await feature_page(memory, iri("hermit"))
        await memory.search("hermit", limit=2)
        await memory.find_relations("country", limit=2)
        await memory.schema()
        assert isinstance(memory, SupportsSparql)
        await memory.select("SELECT ?s { ?s ?p ?o }", timeout_s=9, max_rows=2)
    once = len(endpoint.asked)
    await feature_page(over(endpoint), iri("hermit"))
    await over(endpoint).search("hermit", limit=2)
    assert len(set(endpoint.asked[:once])) == once


async def test_surroundings_are_remembered_entity_by_entity_and_equal() -> None:
    endpoint = endpoint_of([*TANGLE, 'n1 label "one"@en', 'r1 label "relation"@en'])
    graph, memory = adapter_over(endpoint), over(endpoint)
    assert isinstance(memory, SupportsSurroundings)
    await memory.surroundings(SurroundingsRequest((iri("n1"), iri("n2")), per_relation=2, per_entity=5))
    endpoint.asked.clear()
    around = [iri("n3"), iri("n1"), iri("atlantis"), iri("n2")]
    found = await memory.surroundings(SurroundingsRequest(tuple(around), per_relation=2, per_entity=5))
    assert len(endpoint.asked) == 1
    assert iri("n1").value + ">" not in endpoint.asked[0]
    assert everything(found) == everything(
        await graph.surroundings(SurroundingsRequest(tuple(around), per_relation=2, per_entity=5))
    )


async def test_a_store_gives_its_own_numbers_with_its_surroundings(tmp_path: Path) -> None:
    memory = CachingAdapter(LocalAdapter(store_of(tmp_path, ntriples(TANGLE))))
    assert isinstance(memory, SupportsSurroundings)
    found = await memory.surroundings(SurroundingsRequest((iri("n1"),), per_relation=2, per_entity=5))
    assert found.ids is not None


async def test_the_memory_can_do_what_its_graph_can_and_no_more(tmp_path: Path) -> None:
    local = LocalAdapter(store_of(tmp_path, ntriples(TOWNS)))
    graphs: list[KGAdapter] = [local, adapter_over(endpoint_of(TOWNS)), LabelsOf(TOWNS)]
    assert [abilities(CachingAdapter(graph)) for graph in graphs] == [abilities(graph) for graph in graphs]
    assert len({tuple(abilities(graph)) for graph in graphs}) == 3


async def test_the_memory_speaks_for_its_graph(tmp_path: Path) -> None:
    endpoint = endpoint_of(TOWNS)
    graph = adapter_over(endpoint)
    memory = CachingAdapter(graph)
    said = (memory.name, memory.prefixes, memory.vocabulary, memory.remote)
    assert said == (graph.name, graph.prefixes, graph.vocabulary, True)
    assert isinstance(memory, SupportsSearchNote)
    assert memory.search_note == graph.search_note
    await memory.aclose()
    assert endpoint.closed == 1
    local = CachingAdapter(LocalAdapter(store_of(tmp_path, ntriples(TOWNS))))
    assert isinstance(local, SupportsVectors)
    assert await local.label_vectors("no-model") is None
    assert isinstance(local, SupportsPaths)
    request = PathRequest(iri("tokyo"), iri("japan"))
    assert await local.paths(request) is await local.paths(request)


async def test_answers_are_forgotten_when_they_are_old() -> None:
    graph, now = LabelsOf(NAMED), [0.0]
    memory = CachingAdapter(graph, CacheLimits(expiry_s=60), clock=lambda: now[0])
    for when in (0.0, 59.0, 60.0):
        now[0] = when
        await memory.labels([iri("tokyo")])
    assert len(graph.asked) == 2


async def test_the_least_recently_used_answer_is_forgotten_first() -> None:
    backend = Backend()
    backend.go_on.set()
    cache = AnswerCache[int, int](2, 60)
    for key in (1, 2, 1, 3, 1, 2):
        assert await cache.get([key], backend.load) == {key: 2 * key}
    assert backend.asked == [[1], [2], [3], [2]]
    assert len(cache) == 2


async def test_a_batch_larger_than_the_memory_is_answered_whole() -> None:
    backend = Backend()
    backend.go_on.set()
    assert await AnswerCache[int, int](1, 60).get([1, 2, 3], backend.load) == {1: 2, 2: 4, 3: 6}


async def test_equal_questions_at_the_same_time_are_asked_once() -> None:
    backend, cache = Backend(), AnswerCache[int, int](9, 60)
    found: list[Mapping[int, int]] = []

    async def ask(*keys: int) -> None:
        found.append(await cache.get(keys, backend.load))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, 1, 2)
        await backend.waiting.wait()
        tasks.start_soon(ask, 1)
        tasks.start_soon(ask, 2, 3)
        await anyio.lowlevel.checkpoint()
        backend.go_on.set()
    assert sorted(found, key=sorted) == [{1: 2}, {1: 2, 2: 4}, {2: 4, 3: 6}]
    assert backend.asked == [[1, 2], [3]]


async def test_an_error_reaches_everyone_who_waits_and_is_not_remembered() -> None:
    backend, cache = Backend(BackendUnavailable("The endpoint is down.")), AnswerCache[int, int](9, 60)
    failed: list[str] = []

    async def ask() -> None:
        try:
            await cache.get([1], backend.load)
        except BackendUnavailable as error:
            failed.append(str(error))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await backend.waiting.wait()
        tasks.start_soon(ask)
        await anyio.lowlevel.checkpoint()
        backend.go_on.set()
    assert failed == ["The endpoint is down."] * 2
    assert await cache.get([1], backend.load) == {1: 2}
    assert backend.asked == [[1], [1]]


async def test_whoever_waits_for_a_cancelled_question_asks_it_anew() -> None:
    backend, cache = Backend(), AnswerCache[int, int](9, 60)
    found: list[Mapping[int, int]] = []

    async def ask() -> None:
        found.append(await cache.get([1], backend.load))

    async with anyio.create_task_group() as tasks, anyio.create_task_group() as first:
        first.start_soon(ask)
        await backend.waiting.wait()
        tasks.start_soon(ask)
        await anyio.lowlevel.checkpoint()
        first.cancel_scope.cancel()
        backend.go_on.set()
    assert found == [{1: 2}]
    assert backend.asked == [[1], [1]]


async def test_an_adapter_that_times_out_is_asked_again() -> None:
    endpoint = StandInEndpoint(ntriples(NAMED), [BackendTimeout("late"), None])
    memory = over(endpoint)
    with pytest.raises(BackendTimeout):
        await memory.labels([iri("tokyo")])
    assert await memory.labels([iri("tokyo")]) == {iri("tokyo"): "Tokyo"}
