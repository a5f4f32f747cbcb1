# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""Contract tests about optional abilities: sets, paths and SPARQL."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from math import isclose
from typing import Final

import anyio
import pytest

from kg_adapters.algebra import (
    ANY,
    Best,
    Compares,
    Has,
    Hop,
    HopPath,
    Instances,
    Intersect,
    Kept,
    Linked,
    Meets,
    Members,
    Minus,
    NumberOf,
    Numbers,
    Operator,
    Outranks,
    Reached,
    Step,
    Timed,
    TotalOf,
    Union,
    ValueOf,
    Values,
)
from kg_adapters.errors import BackendTimeout, InvalidRequest
from kg_adapters.index.sets.answers import sets_of
from kg_adapters.labels import Vocabulary
from kg_adapters.models import Count, Path, PathRequest, PathsFound, SparqlAnswer
from kg_adapters.protocol import KGAdapter, SupportsPaths, SupportsSets, SupportsSparql
from kg_adapters.requests import NeighborRequest
from kg_adapters.set_requests import (
    Aggregated,
    Computed,
    Ends,
    Grouped,
    Listed,
    SetQuestion,
    SetRequest,
    SharedBy,
    Tabled,
)
from kg_adapters.terms import RDF_LANG_STRING, Attribute, Fact, Literal
from kg_adapters.testing.graphs import (
    CROWD,
    EXAMPLE,
    HEAP,
    LOOPS,
    ROADS,
    TOWNS,
    VALUES,
    GraphOpening,
    edge,
    edges,
    iri,
    typed,
)


def _value(head: str, relation: str, text: str, datatype: str) -> Fact:
    return Attribute(iri(head), iri(relation), typed(text, datatype))


DOLLAR: Final = iri("dollar")
SHOWN: Final = (("heat", "10:00:00+05:30"), ("ran", "06:00:00-04:00"), ("m", "06:00:00+01:00"), ("m", "00:30:00+02:00"))
FACTS: Final[tuple[Fact, ...]] = (
    *(edge(text) for text in ("heat type film", "ran type film", "noir subClassOf film", "m type noir")),
    *(edge(text) for text in ("heat cast ann", "heat cast bob", "ran cast bob", "m cast cid", "ann spouse bob")),
    *(edge(text) for text in ("ann born rome", "cid born rome", "ann died rome", "rome in italy", "italy in europe")),
    *(_value("heat", "length", "170", "integer"), _value("ran", "length", "162.5", "decimal")),
    *(_value("m", "length", "170", "integer"), _value("m", "length", "99", "integer")),
    *(_value("heat", "released", "1995-12-15", "date"), _value("ran", "released", "1985", "gYear")),
    *(_value("m", "released", "1995-12-14T20:15:00", "dateTime"), _value("m", "note", "Long Night", "string")),
    *(_value(film, "shown", f"2024-05-01T{time}", "dateTime") for film, time in SHOWN),
    *(Attribute(iri(film), iri("budget"), Literal(text, DOLLAR)) for film, text in (("heat", "12"), ("ran", "+9.5"))),
    *(Attribute(iri("m"), iri("budget"), Literal(text, iri(unit))) for text, unit in (("9", "yen"), ("low", "dollar"))),
    *(_value("ann", "label", "Ann", "string"), _value("ann", "note", "long", "string")),
    *(_value("heat", "minutes", "170", "decimal"), _value("ran", "minutes", "161.5", "decimal")),
)


def _path(*steps: str, repeated: bool = False) -> HopPath:
    """Return a path over relations, `-` before those that are walked backwards."""
    walked = (Step(iri(step.lstrip("-")), "in" if step.startswith("-") else "out") for step in steps)
    return HopPath(tuple(Hop((step,), repeated=repeated) for step in walked))


