# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""What the contract says about SPARQL; skipped where the graph does not answer it."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import anyio
import pytest

from kg_adapters.errors import BackendTimeout, InvalidRequest
from kg_adapters.models import SparqlAnswer
from kg_adapters.protocol import KGAdapter, SupportsSparql
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import RDF_LANG_STRING, Literal
from kg_adapters.testing.graphs import EXAMPLE, HEAP, TOWNS, VALUES, edge, iri, typed
from kg_adapters.testing.opening import GraphOpening

PREFIX: Final = f"PREFIX ex: <{EXAMPLE}>\n"
BOMB: Final = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . FILTER(?a < ?j) }"
HANG_S: Final = 60.0

WRITES: Final = (
    "INSERT DATA { ex:a ex:b ex:c }",
    "DELETE WHERE { ?s ?p ?o }",
    "DELETE { ?s ?p ?o } INSERT { ?s ?p ex:x } WHERE { ?s ?p ?o }",
    "CLEAR ALL",
    "DROP DEFAULT",
    "LOAD <http://127.0.0.1:9/x.ttl>",
    "ASK {}; CLEAR ALL",
)
OUTSIDE: Final = (
    "SELECT * { SERVICE <http://127.0.0.1:9/sparql> { ?s ?p ?o } }",
    "SELECT * { { SELECT * { OPTIONAL { SERVICE SILENT <http://127.0.0.1:9/sparql> { ?s ?p ?o } } } } }",
    "ASK { FILTER EXISTS { SERVICE ?where { ?s ?p ?o } } }",
    "SELECT * FROM <http://127.0.0.1:9/x.ttl> { ?s ?p ?o }",
)
UNREADABLE: Final = ("", "tell me about Tokyo", "SELECT ?x {", "SELECT ?x { ?x ex:a }", "SELECT ?x { ?x nowhere:a ?y }")


def plain(answer: SparqlAnswer) -> SparqlAnswer:
    """Return an answer without the list of what its query names."""
    return replace(answer, named=())


