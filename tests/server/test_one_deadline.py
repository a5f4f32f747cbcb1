"""One deadline for the whole call: every step gets what is left of it, and what is known when it comes is answered."""

from collections.abc import Collection, Mapping
from pathlib import Path

import anyio

from calls import call, composed, rows
from kg_adapters.errors import BackendError
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import SparqlAnswer
from kg_adapters.set_requests import Computed, SetRequest
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import Node
from played_time import hang
from remote_graphs import CITIES
from small_graphs import store_of
from sparql_stand_in import StandInEndpoint, adapter_over

COUNTED = "Count[Neighbor[http://example.org/japan, -country]]"


class Timed(StandInEndpoint):
    """Keeps how long each query may take."""

    def __init__(self, triples: str) -> None:
        super().__init__(triples)
        self.allowed: list[float] = []

    async def answer(self, text: str, timeout_s: float | None, max_rows: int | None) -> Solutions:
        self.allowed.append(timeout_s or 0.0)
        return await super().answer(text, timeout_s, max_rows)


async def test_names_query_and_explanation_share_the_deadline_of_one_call() -> None:
    endpoint = Timed(CITIES)
    query = 'SELECT ?x { ?x @"country" ex:japan . ?x ex:population "7" }'
    reply = await call(adapter_over(endpoint), "Sparql", query=query, timeout_s=50)
    assert reply.data["status"] == "empty"
    asked = dict(zip(endpoint.asked, endpoint.allowed, strict=True))
    select = next(allowed for text, allowed in asked.items() if text.rstrip().endswith("LIMIT 101"))
    explanations = [allowed for text, allowed in asked.items() if "ASK" in text]
    assert explanations
    assert 50 > select > max(explanations)


async def test_a_step_is_given_what_is_left_of_the_call() -> None:
    endpoint = Timed(CITIES)
    with anyio.fail_after(7):
        await adapter_over(endpoint).describe([])
        await adapter_over(endpoint).schema()
    assert max(endpoint.allowed) < 7


class Silent(LocalAdapter):
    """A graph of which some abilities can be made to hang."""

    hanging: frozenset[str] = frozenset()

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        if "labels" in self.hanging:
            await hang()
        return await super().labels(terms)

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        if "select" in self.hanging:
            await hang()
        return await super().select(query, timeout_s=timeout_s, max_rows=max_rows)


def silent(folder: Path, *hanging: str) -> Silent:
    graph = Silent(store_of(folder, CITIES))
    graph.hanging = frozenset(hanging)
    return graph


async def test_a_query_that_the_graph_never_ends_is_ended(tmp_path: Path) -> None:
    reply = await call(silent(tmp_path, "select"), "Sparql", query="SELECT * { ?x ?y ?z }", timeout_s=50)
    assert reply.is_error
    assert reply.text == ("The query was stopped after 50 s. Make it more selective, or ask with a larger timeout_s.")


async def test_facts_whose_labels_are_late_come_without_labels_and_say_so(tmp_path: Path) -> None:
    graph = silent(tmp_path, "labels")
    kyoto = "<http://example.org/kyoto>"
    reply = await call(graph, "GetNeighbor", entity=kyoto)
    assert [row[2] for row in rows(reply.data["triples"])] == ["example:japan"]
    assert reply.summary.endswith("Labels are missing: they did not come in time.")
    assert str(reply.data["summary"]) == reply.summary


class Unexplaining(LocalAdapter):
    """Computes one answer, and then fails or hangs."""

    computed = 0
    failure: Exception | None = None

    async def compute(self, request: SetRequest) -> Computed:
        self.computed += 1
        if self.computed > 1:
            if self.failure is not None:
                raise self.failure
            await hang()
        return await super().compute(request)


async def test_a_number_whose_explanation_is_late_is_answered_and_says_so(tmp_path: Path) -> None:
    graph = Unexplaining(store_of(tmp_path, CITIES))
    reply = await composed(graph, COUNTED)
    assert rows(reply.data["results"])[0][3] == "1"
    assert "What it rests on was not found: There was no time for it" in reply.summary


async def test_a_number_whose_explanation_fails_is_answered_and_says_so(tmp_path: Path) -> None:
    graph = Unexplaining(store_of(tmp_path, CITIES))
    graph.failure = BackendError("The engine is broken.")
    reply = await composed(graph, COUNTED)
    assert rows(reply.data["results"])[0][3] == "1"
    assert "What it rests on was not found: The engine is broken." in reply.summary


async def test_an_answer_whose_evidence_cannot_be_fetched_is_given_without_it() -> None:
    endpoint = StandInEndpoint(CITIES)
    expression = "Neighbor[Neighbor[ex:kyoto, country], -country]"
    whole = await call(adapter_over(endpoint), "Compose", expression=expression)
    first = next(place for place, text in enumerate(endpoint.asked) if "member" in text)
    endpoint.failures = [*([None] * (first + 1)), BackendError("The engine is broken.")]
    reply = await call(adapter_over(endpoint), "Compose", expression=expression)
    assert rows(reply.data["results"]) == rows(whole.data["results"])
    assert rows(whole.data["evidence"])
    assert not rows(reply.data["evidence"])
    assert "Without evidence: The engine is broken." in reply.summary