FILMS: Final = Instances(iri("film"))
PEOPLE: Final = Reached(FILMS, _path("cast"))
LENGTH: Final = ValueOf(_path("length"))
RELEASED: Final = ValueOf(_path("released"), "date")
BUDGET: Final = ValueOf(_path("budget"), "number", DOLLAR)
SHOWING: Final = ValueOf(_path("shown"), "date")
SHOWN_WHEN: Final[tuple[tuple[Operator, str, str], ...]] = (
    ("<", "2024-05-01T07:00:00Z", "dateTime"),
    (">=", "2024-05-01T10:00:00", "dateTime"),
    ("=", "2024-05-01T07:00:00+02:00", "dateTime"),
    ("=", "2024-05-01", "date"),
    ("<", "2024-05", "gYearMonth"),
    (">", "-0043", "gYear"),
)
BOTH_WAYS: Final = HopPath((Hop((Step(iri("spouse")), Step(iri("spouse"), "in"))),))
QUESTIONS: Final[tuple[SetQuestion, ...]] = (
    Listed(Union((FILMS, PEOPLE))),
    Listed(Instances(iri("film"), subclasses=False)),
    Listed(Intersect((Reached(Members((iri("ann"),)), _path("-cast")), Reached(PEOPLE, _path("-cast"))))),
    Listed(Minus((PEOPLE, Reached(Members((iri("heat"),)), _path("cast"))))),
    Listed(Reached(Members((iri("bob"),)), BOTH_WAYS)),
    Listed(Reached(Members((iri("bob"), iri("nowhere"))), HopPath((ANY,)))),
    Listed(Reached(PEOPLE, HopPath((*_path("born").hops, *_path("in", repeated=True).hops)))),
    Listed(Values(FILMS, _path("length"))),
    Listed(Kept(PEOPLE, Has(_path("born")))),
    Listed(Kept(FILMS, Linked(_path("cast", "born"), Members((iri("rome"),))))),
    Listed(Kept(PEOPLE, Meets(_path("born"), _path("died")))),
    Listed(Kept(FILMS, Compares(_path("length"), ">=", typed("162.5", "decimal")))),
    Listed(Kept(FILMS, Compares(_path("released"), "<=", typed("1995", "gYear")))),
    Listed(Kept(FILMS, Compares(_path("released"), "<", typed("1995-12-15", "date")))),
    Listed(Kept(FILMS, Compares(_path("released"), ">", typed("1995-12-14T20:00:00", "dateTime")))),
    Listed(Kept(Union((FILMS, PEOPLE)), Compares(_path("note"), "~", typed("LONG", "string")))),
    Listed(Kept(FILMS, Outranks(LENGTH, ValueOf(_path("cast", "-cast", "length")), "<"))),
    Listed(Kept(FILMS, Outranks(RELEASED, ValueOf(_path("cast", "-cast", "released"), "date"), "!="))),
    Listed(Kept(FILMS, Numbers(_path("cast"), "<", 2))),
    Listed(Kept(PEOPLE, Numbers(_path("born"), "=", 0))),
    *(Listed(Kept(FILMS, Compares(SHOWING.path, sign, typed(given, kind)))) for sign, given, kind in SHOWN_WHEN),
    Listed(Kept(FILMS, Timed(SHOWING.path, ("other",)))),
    Listed(Best(FILMS, SHOWING, 2, lowest=True)),
    Aggregated(FILMS, SHOWING, "max"),
    Listed(Best(FILMS, LENGTH)),
    Listed(Best(Union((FILMS, PEOPLE)), RELEASED, 2, lowest=True)),
    Listed(Best(PEOPLE, NumberOf(_path("-cast")), 1)),
    Aggregated(FILMS, LENGTH, "sum"),
    Aggregated(Union((FILMS, PEOPLE)), LENGTH, "mean"),
    Aggregated(FILMS, ValueOf(HopPath((Hop((Step(iri("length")), Step(iri("minutes")))),))), "sum"),
    Aggregated(FILMS, RELEASED, "max"),
    Aggregated(FILMS, BUDGET, "sum"),
    Aggregated(FILMS, BUDGET, "min"),
    Aggregated(FILMS, ValueOf(BUDGET.path), "max"),
    Listed(Best(FILMS, BUDGET)),
    Listed(Kept(FILMS, Compares(BUDGET.path, "<", Literal("10", DOLLAR)))),
    Listed(Kept(FILMS, Compares(BUDGET.path, "!=", Literal("12.0", DOLLAR)))),
    Listed(Kept(FILMS, Compares(BUDGET.path, "=", Literal("LOW", DOLLAR)))),
    Aggregated(FILMS, NumberOf(_path("cast")), "min"),
    Aggregated(PEOPLE, LENGTH, "max"),
    Grouped(PEOPLE, _path("born")),
    Grouped(FILMS, _path("released")),
    Grouped(FILMS, _path("cast"), lowest=True),
    Tabled(FILMS, (Ends(_path("cast")), NumberOf(_path("cast")), Ends(_path("length")))),
    Grouped(FILMS, _path("cast"), total=TotalOf(LENGTH, "sum")),
    Grouped(FILMS, _path("cast"), total=TotalOf(LENGTH, "max"), lowest=True),
    Grouped(PEOPLE, _path("born"), total=TotalOf(ValueOf(_path("-cast", "length")), "mean")),
    Grouped(FILMS, _path("cast", "born"), total=TotalOf(RELEASED, "min")),
    Grouped(FILMS, _path("cast"), total=TotalOf(BUDGET, "count")),
    Grouped(PEOPLE, _path("born"), total=NumberOf(_path("-cast"))),
    Grouped(FILMS, _path("released"), part="year"),
    Grouped(FILMS, _path("released"), part="month", total=TotalOf(LENGTH, "sum")),
    Tabled(PEOPLE, tuple(TotalOf(ValueOf(_path("-cast", "length")), each) for each in ("sum", "mean", "min", "count"))),
    Listed(Best(PEOPLE, TotalOf(ValueOf(_path("-cast", "length")), "sum"), 1)),
    Listed(Best(PEOPLE, TotalOf(ValueOf(_path("-cast", "released"), "date"), "min"), 2, lowest=True)),
    Tabled(FILMS, (NumberOf(HopPath((ANY,))),)),
    Listed(Best(PEOPLE, NumberOf(HopPath((ANY,))))),
    SharedBy((Members((iri("heat"),)), Members((iri("ran"), iri("m"))))),
    SharedBy((Members((iri("rome"),)), Members((iri("cid"),))), ((iri("born"), iri("in")),)),
    SharedBy((Members((iri("ann"),)), Members((iri("bob"),))), ((iri("cast"), iri("spouse")),)),
)