class SparqlContract(GraphOpening):
    """SPARQL: typed answers, bounded and read-only."""

    @asynccontextmanager
    async def queryable(self, statements: Iterable[str]) -> AsyncGenerator[SupportsSparql]:
        """Open a graph and skip the test where it does not answer SPARQL."""
        async with self.opened(statements) as graph:
            if not isinstance(graph, SupportsSparql):
                pytest.skip("this adapter does not answer SPARQL")
            yield graph

    async def test_select_gives_rows_of_terms_with_none_where_nothing_is_bound(self) -> None:
        query = "SELECT ?town ?twin { ?town ex:country ?c OPTIONAL { ?town ex:twin ?twin } } ORDER BY ?town ?twin"
        async with self.queryable(TOWNS) as graph:
            answer = await graph.select(PREFIX + query, timeout_s=HANG_S, max_rows=10)
        rows = (("kyoto", "kyiv"), ("kyoto", "paris"), ("osaka", None), ("paris", "kyoto"), ("tokyo", None))
        terms = tuple((iri(town), None if twin is None else iri(twin)) for town, twin in rows)
        assert plain(answer) == SparqlAnswer("SELECT", ("town", "twin"), terms, truncated=False)

    async def test_literals_keep_their_datatypes_and_languages(self) -> None:
        query = "SELECT ?o { VALUES ?p { ex:area ex:motto ex:population ex:code } ex:tokyo ?p ?o }"
        async with self.queryable(VALUES) as graph:
            answer = await graph.select(PREFIX + query, timeout_s=HANG_S, max_rows=10)
        assert {row[0] for row in answer.rows} == {
            typed("2194.07", "decimal"),
            Literal('two\nlines, "quoted" \\ and back', RDF_LANG_STRING, "en"),
            typed("13960000", "integer"),
            Literal("T1", iri("code")),
        }

    async def test_ask_gives_a_truth(self) -> None:
        async with self.queryable(TOWNS) as graph:
            yes = await graph.select(PREFIX + "ASK { ex:tokyo ex:country ex:japan }", timeout_s=HANG_S, max_rows=10)
            no = await graph.select(PREFIX + "ASK { ex:tokyo ex:country ex:france }", timeout_s=HANG_S, max_rows=10)
        assert plain(yes) == SparqlAnswer("ASK", (), (), truncated=False, truth=True)
        assert plain(no) == SparqlAnswer("ASK", (), (), truncated=False, truth=False)

    async def test_construct_gives_statements_as_rows(self) -> None:
        query = "CONSTRUCT { ?b ex:hosts ?a } WHERE { ?a ex:twin ?b }"
        async with self.queryable(TOWNS) as graph:
            answer = await graph.select(PREFIX + query, timeout_s=HANG_S, max_rows=10)
        hosts = [edge(text) for text in ("kyiv hosts kyoto", "paris hosts kyoto", "kyoto hosts paris")]
        assert (answer.form, answer.variables) == ("CONSTRUCT", ("subject", "predicate", "object"))
        assert sorted(answer.rows, key=str) == sorted(((t.head, t.relation, t.tail) for t in hosts), key=str)

    async def test_rows_beyond_the_limit_are_cut_and_the_answer_says_so(self) -> None:
        query = PREFIX + "SELECT ?town { ?town ex:country ?c } ORDER BY ?town"
        async with self.queryable(TOWNS) as graph:
            cut = await graph.select(query, timeout_s=HANG_S, max_rows=2)
            full = await graph.select(query, timeout_s=HANG_S, max_rows=4)
        names = ("kyoto", "osaka", "paris", "tokyo")
        assert plain(cut) == SparqlAnswer("SELECT", ("town",), tuple((iri(n),) for n in names[:2]), truncated=True)
        assert plain(full) == SparqlAnswer("SELECT", ("town",), tuple((iri(n),) for n in names), truncated=False)

    async def test_an_empty_answer_has_no_rows(self) -> None:
        async with self.queryable(TOWNS) as graph:
            answer = await graph.select(PREFIX + "SELECT ?x { ?x ex:eats ?y }", timeout_s=HANG_S, max_rows=2)
        assert plain(answer) == SparqlAnswer("SELECT", ("x",), (), truncated=False)

    async def test_writing_is_refused_and_changes_nothing(self) -> None:
        count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
        async with self.queryable(TOWNS) as graph:
            for update in WRITES:
                with pytest.raises(InvalidRequest):
                    await graph.select(PREFIX + update, timeout_s=HANG_S, max_rows=2)
            answer = await graph.select(count, timeout_s=HANG_S, max_rows=2)
        assert answer.rows == ((typed(str(len(TOWNS)), "integer"),),)

    async def test_reaching_outside_the_graph_is_refused(self) -> None:
        async with self.queryable(TOWNS) as graph:
            for query in OUTSIDE:
                with pytest.raises(InvalidRequest):
                    await graph.select(query, timeout_s=HANG_S, max_rows=2)

    async def test_what_is_not_sparql_is_refused(self) -> None:
        async with self.queryable(TOWNS) as graph:
            for query in UNREADABLE:
                with pytest.raises(InvalidRequest):
                    await graph.select(query, timeout_s=HANG_S, max_rows=2)

    async def test_a_query_without_end_is_stopped_and_the_next_one_is_answered(self) -> None:
        async with self.queryable(HEAP) as graph:
            with anyio.fail_after(HANG_S):
                with pytest.raises(BackendTimeout):
                    await graph.select(BOMB, timeout_s=1.0, max_rows=2)
                answer = await graph.select("ASK { ?s ?p ?o }", timeout_s=HANG_S, max_rows=2)
        assert answer.truth is True

    async def test_other_calls_are_answered_while_a_query_without_end_runs(self) -> None:
        order: list[str] = []
        async with self.queryable(HEAP) as graph:
            assert isinstance(graph, KGAdapter)

            async def explode() -> None:
                with pytest.raises(BackendTimeout):
                    await graph.select(BOMB, timeout_s=3.0, max_rows=2)
                order.append("stopped")

            with anyio.fail_after(HANG_S):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(explode)
                    await anyio.lowlevel.checkpoint()
                    await graph.neighbors(NeighborRequest((iri("o1"),), direction="in", limit=3))
                    order.append("answered")
        assert order == ["answered", "stopped"]
