"""What Sparql answers: plain values, its own columns, labels in Wikidata's manner, and why there is nothing."""

import re
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from pathlib import Path

import pytest
import rdflib

from calls import call, refusal, rows, unhurried
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import SparqlAnswer
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.terms import Iri, Node
from kg_server.answers.results import token_count
from kg_server.settings import SparqlSettings
from small_graphs import store_of

FILMS = """
@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
e:by rdfs:label "directed by"@en . e:made rdfs:label "director of"@en ; owl:inverseOf e:by .
e:year rdfs:label "year"@en . e:Film rdfs:label "film"@en . e:award rdfs:label "award"@en .
e:f1 a e:Film ; rdfs:label "Amber Engine"@en ; e:by e:ann ; e:year 1977 ; e:cost 12500000 .
e:f1 e:on "1977-03-01"^^xsd:date .
e:f2 a e:Film ; rdfs:label "Bright Tower"@en , "Heller Turm"@de ; e:by e:bob ; e:year 1980 ; e:title "Bright Tower" .
e:ann rdfs:label "Ann Hornby"@en ; e:award e:oscar . e:bob rdfs:label "Bob Lee"@en ; e:made e:f3 .
e:f3 a e:Film ; rdfs:label "Salt Storm"@en . e:oscar rdfs:label "Oscar"@en .
e:f4 a e:Film ; rdfs:label "Bare Words" , "Bare Words"@fr ; e:by e:ann .
"""

SERVICE = 'SERVICE wikibase:label { bd:serviceParam wikibase:language "[AUTO_LANGUAGE],en" . }'


