from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from calls import call, refusal, rows
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import SparqlAnswer
from kg_adapters.terms import Iri, Node
from kg_server.answers.results import token_count
from kg_server.settings import Settings
from small_graphs import store_of

WIDE = "@prefix e: <http://e.org/> . " + " ".join(f'e:a e:p{number} "{"x" * 900}" .' for number in range(60))


async def test_ask_says_yes_or_why_not(tokyo: LocalAdapter) -> None:
    yes = await call(tokyo, "Sparql", query="ASK { wd:Q17 wdt:P36 wd:Q1490 }")
    no = await call(tokyo, "Sparql", query="ASK { wd:Q17 wdt:P36 wd:Q424242 }")
    bare = await call(tokyo, "Sparql", query="ASK { ?x ?p ?x }")
    assert yes.data == {
        "status": "ok",
        "knowledge": "stated",
        "summary": "Yes.",
        "variables": [],
        "rows": [],
        "labels": {},
        "truth": True,
    }
    assert (no.text, no.data["truth"]) == ("No. This graph does not mention Q424242.", False)
    assert bare.text == "No. Nothing matches ?x ?p ?x."


async def test_an_unbound_variable_is_an_empty_cell(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "Sparql", query="SELECT ?x ?y { BIND(wd:Q17 AS ?x) OPTIONAL { ?x wdt:P131 ?y } }")
    assert reply.lines == ["?x | ?y", "Japan (Q17) | "]
    assert reply.data["rows"] == [["Q17", ""]]


async def test_construct_gives_triples(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "Sparql", query="CONSTRUCT { ?b wdt:P36 ?a } WHERE { ?a wdt:P36 ?b } LIMIT 1")
    assert reply.lines[0] == "?subject | ?predicate | ?object"


async def test_rows_that_do_not_fit_are_counted_and_said_to_be_missing(sample: LocalAdapter) -> None:
    few = await call(sample, "Sparql", query="SELECT * { ?s wdt:P36 ?o }", max_rows=3)
    many = await call(sample, "Sparql", query="SELECT * { ?s wdt:P36 ?o }", max_rows=1_000)
    assert few.data["status"] == many.data["status"] == "truncated"
    assert few.summary.startswith("at least 3 rows; 3 here.")
    assert many.summary.startswith("419 rows; ")
    assert token_count(many.text) <= 2_000


class Endless(LocalAdapter):
    """Has as many rows as are asked for, and counts whose labels are wanted."""

    labelled = 0

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        del query, timeout_s
        found = tuple((Iri(f"http://e.org/{number}"),) for number in range(max_rows))
        return SparqlAnswer("SELECT", ("x",), found, truncated=True, truth=None, named=())

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        self.labelled += len(terms)
        return await super().labels(terms)


async def test_rows_that_cannot_fit_are_neither_named_nor_written(tmp_path: Path) -> None:
    graph = Endless(store_of(tmp_path, "<http://a> <http://b> <http://c> ."))
    settings = Settings(max_tokens=500, sparql_max_rows=100_000)
    reply = await call(graph, "Sparql", settings, query="SELECT ?x { ?x ?y ?z }", max_rows=100_000)
    assert reply.summary.startswith("at least 100000 rows; ")
    assert len(rows(reply.data["rows"])) > 40
    assert graph.labelled <= 500


async def test_many_columns_share_the_budget(graph_of: Callable[[str], LocalAdapter]) -> None:
    graph = graph_of(WIDE)
    query = "SELECT * { " + " ".join(f"e:a e:p{number} ?v{number} ." for number in range(60)) + " }"
    reply = await call(graph, "Sparql", query=query)
    (row,) = rows(reply.data["rows"])
    assert token_count(reply.text) <= 2_000
    assert len(row) == 60
    assert {len(cell) for cell in row} == {33}


async def test_more_columns_than_an_answer_can_hold_are_refused(tokyo: LocalAdapter) -> None:
    query = f"SELECT {' '.join(f'?v{number}' for number in range(101))} {{ ?v1 wdt:P36 ?v2 }}"
    assert await refusal(tokyo, "Sparql", query=query) == (
        "The query asks for 101 variables, and at most 100 fit into an answer. Name those that you need after SELECT."
    )


async def test_only_the_first_unknown_terms_are_named(tokyo: LocalAdapter) -> None:
    query = "SELECT * { " + " ".join(f"wd:Q42{number} wdt:P36 ?x ." for number in range(10, 20)) + " }"
    assert (await call(tokyo, "Sparql", query=query)).summary == (
        "No rows. This graph does not mention Q4210, Q4211, Q4212, Q4213, Q4214 and 5 others."
    )
