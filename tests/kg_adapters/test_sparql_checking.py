"""What queries must not do, and what is wrong with their syntax."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from kg_adapters.errors import BackendError, InvalidRequest
from kg_adapters.sparql.check_worker import check
from kg_adapters.sparql.checking import QueryChecker, ReadOnlyQuery
from kg_adapters.sparql_guard import SyntaxProblem, engine_problem, read_engine_error
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


QUERY = "ASK {\n?s ?p ?o .\n?x ?y }"


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ('error at 1:5: expected one of "(", "{"', SyntaxProblem(4, "unexpected '{'; expected one of ( {")),
        ('error at 2:7: expected ";"', SyntaxProblem(12, "unexpected '?o'; expected one of ;")),
        ('error at 3:7: expected "."', SyntaxProblem(23, "unexpected '}'; expected one of .")),
        # Of keywords alone the end of the longest is reported.
        ("error at 2:7: expected one of FROM, ASK", SyntaxProblem(8, "unexpected '?p'")),
        ("error at 1:2: expected one of SELECT, ASK", SyntaxProblem(0, "unexpected 'ASK'")),
        ('error at 2:7: expected one of "{", WHERE', SyntaxProblem(12, "unexpected '?o'; expected one of { WHERE")),
        (r'error at 1:5: expected one of "\"", "{"', SyntaxProblem(4, "unexpected '{'; expected one of \" {")),
        # No place is behind the end.
        ('error at 3:99: expected "}"', SyntaxProblem(24, "unexpected end of the query; expected one of }")),
        ("error at 1:9: expected The SELECT contains a variable that is unbound", None),
        ("Too deep.\nat frame 7", SyntaxProblem(None, "Too deep.")),
        ("x" * 121, SyntaxProblem(None, "x" * 120)),
    ],
)
def test_an_engines_message_is_told_with_its_place(message: str, problem: SyntaxProblem | None) -> None:
    found = read_engine_error(QUERY, message)
    assert found == problem if problem is not None else found.what.startswith("with GROUP BY or an aggregate")


@pytest.mark.parametrize(("number", "more"), [(8, ""), (9, " …")])
def test_eight_of_what_was_expected_are_named(number: int, more: str) -> None:
    marks = [f"<{each}>" for each in range(number)]
    found = read_engine_error("ASK", "error at 1:1: expected one of " + ", ".join(f'"{mark}"' for mark in marks))
    assert found.what == f"unexpected 'ASK'; expected one of {' '.join(marks[:8])}{more}"


@pytest.mark.parametrize(
    ("line", "at", "shown", "caret"),
    [
        ("a" * 200, 0, 120, 0),
        ("a" * 200, 60, 120, 60),
        ("a" * 200, 61, 120, 60),
        ("a" * 200, 190, 70, 60),
        ("a" * 120, 119, 61, 60),
    ],
)
def test_of_a_long_line_sixty_characters_before_the_place_are_shown(line: str, at: int, shown: int, caret: int) -> None:
    told, before, mark = SyntaxProblem(at + 2, "odd").describe(f"b\n{line}\nc").split("\n")
    assert told == f" at line 2, column {at + 1}: odd"
    assert (before, mark) == ("a" * shown, f"{' ' * caret}^")


def test_the_text_as_a_whole_has_no_place() -> None:
    assert SyntaxProblem(None, "too odd").describe("ASK") == ": too odd."


def test_the_first_line_begins_with_the_first_character() -> None:
    assert SyntaxProblem(0, "odd").describe("?ask\n") == " at line 1, column 1: odd\n?ask\n^"
    assert SyntaxProblem(0, "odd").describe("\n?ask") == " at line 1, column 1: odd\n\n^"
    assert SyntaxProblem(1, "odd").describe("\n?ask") == " at line 2, column 1: odd\n?ask\n^"


@pytest.mark.parametrize(
    ("query", "form"),
    [
        ("SELECT ?x (COUNT(?y) AS ?n) { ?x ?p ?y }", "GROUP BY ?x"),
        ("SELECT (MONTH(?d) AS ?m) { ?x ?p ?d } GROUP BY (MONTH(?d))", "GROUP BY (MONTH(?date) AS ?m)"),
    ],
)
def test_what_is_not_grouped_is_told_with_the_form_that_groups_it(query: str, form: str) -> None:
    problem = engine_problem(query, {})
    assert problem is not None
    assert problem.what.startswith("with GROUP BY or an aggregate, ")
    assert problem.what.endswith(form)