@pytest.fixture
def films(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    return graph_of(FILMS)


async def test_values_print_plainly_and_relations_by_their_own_ids(films: LocalAdapter, tokyo: LocalAdapter) -> None:
    reply = await call(
        films,
        "Sparql",
        query="SELECT ?c ?d ?t ?l { e:f1 e:cost ?c ; e:on ?d . e:f2 e:title ?t ; rdfs:label ?l } ORDER BY ?l",
    )
    assert reply.plain.lines[1:] == [
        '12500000 | 1977-03-01 | "Bright Tower" | "Bright Tower"',
        '12500000 | 1977-03-01 | "Bright Tower" | "Heller Turm"@de',
    ]
    relations = await call(tokyo, "Sparql", query="SELECT DISTINCT ?p { wd:Q1490 ?p wd:Q515 }")
    assert relations.plain.lines[1:] == ["instance of"]
    assert (relations.data["rows"], relations.data["labels"]) == ([["P31"]], {"P31": "instance of"})


FACTORS = {
    "half": "0.5",
    "calorie": "4186.799999999999665056000000000028",
    "two70": str(2**70),
    "most": f"{463 * 10**111}.25",
}
"""Numbers in their order: as QUDT has them, and beyond 64 bits."""
UNITS = "\n".join(
    (
        "@prefix e: <http://e.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .",
        *(f"e:{name} e:factor {number} ." for name, number in FACTORS.items()),
        'e:old e:began "-44"^^xsd:gYear . e:otto e:began "973"^^xsd:gYear . e:new e:began "1977"^^xsd:gYear .',
    )
)


@pytest.mark.parametrize("local", [True, False])
async def test_numbers_of_too_many_digits_are_computed_on_as_doubles_and_the_answer_says_so_once(
    graph_of: Callable[[str], LocalAdapter], *, local: bool
) -> None:
    graph = graph_of(UNITS) if local else RdflibAdapter(rdflib.Graph().parse(data=UNITS))
    told = (
        "Some values of e:factor have too many digits for SPARQL and are doubles here; Feature shows them as written."
    )

    async def found(query: str) -> tuple[list[list[str]], int]:
        reply = await call(graph, "Sparql", query=f"PREFIX e: <http://e.org/> {query}")
        return rows(reply.data["rows"]), reply.summary.count(told)

    numbers = list(map(Decimal, FACTORS.values()))
    ((least, most, total),), notes = await found(
        "SELECT (MIN(?f) AS ?a) (MAX(?f) AS ?b) (SUM(?f) AS ?c) { ?u e:factor ?f }"
    )
    assert [float(each) for each in (least, most, total)] == [min(numbers), float(max(numbers)), float(sum(numbers))]
    assert notes == 1
    assert await found("SELECT ?u { ?u e:factor ?f } ORDER BY ?f") == ([[f"e:{name}"] for name in FACTORS], 1)
    assert await found(f"SELECT ?u {{ ?u e:factor {FACTORS['calorie']} }}") == ([["e:calorie"]], 1)
    assert await found(f"SELECT ?u {{ ?u e:factor ?f FILTER(?f > {2**69}) }} ORDER BY ?f") == (
        [["e:two70"], ["e:most"]],
        1,
    )
    assert (await found("SELECT ?any { e:calorie ?any ?f FILTER(?f > 4186) } ORDER BY ?f"))[1] == 0
    assert (await found("SELECT ?any ?f { e:calorie ?any ?f }"))[1] == 1
    years = ([["-0044"], ["0973"], ["1977"]], 0)
    assert await found("SELECT ?y { ?u e:began ?y } ORDER BY ?y") == years
    assert await found('SELECT ?u { ?u e:began "973"^^xsd:gYear }') == ([["e:otto"]], 0)
    await graph.aclose()


LABELLED = {
    f"SELECT ?f ?fLabel ?y {{ ?f e:year ?y {SERVICE} }} ORDER BY ?y": (
        "The label service is not needed: ids come with their labels. ?fLabel is shown beside the id in ?f. "
        "2 rows, all here.",
        ["?f | ?y", "Amber Engine | 1977", "Bright Tower | 1980"],
    ),
    "SELECT ?dLabel (COUNT(?f) AS ?n) { ?f e:by ?d } GROUP BY ?d ?dLabel ORDER BY ?d": (
        "?dLabel is shown beside the id in ?d. 2 rows, all here.",
        ["?d | ?n", "Ann Hornby | 2", "Bob Lee | 1"],
    ),
    'SELECT ?fLabel { ?f e:year ?y FILTER(CONTAINS(?fLabel, "Tower")) }': (
        "1 row, all here.",
        ["?fLabel", '"Bright Tower"'],
    ),
    "SELECT ?n { e:f1 e:by ?d SERVICE <http://wikiba.se/ontology#label> { ?d rdfs:label ?n } }": (
        "The label service is not needed: ids come with their labels. 1 row, all here.",
        ["?n", '"Ann Hornby"'],
    ),
    'SELECT ?f { ?f e:by e:ann FILTER(CONTAINS(?fLabel, "Bare")) }': (
        "1 row, all here.",
        ["?f", "Bare Words"],
    ),
    'SELECT ?d ?n { ?d rdfs:label ?n { SELECT ?d { ?f e:by ?d FILTER(STRSTARTS(?fLabel, "B")) } } } ORDER BY ?n': (
        "2 rows, all here.",
        ["?d | ?n", 'Ann Hornby | "Ann Hornby"', 'Bob Lee | "Bob Lee"'],
    ),
    'SELECT ?d { ?f e:by ?d { SELECT ?f ?fLabel { ?f a e:Film } ORDER BY ?fLabel LIMIT 1 } FILTER(?fLabel != "x") }': (
        "1 row, all here.",
        ["?d", "Ann Hornby"],
    ),
    'SELECT ?f { { ?f e:year 1977 FILTER(CONTAINS(?fLabel, "Amber")) } UNION { ?f e:year 1980 } } ORDER BY ?fLabel': (
        "2 rows, all here.",
        ["?f", "Amber Engine", "Bright Tower"],
    ),
    "SELECT ?fLabel { e:f2 rdfs:label ?fLabel } ORDER BY ?fLabel": (
        "2 rows, all here.",
        ["?fLabel", '"Bright Tower"', '"Heller Turm"@de'],
    ),
}


MADE = "The inverse of directed by, director of, holds 1 more link in all: (e:by|^e:made) walks both."


async def test_labels_in_the_manner_of_wikidata_are_understood(films: LocalAdapter) -> None:
    for query, (summary, lines) in LABELLED.items():
        reply = await call(films, "Sparql", query=query)
        told = reply.plain.summary.removesuffix(f" {MADE}")
        assert (told, reply.plain.lines) == (summary, lines), query


NOT_COMPUTED = "It can be computed of none: a variable has no value there, or values of two kinds are compared."

NOTHING = {
    "SELECT ?x { e:ann e:award ?y . ?y e:year ?x }": (
        "unknown",
        "The part before it has matches, and so has ?y e:year ?x by itself, but not together.",
    ),
    'SELECT ?x { @"Oscar" @"award" ?x }': (
        "unknown",
        'Nothing matches @"Oscar" @"award" ?x. The other way round it has matches: ?x @"award" @"Oscar".',
    ),
    'SELECT ?x { ?x a @"film" . ?x @"directed by" e:bob . ?x e:title "Dark Tower" }': (
        "unknown",
        'The part before it has matches; ?x e:title "Dark Tower" leaves none.',
    ),
    "SELECT ?x { e:f3 e:by ?x }": (
        "unknown",
        "Nothing matches e:f3 e:by ?x. Over the inverse, director of, it has matches: ?x e:made e:f3.",
    ),
    "ASK { e:f1 e:by e:bob }": (
        "denied",
        "Nothing matches e:f1 e:by e:bob. Amber Engine has others over directed by.",
    ),
    "SELECT ?f { ?f e:year ?y FILTER(?y > 1990) }": (
        "denied",
        "The part before it has matches; FILTER(?y > 1990) leaves none.",
    ),
    'SELECT ?f { ?f rdfs:label "Amber Engine" }': (
        "unknown",
        "Nothing matches ?f rdfs:label \"Amber Engine\". 'Amber Engine' is the name of Amber Engine. "
        'Write its label "Amber Engine"@en, or @"…" in place of an id.',
    ),
    'SELECT ?f { ?f rdfs:label "Bare Words"@en }': (
        "unknown",
        '\'Bare Words\' is the name of Bare Words. Write its label "Bare Words", or @"…" in place of an id.',
    ),
    'SELECT ?f { ?f rdfs:label ?l ; e:year ?y FILTER(CONTAINS(?l, "Amber Enigne")) }': (
        "unnamed",
        'The part before it has matches; FILTER(CONTAINS(?l, "Amber Enigne")) leaves none. '
        "Nothing is named 'Amber Enigne', but Amber Engine is.",
    ),
    'SELECT ?f { ?f rdfs:label "Bright Storm"@en }': (
        "unnamed",
        "Nothing matches ?f rdfs:label \"Bright Storm\"@en. Nothing is named 'Bright Storm'. Near, not the same: "
        "Bright Tower; Salt Storm.",
    ),
    "SELECT ?f { ?f e:year ?y } OFFSET 9": (
        "denied",
        "Its patterns have matches; HAVING, OFFSET or LIMIT leaves none of them.",
    ),
    "SELECT ?f { ?f e:year ?y } LIMIT 0": ("unknown", "Its patterns have matches, but LIMIT 0 asks for no rows."),
    "SELECT ?f { ?f e:year ?y } ORDER BY ?f VALUES ?y { 1999 2000 }": (
        "unknown",
        "The part before it has matches; VALUES ?y { 1999 2000 } leaves none.",
    ),
    "SELECT ?f { ?f e:year ?y FILTER EXISTS { ?f e:award ?l } }": (
        "unknown",
        "The part before it has matches; FILTER EXISTS { ?f e:award ?l } leaves none.",
    ),
    "SELECT ?f { ?f e:year ?y FILTER NOT EXISTS { ?f a e:Film } }": (
        "denied",
        "The part before it has matches; FILTER NOT EXISTS { ?f a e:Film } leaves none.",
    ),
    "SELECT ?f { ?f e:on ?d OPTIONAL { ?f e:award ?l } FILTER(?l > 1 && ?d > '1900-01-01'^^xsd:date) }": (
        "unknown",
        f"FILTER(?l > 1 && ?d > '1900-01-01'^^xsd:date) leaves none. {NOT_COMPUTED}",
    ),
    "SELECT (COUNT(?f) AS ?n) { ?f e:by e:oscar }": ("unknown", "Nothing matches ?f e:by e:oscar."),
    "SELECT ?x { { ?x e:by e:oscar } UNION { e:oscar e:by ?x } OPTIONAL { ?x e:year ?y } }": (
        "unknown",
        "Nothing matches { ?x e:by e:oscar } UNION { e:oscar e:by ?x }.",
    ),
}


async def test_an_empty_answer_names_the_first_part_without_a_match_and_says_what_it_means(films: LocalAdapter) -> None:
    for query, (knowledge, reason) in NOTHING.items():
        reply = await call(films, "Sparql", query=query, timeout_s=60)
        assert reply.plain.summary.endswith(reason), (query, reply.plain.summary)
        assert reply.data["knowledge"] == knowledge, query


class Counted(LocalAdapter):
    """Counts the queries that it runs."""

    asked = 0

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        self.asked += 1
        return await super().select(query, timeout_s=timeout_s, max_rows=max_rows)


async def test_the_search_for_a_part_without_a_match_is_by_halves(films: LocalAdapter) -> None:
    counted = Counted(films.store)
    parts = " ".join(f"?x e:year ?y{number} ." for number in range(30))
    query = f"SELECT * {{ {parts} ?x e:by e:oscar . ?x e:title ?t }}"
    reply = await call(counted, "Sparql", query=query, timeout_s=60)
    assert "?x e:by e:oscar leaves none." in reply.summary
    assert counted.asked <= 1 + 10


WIDE = "@prefix e: <http://e.org/> . " + " ".join(f'e:a e:p{number} "{"x" * 900}" .' for number in range(60))


async def test_ask_says_yes_or_why_not(tokyo: LocalAdapter) -> None:
    yes = await call(tokyo, "Sparql", query="ASK { wd:Q17 wdt:P36 wd:Q1490 }")
    no = await call(tokyo, "Sparql", query="ASK { wd:Q17 wdt:P36 wd:Q424242 }")
    bare = await call(tokyo, "Sparql", query="ASK { ?x ?p ?x }")
    assert (yes.text, yes.data["status"], yes.data["knowledge"], yes.data["truth"]) == ("Yes.", "ok", "stated", True)
    assert (no.text, no.data["truth"]) == ("No. This graph does not mention Q424242.", False)
    assert bare.text == "No. Nothing matches ?x ?p ?x."


async def test_rows_of_each_form_are_shown_and_what_the_graph_does_not_mention_is_named(tokyo: LocalAdapter) -> None:
    unbound = await call(tokyo, "Sparql", query="SELECT ?x ?y { BIND(wd:Q17 AS ?x) OPTIONAL { ?x wdt:P131 ?y } }")
    assert (unbound.plain.lines, unbound.data["rows"]) == (["?x | ?y", "Japan | "], [["Q17", ""]])
    made = await call(tokyo, "Sparql", query="CONSTRUCT { ?b wdt:P36 ?a } WHERE { ?a wdt:P36 ?b } LIMIT 1")
    assert made.lines[0] == "?subject | ?predicate | ?object"
    wide = f"SELECT {' '.join(f'?v{number}' for number in range(101))} {{ ?v1 wdt:P36 ?v2 }}"
    assert (await refusal(tokyo, "Sparql", query=wide)).startswith("The query asks for 101 variables, and at most 100")
    query = "SELECT * { " + " ".join(f"wd:Q42{number} wdt:P36 ?x ." for number in range(10, 20)) + " }"
    assert (await call(tokyo, "Sparql", query=query)).summary == (
        "No rows. This graph does not mention Q4210, Q4211, Q4212, Q4213, Q4214 and 5 others."
    )


async def test_rows_that_do_not_fit_are_counted_and_said_to_be_missing(sample: LocalAdapter) -> None:
    few = await call(sample, "Sparql", query="SELECT * { ?s wdt:P36 ?o }", max_rows=3)
    many = await call(sample, "Sparql", query="SELECT * { ?s wdt:P36 ?o }", max_rows=1_000)
    assert few.data["status"] == many.data["status"] == "truncated"
    paged = "Narrow the query, or page with ORDER BY, LIMIT and OFFSET."
    assert few.summary.startswith(f"at least 3 rows; 3 here, since no more were fetched (max_rows=3). {paged}")
    assert re.match(rf"419 rows; \d+ here, since no more fit into max_tokens=2000\. {re.escape(paged)}", many.summary)
    assert token_count(many.text) <= 2_000
    alike = await call(sample, "Sparql", query="SELECT * { VALUES ?x { 1 } ?s wdt:P36 ?o }", max_rows=5)
    assert "In every row that was fetched ?x is 1." in alike.summary


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
    settings = unhurried(max_tokens=500, sparql=SparqlSettings(max_rows=100_000))
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


@pytest.mark.parametrize(
    ("columns", "grouped"),
    [("(SUM(?c) AS ?all) (COUNT(*) AS ?n)", ""), ("(AVG(?c) AS ?all)", ""), ("(AVG(?c) AS ?all) ?f", "GROUP BY ?f")],
)
async def test_a_sum_or_mean_without_a_value_says_why(
    graph_of: Callable[[str], LocalAdapter], columns: str, grouped: str
) -> None:
    graph = graph_of(FILMS + 'e:f2 e:cost "n/a"^^xsd:decimal .')
    blank, added = [
        await call(graph, "Sparql", query=f"SELECT {columns} {{ ?f e:cost ?c {condition} }} {grouped}")
        for condition in ("", "FILTER(isNumeric(?c))")
    ]
    assert "Blank in ?all: not all values are numbers. FILTER(isNumeric(?value))" in blank.summary
    assert ("Blank" in added.summary, rows(added.data["rows"])[0][0]) == (False, "12500000")
