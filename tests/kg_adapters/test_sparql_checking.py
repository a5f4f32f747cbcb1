"""Queries that people write are sent as they are, but for a limit, once it is sure that they only read the graph."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from kg_adapters.errors import BackendError, InvalidRequest
from kg_adapters.sparql.check_worker import check
from kg_adapters.sparql.checking import QueryChecker, ReadOnlyQuery
from kg_adapters.testing import EXAMPLE, iri

GRAPH = "http://example.org/graph"


TWINS = "SELECT ?x { ex:kyoto ex:twin ?x } # all"
TWINS_SENT = f"PREFIX ex: <http://example.org/> {TWINS}\nLIMIT 2"
CHECKED = ReadOnlyQuery("SELECT", TWINS_SENT, (iri("kyoto"), iri("twin")))


def sent(query: str) -> str:
    return check(query, 50, namespaces={}, graphs=[GRAPH]).text


@pytest.fixture
async def checker() -> AsyncIterator[QueryChecker]:
    async with aclosing(QueryChecker({"ex": EXAMPLE}, [GRAPH])) as checker:
        yield checker


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?x { ?x ?p ?o } LIMIT 3",
        "SELECT ?x { ?x ?p ?o } LIMIT 3 OFFSET 2",
        "SELECT ?x { ?x ?p ?o } OFFSET 2",
        "SELECT ?x { ?x ?p ?o } VALUES ?x { <http://example.org/a> }",
        "ASK { ?s ?p ?o }",
        "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
        "DESCRIBE <http://example.org/a>",
    ],
)
def test_a_query_that_has_a_limit_or_takes_none_is_sent_as_it_is(query: str) -> None:
    assert sent(query) == query


def test_the_limit_of_a_part_is_not_that_of_the_whole() -> None:
    assert sent("SELECT ?x { { SELECT ?x { ?x ?p ?o } LIMIT 3 } }").endswith("}\nLIMIT 51")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT (<bif:http_get>('http://127.0.0.1:9/') AS ?x) {}",
        "SELECT (<SQL:run>('x') AS ?x) {}",
        "PREFIX b: <bif:> SELECT ?s { ?s ?p ?o FILTER(b:file_to_string('/etc/passwd') = '') }",
        "BASE <bif:x> SELECT (<y>(1) AS ?x) {}",
        "DELETE WHERE { ?s ?p ?o }",
        "SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
        "ASK FROM <http://example.org/other> { ?s ?p ?o }",
    ],
)
def test_what_does_more_than_read_the_graph_is_refused(query: str) -> None:
    with pytest.raises(InvalidRequest, match="refused"):
        sent(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s { ?s ?p ?o . ?o <bif:contains> 'x' }",
        "PREFIX f: <http://www.w3.org/2001/XMLSchema#> SELECT (f:integer('1') AS ?x) (STR(2) AS ?y) {}",
        "ASK FROM <http://example.org/graph> { ?s ?p ?o }",
    ],
)
def test_what_only_reads_the_graph_is_not(query: str) -> None:
    assert sent(query).startswith(query)


async def test_the_process_gives_the_same_answer_and_the_same_refusal(checker: QueryChecker) -> None:
    assert await checker.check(TWINS, max_rows=1) == CHECKED
    with pytest.raises(InvalidRequest, match="read-only"):
        await checker.check("CLEAR ALL", max_rows=9)


async def test_a_query_nested_too_deeply_is_refused_or_ends_the_process_and_no_other_check(
    checker: QueryChecker,
) -> None:
    with pytest.raises((InvalidRequest, BackendError)):
        await checker.check("ASK " + "{" * 5_000 + "}" * 5_000, max_rows=9)
    assert (await checker.check(TWINS, max_rows=1)).text == TWINS_SENT


async def test_a_check_that_takes_too_long_is_given_up() -> None:
    async with aclosing(QueryChecker({}, timeout_s=0.001)) as checker:
        with pytest.raises(InvalidRequest, match="took more than"):
            await checker.check("ASK {}", max_rows=9)


async def test_nothing_is_checked_for_a_graph_that_is_closed(checker: QueryChecker) -> None:
    await checker.aclose()
    with pytest.raises(BackendError, match="closed"):
        await checker.check("ASK {}", max_rows=9)