THINGS: Final = Instances(iri("thing"))
FACTOR: Final = ValueOf(_path("factor"))
BEGAN: Final = ValueOf(_path("began"), "date")
LONG_NUMBERS: Final = {
    "a": typed(f"-{10**40}", "integer"),
    "b": typed("0.5", "decimal"),
    "c": typed("0.500000000000000001234567890123456789", "decimal"),
    "d": typed("4186.799999999999665056000000000028", "decimal"),
    "e": typed(str(2**64 - 1), "unsignedLong"),
    "f": typed(f"{463 * 10**111}.25", "decimal"),
}
"""Numbers in their order, as QUDT has them."""
EARLY_YEARS: Final = {
    "old": typed("-44", "gYear"),
    "plague": typed("541-05-12", "date"),
    "otto": typed("973", "gYear"),
    "normans": typed("1066-10-14", "date"),
    "later": typed("1977-05", "gYearMonth"),
    "far": typed("12000", "gYear"),
}
"""Dates in their order, with fewer digits than XML Schema asks for."""


class SetsContract(GraphOpening):
    """Sets: what is in them, how many, in which order, and why."""

    async def test_questions_about_sets_have_the_answers_of_an_index(self) -> None:
        async with self.opened(map(_statement, FACTS)) as graph:
            if not isinstance(graph, SupportsSets):
                pytest.skip("this adapter does not work out sets")
            for question in QUESTIONS:
                request = SetRequest(question, limit=3, cell_limit=1)
                found = await graph.compute(request)
                wanted = sets_of(FACTS, Vocabulary()).compute(replace(request, witnesses=0))
                assert _bare(found, wanted.value) == wanted, question
                assert {fact for witness in found.witnesses for fact in witness.facts} <= set(FACTS), question

    async def test_numbers_of_any_length_and_early_years_compare_and_what_is_neither_is_counted(self) -> None:
        named = ((FACTOR, LONG_NUMBERS, typed("1000.5", "decimal")), (BEGAN, EARLY_YEARS, typed("1000", "gYear")))
        facts: list[Fact] = [edge(f"{name} type thing") for name in (*LONG_NUMBERS, *EARLY_YEARS, "odd", "bare")]
        facts += [Attribute(iri(name), iri("factor"), value) for name, value in LONG_NUMBERS.items()]
        facts += [Attribute(iri(name), iri("began"), value) for name, value in EARLY_YEARS.items()]
        facts += [_value("odd", "factor", "n/a", "decimal"), _value("odd", "began", "soon", "gYear")]
        async with self.opened(map(_statement, facts)) as graph:
            if not isinstance(graph, SupportsSets):
                pytest.skip("this adapter does not work out sets")
            for by, values, middle in named:
                names = [iri(name) for name in values]
                best = await graph.compute(SetRequest(Listed(Best(THINGS, by, len(names), lowest=True)), witnesses=0))
                assert (best.members, best.unfit.value) == (tuple(names), 1)
                assert best.without.value == len(LONG_NUMBERS) + len(EARLY_YEARS) + 2 - len(names)
                ends = [await graph.compute(SetRequest(Aggregated(THINGS, by, end))) for end in ("min", "max")]
                assert [end.value for end in ends] == [values[names[0].local_part], values[names[-1].local_part]]
                assert {(end.count.value, end.unfit.value) for end in ends} == {(len(names), 1)}
                less = await graph.compute(SetRequest(Listed(Kept(THINGS, Compares(by.path, "<", middle)))))
                assert less.members == tuple(sorted(names[: len(names) // 2]))
            total = await graph.compute(SetRequest(Aggregated(THINGS, FACTOR, "sum"), witnesses=0))
        assert isinstance(total.value, float)
        assert isclose(total.value, sum(Decimal(each.value) for each in LONG_NUMBERS.values()))

    async def test_the_least_and_the_greatest_number_are_right_to_the_last_digit(self) -> None:
        # As doubles the first two are one number, and so are the last two.
        numbers = [typed(str(2**53 + more), "integer") for more in (0, 1, 3, 4)]
        nodes = [iri(f"n{place}") for place in range(len(numbers))]
        facts = [Attribute(node, iri("factor"), number) for node, number in zip(nodes, numbers, strict=True)]
        async with self.opened(map(_statement, facts)) as graph:
            if not isinstance(graph, SupportsSets):
                pytest.skip("this adapter does not work out sets")
            most = await graph.compute(SetRequest(Aggregated(Members(tuple(nodes[:2])), FACTOR, "max"), witnesses=0))
            least = await graph.compute(SetRequest(Aggregated(Members(tuple(nodes[2:])), FACTOR, "min"), witnesses=0))
        assert (str(most.value), str(least.value)) == (numbers[1].value, numbers[2].value)

    async def test_no_more_is_listed_than_is_wanted_and_the_first_results_are_shown(self) -> None:
        async with self.opened(map(_statement, FACTS)) as graph:
            if not isinstance(graph, SupportsSets):
                pytest.skip("this adapter does not work out sets")
            found = await graph.compute(SetRequest(Listed(PEOPLE), limit=0, witnesses=2))
        assert (found.count.value, found.members) == (3, ())
        assert [witness.result for witness in found.witnesses] == [iri("ann"), iri("bob")]


def _statement(fact: Fact) -> str:
    tail = f'"{fact.tail}"^^<{fact.tail.datatype}>' if isinstance(fact, Attribute) else f"<{fact.tail}>"
    return f"<{fact.head}> <{fact.relation}> {tail}"


def _bare(found: Computed, value: float | Literal | None) -> Computed:
    """Return an answer without what shows it, its value as wanted where rounding alone differs."""
    is_near = isinstance(found.value, float) and isinstance(value, float) and isclose(found.value, value)
    return replace(found, witnesses=(), value=value if is_near else found.value)


A_TO_Z = PathRequest(iri("a"), iri("z"))
DIRECT = (
    Path((iri("a"), iri("z")), edges("a near z"), 0),
    Path((iri("a"), iri("z")), edges("z near a"), 0),
)
OVER_TOWN = Path((iri("a"), iri("Town"), iri("z")), edges("a type Town", "z type Town"), 2)
OVER_M = Path((iri("a"), iri("m"), iri("z")), edges("a near m", "m near z"), 3)
OVER_N = Path((iri("a"), iri("n"), iri("z")), edges("a near n", "n near z"), 4)
OVER_BOTH = (
    Path((iri("a"), iri("m"), iri("n"), iri("z")), edges("a near m", "m partOf n", "n near z"), 7),
    Path((iri("a"), iri("n"), iri("m"), iri("z")), edges("a near n", "m partOf n", "m near z"), 7),
)
OVER_B = Path((iri("a"), iri("b"), iri("z")), edges("a near b", "b near z"), 2)
OVER_HUB = Path((iri("a"), iri("hub"), iri("z")), edges("a near hub", "hub near z"), 52)


def all_of(*paths: Path) -> PathsFound:
    """Return the answer of a search that found everything."""
    return PathsFound(paths, Count(len(paths)), None, ())


class PathContract(GraphOpening):
    """Paths: which there are, in which order, and what was left out."""

    @asynccontextmanager
    async def searchable(self, statements: Iterable[str]) -> AsyncGenerator[SupportsPaths]:
        """Open a graph and skip the test where it does not search paths."""
        async with self.opened(statements) as graph:
            if not isinstance(graph, SupportsPaths):
                pytest.skip("this adapter has no path search of its own")
            yield graph

    @pytest.mark.parametrize(
        ("max_hops", "found"),
        [(1, DIRECT), (2, (*DIRECT, OVER_M, OVER_N)), (4, (*DIRECT, OVER_M, OVER_N, *OVER_BOTH))],
    )
    async def test_paths_are_sorted_by_hops_then_by_quiet_inner_nodes_then_by_ids(
        self, max_hops: int, found: Sequence[Path]
    ) -> None:
        async with self.searchable(ROADS) as graph:
            assert await graph.paths(replace(A_TO_Z, max_hops=max_hops)) == all_of(*found)

    async def test_a_limit_keeps_the_best_and_the_total_counts_all(self) -> None:
        async with self.searchable(ROADS) as graph:
            found = await graph.paths(replace(A_TO_Z, limit=3))
        assert found == PathsFound((*DIRECT, OVER_M), Count(6), None, ())

    async def test_of_paths_that_say_the_same_over_inverses_the_first_is_kept(self) -> None:
        async with self.searchable(ROADS) as graph:
            found = await graph.paths(replace(A_TO_Z, max_hops=1, inverses=((iri("near"), iri("near")),)))
        assert found == PathsFound(DIRECT[:1], Count(2), None, (), twins=1)

    async def test_type_relations_are_walked_only_on_demand(self) -> None:
        async with self.searchable(ROADS) as graph:
            found = await graph.paths(replace(A_TO_Z, max_hops=2, avoid_hubs=False))
        assert found == all_of(*DIRECT, OVER_TOWN, OVER_M, OVER_N)

    async def test_a_direct_edge_counts_even_over_a_type_relation(self) -> None:
        async with self.searchable(ROADS) as graph:
            found = await graph.paths(PathRequest(iri("Town"), iri("a"), max_hops=1))
        assert found == all_of(Path((iri("Town"), iri("a")), edges("a type Town"), 0))

    async def test_a_hub_is_not_passed_through_and_is_named(self) -> None:
        async with self.searchable(CROWD) as graph:
            avoided = await graph.paths(replace(A_TO_Z, max_hops=2, hub_degree=51))
            allowed = await graph.paths(replace(A_TO_Z, max_hops=2, hub_degree=52))
            walked = await graph.paths(replace(A_TO_Z, max_hops=2, hub_degree=51, avoid_hubs=False))
        assert avoided == PathsFound((OVER_B,), Count(1), None, (iri("hub"),))
        assert not avoided.exhaustive
        assert allowed == walked == all_of(OVER_B, OVER_HUB)

    async def test_a_hub_may_be_where_a_path_starts_or_ends(self) -> None:
        expected = (
            Path((iri("hub"), iri("a"), iri("b")), edges("a near hub", "a near b"), 2),
            Path((iri("hub"), iri("z"), iri("b")), edges("hub near z", "b near z"), 2),
        )
        async with self.searchable(CROWD) as graph:
            found = await graph.paths(PathRequest(iri("hub"), iri("b"), max_hops=2, hub_degree=10))
        assert found == all_of(*expected)

    async def test_edges_between_the_same_nodes_make_a_path_each(self) -> None:
        nodes = (iri("a"), iri("b"))
        expected = [Path(nodes, edges(text), 0) for text in ("a knows b", "a likes b", "b knows a")]
        async with self.searchable(LOOPS) as graph:
            assert await graph.paths(PathRequest(*nodes)) == all_of(*expected)

    async def test_what_is_not_connected_or_not_known_has_no_path(self) -> None:
        async with self.searchable([*ROADS, "far near away"]) as graph:
            assert await graph.paths(PathRequest(iri("a"), iri("away"))) == all_of()
            assert await graph.paths(PathRequest(iri("a"), iri("atlantis"))) == all_of()
            assert await graph.paths(PathRequest(iri("atlantis"), iri("a"))) == all_of()

    async def test_a_request_that_cannot_be_met_is_refused(self) -> None:
        impossible = (
            replace(A_TO_Z, max_hops=0),
            replace(A_TO_Z, max_hops=5),
            replace(A_TO_Z, limit=0),
            replace(A_TO_Z, target=iri("a")),
        )
        async with self.searchable(ROADS) as graph:
            for request in impossible:
                with pytest.raises(InvalidRequest):
                    await graph.paths(request)


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
            none = await graph.select(PREFIX + "SELECT ?x { ?x ex:eats ?y }", timeout_s=HANG_S, max_rows=2)
        names = ("kyoto", "osaka", "paris", "tokyo")
        assert plain(cut) == SparqlAnswer("SELECT", ("town",), tuple((iri(n),) for n in names[:2]), truncated=True)
        assert plain(full) == SparqlAnswer("SELECT", ("town",), tuple((iri(n),) for n in names), truncated=False)
        assert plain(none) == SparqlAnswer("SELECT", ("x",), (), truncated=False)

    async def test_what_does_more_than_read_the_graph_or_is_not_sparql_is_refused_and_changes_nothing(self) -> None:
        count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
        async with self.queryable(TOWNS) as graph:
            for query in (*(PREFIX + update for update in WRITES), *OUTSIDE, *UNREADABLE):
                with pytest.raises(InvalidRequest):
                    await graph.select(query, timeout_s=HANG_S, max_rows=2)
            answer = await graph.select(count, timeout_s=HANG_S, max_rows=2)
        assert answer.rows == ((typed(str(len(TOWNS)), "integer"),),)

    async def test_a_query_without_end_is_stopped_and_holds_up_no_other_call(self) -> None:
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
                answer = await graph.select("ASK { ?s ?p ?o }", timeout_s=HANG_S, max_rows=2)
        assert (order, answer.truth) == (["answered", "stopped"], True)
