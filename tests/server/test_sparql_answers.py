"""What Sparql answers: plain values, its own columns, labels in Wikidata's manner, and why there is nothing."""

from collections.abc import Callable

import pytest

from calls import call
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import SparqlAnswer

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
    assert reply.lines[1:] == [
        '12500000 | 1977-03-01 | "Bright Tower" | "Bright Tower"',
        '12500000 | 1977-03-01 | "Bright Tower" | "Heller Turm"@de',
    ]
    relations = await call(tokyo, "Sparql", query="SELECT DISTINCT ?p { wd:Q1490 ?p wd:Q515 }")
    assert relations.lines[1:] == ["instance of (P31)"]
    assert (relations.data["rows"], relations.data["labels"]) == ([["P31"]], {"P31": "instance of"})


LABELLED = {
    f"SELECT ?f ?fLabel ?y {{ ?f e:year ?y {SERVICE} }} ORDER BY ?y": (
        "The label service is not needed: ids come with their labels. ?fLabel is shown beside the id in ?f. "
        "2 rows, all here.",
        ["?f | ?y", "Amber Engine (e:f1) | 1977", "Bright Tower (e:f2) | 1980"],
    ),
    "SELECT ?dLabel (COUNT(?f) AS ?n) { ?f e:by ?d } GROUP BY ?d ?dLabel ORDER BY ?d": (
        "?dLabel is shown beside the id in ?d. 2 rows, all here.",
        ["?d | ?n", "Ann Hornby (e:ann) | 2", "Bob Lee (e:bob) | 1"],
    ),
    'SELECT ?fLabel { ?f e:year ?y FILTER(CONTAINS(?fLabel, "Tower")) }': (
        "1 row, all here.",
        ["?fLabel", '"Bright Tower"'],
    ),
    "SELECT ?f ?fLabel { ?f e:year ?y } ORDER BY DESC(?fLabel) LIMIT 1": (
        "1 row, all here.",
        ["?f | ?fLabel", 'Bright Tower (e:f2) | "Bright Tower"'],
    ),
    "SELECT ?n { e:f1 e:by ?d SERVICE <http://wikiba.se/ontology#label> { ?d rdfs:label ?n } }": (
        "The label service is not needed: ids come with their labels. 1 row, all here.",
        ["?n", '"Ann Hornby"'],
    ),
    'SELECT ?f { ?f e:by e:ann FILTER(CONTAINS(?fLabel, "Bare")) }': (
        "1 row, all here.",
        ["?f", "Bare Words (e:f4)"],
    ),
    'SELECT ?d ?n { ?d rdfs:label ?n { SELECT ?d { ?f e:by ?d FILTER(STRSTARTS(?fLabel, "B")) } } } ORDER BY ?n': (
        "2 rows, all here.",
        ["?d | ?n", 'Ann Hornby (e:ann) | "Ann Hornby"', 'Bob Lee (e:bob) | "Bob Lee"'],
    ),
    'SELECT ?d { ?f e:by ?d { SELECT ?f ?fLabel { ?f a e:Film } ORDER BY ?fLabel LIMIT 1 } FILTER(?fLabel != "x") }': (
        "1 row, all here.",
        ["?d", "Ann Hornby (e:ann)"],
    ),
    'SELECT ?f { { ?f e:year 1977 FILTER(CONTAINS(?fLabel, "Amber")) } UNION { ?f e:year 1980 } } ORDER BY ?fLabel': (
        "2 rows, all here.",
        ["?f", "Amber Engine (e:f1)", "Bright Tower (e:f2)"],
    ),
    "SELECT ?fLabel { e:f2 rdfs:label ?fLabel } ORDER BY ?fLabel": (
        "2 rows, all here.",
        ["?fLabel", '"Bright Tower"', '"Heller Turm"@de'],
    ),
}


async def test_labels_in_the_manner_of_wikidata_are_understood(films: LocalAdapter) -> None:
    for query, (summary, lines) in LABELLED.items():
        reply = await call(films, "Sparql", query=query)
        assert (reply.summary, reply.lines) == (summary, lines), query


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
        "Nothing matches e:f3 e:by ?x. Over the inverse, director of (e:made), it has matches: ?x e:made e:f3.",
    ),
    "ASK { e:f1 e:by e:bob }": (
        "denied",
        "Nothing matches e:f1 e:by e:bob. Amber Engine (e:f1) has others over directed by (e:by).",
    ),
    "SELECT ?f { ?f e:year ?y FILTER(?y > 1990) }": (
        "denied",
        "The part before it has matches; FILTER(?y > 1990) leaves none.",
    ),
    'SELECT ?f { ?f rdfs:label "Amber Engine" }': (
        "unknown",
        "Nothing matches ?f rdfs:label \"Amber Engine\". 'Amber Engine' is the name of Amber Engine (e:f1). "
        'Write its label "Amber Engine"@en, or @"…" in place of an id.',
    ),
    'SELECT ?f { ?f rdfs:label "Bare Words"@en }': (
        "unknown",
        '\'Bare Words\' is the name of Bare Words (e:f4). Write its label "Bare Words", or @"…" in place of an id.',
    ),
    'SELECT ?f { ?f rdfs:label ?l ; e:year ?y FILTER(CONTAINS(?l, "Amber Enigne")) }': (
        "unnamed",
        'The part before it has matches; FILTER(CONTAINS(?l, "Amber Enigne")) leaves none. '
        "Nothing is named 'Amber Enigne', but Amber Engine (e:f1) is.",
    ),
    'SELECT ?f { ?f rdfs:label "Bright Storm"@en }': (
        "unnamed",
        "Nothing matches ?f rdfs:label \"Bright Storm\"@en. Nothing is named 'Bright Storm'. Near, not the same: "
        "Bright Tower (e:f2); Salt Storm (e:f3).",
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
    "SELECT ?f { ?f e:on ?d FILTER(?yaer > 1900) }": (
        "unknown",
        f"The part before it has matches; FILTER(?yaer > 1900) leaves none. {NOT_COMPUTED}",
    ),
    "SELECT ?f { ?f e:on ?d OPTIONAL { ?f e:award ?l } FILTER(?l > 1 && ?d > '1900-01-01'^^xsd:date) }": (
        "unknown",
        f"FILTER(?l > 1 && ?d > '1900-01-01'^^xsd:date) leaves none. {NOT_COMPUTED}",
    ),
    "SELECT ?f { ?f e:on ?d FILTER(?d < 1990) }": (
        "unknown",
        f"The part before it has matches; FILTER(?d < 1990) leaves none. {NOT_COMPUTED}",
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
        assert reply.summary.endswith(reason), (query, reply.summary)
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
