"""Every tool says as what it read a name, and computes nothing from a name that is not here."""

import json
from collections.abc import Callable

import pytest
import rdflib
from mcp import Client

from calls import UNHURRIED, call, plain, refusal, rows, unhurried
from calls import texts as strings
from embedders import LEXICAL
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_server.app import build_server
from kg_server.naming.entities import MOST_NEAR

MERCURY = """
@prefix e: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:film rdfs:label "The Mountain and the Harbour"@en ; a e:Film ; e:genre e:comedy ; e:year "1977" ; e:seen e:one .
e:book rdfs:label "The Mountain and the Harbour"@en ; a e:Book ; e:genre e:drama ; e:year "1955" ; e:seen e:one .
e:comedy rdfs:label "comedy"@en ; e:about e:one . e:drama rdfs:label "drama"@en ; e:about e:one .
e:Film rdfs:label "film"@en . e:Book rdfs:label "book"@en . e:genre rdfs:label "genre"@en .
e:mark rdfs:label "film"@en ; e:about e:one .
"""
THINGS = (
    "'The Mountain and the Harbour' names 2 things here: "
    "The Mountain and the Harbour, book, genre: drama; "
    "The Mountain and the Harbour, film, genre: comedy. "
    "Give the id of the one that is meant."
)
OWN_IDS = """
@prefix crm: <http://crm.example/> . @prefix obo: <http://obo.example/> . @prefix e: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
e:DEU rdfs:label "Germany" ; e:part e:one . e:FRA rdfs:label "France" ; e:part e:one . e:x rdfs:label "FRA" .
crm:E22_Human-Made_Object rdfs:label "Human-Made Object" ; rdfs:subClassOf e:one .
crm:E2_Temporal rdfs:label "Temporal" . crm:E2_Other rdfs:label "Other" .
crm:P1_is_identified_by rdfs:label "identified by" . e:DEU crm:P1_is_identified_by e:one .
obo:CARO_0000066 rdfs:label "epithelium" ; e:part e:one .
e:Duration rdfs:label "Time duration" ; e:part e:one . e:has rdfs:range xsd:duration .
"""
STING = """
@prefix e: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix schema: <http://schema.org/> .
e:singer rdfs:label "Sting" ; schema:description "an English musician" ; e:signed e:am ; a e:Fans .
e:film rdfs:label "The Sting" ; skos:altLabel "Sting" ; schema:description "a film" ; e:year 1973 ; a e:Fans .
e:ann a e:Fans ; e:likes e:singer . e:bob a e:Fans ; e:likes e:film . e:Fans rdfs:label "parties" .
"""
READ = "'Sting' is read as Sting, not The Sting."
GraphOf = Callable[[str], LocalAdapter]


@pytest.mark.parametrize(
    ("tool", "arguments", "begin"),
    [
        ("Retrieve", {"text": "DEU"}, "Exact: 'DEU' names one thing.\nGermany (e:DEU)"),
        ("Retrieve", {"text": "FRA"}, "Exact: 'FRA' names 2 things.\nFrance (e:FRA) | e:part: e:one\nFRA (e:x)"),
        ("GetNeighbor", {"entity": "FRA"}, "'FRA' is read as France (e:FRA), not FRA (e:x). France (e:FRA) has 1"),
        ("GetNeighbor", {"entity": "DEU", "relation": "P1"}, "'P1 is identified by' is read as identified by"),
        ("Compose", {"expression": "Count[Neighbor[E22, rdfs:subClassOf]]"}, "1. Namely"),
        ("Compose", {"expression": "Neighbor[CARO:0000066, e:part]"}, "e:one."),
        ("Degree", {"entity": "CARO_0000066"}, "epithelium (obo:CARO_0000066) has 1"),
        ("Feature", {"entity": "Duration"}, "Time duration (e:Duration)"),
        ("Sparql", {"query": 'SELECT ?o { @"DEU" e:part ?o }'}, "1 row"),
        ("Retrieve", {"text": "E2"}, "No entity matches 'E2'."),
    ],
)
@pytest.mark.parametrize("in_memory", [False, True])
async def test_the_local_part_of_an_id_comes_before_a_label(
    graph_of: GraphOf, in_memory: bool, tool: str, arguments: dict[str, object], begin: str
) -> None:
    graph = RdflibAdapter(rdflib.Graph().parse(data=OWN_IDS)) if in_memory else graph_of(OWN_IDS)
    assert (await call(graph, tool, **arguments)).text.startswith(begin)


@pytest.mark.parametrize(
    ("tool", "arguments", "summary"),
    [
        ("GetNeighbor", {"entity": "Tokyo"}, "Tokyo has 4 outgoing facts"),
        ("Feature", {"entity": "EDO"}, "'EDO' is an alias of Tokyo. Tokyo has 4 values"),
        ("Degree", {"entity": "Tokyo"}, "Tokyo has 3 distinct neighbours"),
        ("GetPath", {"source": "EDO", "target": "Q17"}, "'EDO' is an alias of Tokyo. 4 paths link Tokyo"),
        ("observe", {"entities": ["EDO"], "question": "capital"}, "'EDO' is an alias of Tokyo. "),
    ],
)
async def test_a_name_is_read_where_an_id_is_and_one_that_is_no_label_is_said(
    tokyo: LocalAdapter, tool: str, arguments: dict[str, object], summary: str
) -> None:
    reply = await call(tokyo, tool, **arguments)
    name = "EDO" if "EDO" in summary else "Tokyo"
    assert reply.plain.summary.startswith(summary)
    assert reply.data["read"] == {name: "Q1490"}


async def test_a_misspelt_name_is_read_and_said(sample: LocalAdapter) -> None:
    reply = await call(sample, "Degree", entity="Albert Einstien")
    assert reply.plain.summary.startswith(
        "'Albert Einstien' read as Albert Einstein, one letter off. Albert Einstein has"
    )


@pytest.mark.parametrize("name", ["Kazuo Ishiguro", "European Union", "NBA", "Lakers"])
async def test_what_is_not_here_is_not_computed_with(sample: LocalAdapter, name: str) -> None:
    text = await refusal(sample, "GetNeighbor", entity=name)
    assert text.startswith(f"No entity matches '{name}'.")
    assert text.count(";") < MOST_NEAR


async def test_several_that_cannot_be_read_are_named_together(tokyo: LocalAdapter) -> None:
    text = await refusal(tokyo, "GetPath", source="Osaka", target="Kyoto")
    assert text == ("No entity matches 'Osaka'. No entity matches 'Kyoto'.")


async def test_namesakes_are_refused_with_what_tells_them_apart(graph_of: GraphOf) -> None:
    assert await refusal(graph_of(MERCURY), "Feature", entity="the mountain and the harbour") == THINGS.replace(
        "'The Mountain and the Harbour'", "'the mountain and the harbour'"
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("GetNeighbor", {"entity": "Sting", "relation": "signed"}, f"{READ} Sting | e:signed | e:am."),
        ("Feature", {"entity": "Sting", "feature": "year"}, "'Sting' is read as The Sting, not Sting. The Sting"),
        ("Degree", {"entity": "Sting", "relation": "likes", "direction": "in"}, f"{READ} Sting has 1 distinct"),
        ("Compose", {"expression": "Neighbor[Sting, -likes]"}, f"e:ann. {READ}"),
        (
            "Compose",
            {"expression": "Count[Where[Type[party], likes = Sting]]"},
            f"1. 'party' read as parties, 3 letters off. {READ}",
        ),
        ("Compose", {"expression": "Count[Where[Type[parties], likes = The Sting]]"}, "1. Namely e:bob."),
    ],
)
@pytest.mark.parametrize("in_memory", [False, True])
async def test_of_namesakes_those_that_have_the_relation_are_meant_and_by_label_before_alias(
    graph_of: GraphOf, in_memory: bool, tool: str, arguments: dict[str, object], text: str
) -> None:
    graph = RdflibAdapter(rdflib.Graph().parse(data=STING)) if in_memory else graph_of(STING)
    assert (await call(graph, tool, **arguments)).plain.text.startswith(text)


async def test_namesakes_that_no_relation_decides_on_are_told_apart_by_their_descriptions(graph_of: GraphOf) -> None:
    refused = "'Sting' names 2 things here: Sting, an English musician; The Sting, a film. "
    assert (await refusal(graph_of(STING), "GetNeighbor", entity="Sting")).startswith(refused)
    assert (await refusal(graph_of(STING), "GetNeighbor", entity="Sting", relation="likes")).startswith(refused)


async def test_the_resource_of_a_name_is_that_of_its_entity(tokyo: LocalAdapter) -> None:
    async with Client(build_server(tokyo, UNHURRIED)) as client:
        shown = str((await client.read_resource("kg://entity/Tokyo")).contents)
    assert "Tokyo has 4 values" in plain(shown)


async def test_retrieve_shows_what_tells_namesakes_apart(graph_of: GraphOf) -> None:
    reply = await call(graph_of(MERCURY), "Retrieve", text="The Mountain and the Harbour")
    assert reply.plain.text == (
        "Exact: 'The Mountain and the Harbour' names 2 things.\n"
        "The Mountain and the Harbour | book | genre: drama\n"
        "The Mountain and the Harbour | film | genre: comedy"
    )
    assert (reply.data["match"], reply.data["knowledge"]) == ("exact", "stated")


async def test_all_namesakes_are_shown_whatever_the_limit_as_far_as_they_fit(graph_of: GraphOf) -> None:
    head = "@prefix e: <http://example.org/> . @prefix l: <http://www.w3.org/2000/01/rdf-schema#> ."
    named = "\n".join(f'e:n{number} l:label "John Smith" ; e:year "{number}" .' for number in range(130))
    graph = graph_of(f'{head} {named} e:o l:label "Jane Doe" ; e:year "1" .')
    one = await call(graph, "Retrieve", unhurried(max_tokens=8_000), text="John Smith", limit=1)
    several = await call(graph, "Retrieve", text=["John Smith", "Jane Doe"], limit=1)
    shown = len(rows(several.data["candidates"])) - 1
    assert one.summary == "Exact: 'John Smith' names 130 things, 100 of them here."
    assert len(rows(one.data["candidates"])) == 100
    # Those of one text leave the others theirs.
    assert rows(several.data["candidates"])[-1][0] == "e:o"
    assert several.lines[0] == f"Exact: 'John Smith' names 130 things, {shown} of them here."
    assert shown > 10


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("Retrieve", {"text": "Jo"}, "Exact: 'Jo' names at least 500 things, "),
        ("Feature", {"entity": "Jo"}, "'Jo' names at least 500 things here: "),
        ("Compose", {"expression": "Count[Feature[Jo, year]]"}, "'Jo' names at least 500 things, 500 taken: "),
        ("Compose", {"expression": "Feature[e:a, born]"}, "'born' names at least 50 relations, 50 taken: "),
    ],
)
async def test_more_namesakes_than_are_looked_for_are_not_all(
    graph_of: GraphOf, tool: str, arguments: dict[str, str], told: str
) -> None:
    named = "".join(f'e:n{number} l:label "Jo" ; e:year "{number}" . ' for number in range(510))
    born = "".join(f'e:b{number} l:label "born" . e:a e:b{number} "{number}" . ' for number in range(60))
    prefixes = "@prefix e: <http://e.org/> . @prefix l: <http://www.w3.org/2000/01/rdf-schema#> ."
    graph = graph_of(f"{prefixes} {named} {born}")
    assert told in (await call(graph, tool, **arguments)).text


IN_LANGUAGES = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
wd:Q365 rdfs:label "Cologne"@en, "Köln"@de, "Keulen"@nl, "ケルン"@ja ; skos:altLabel "City of Cologne"@en .
wd:Q1726 rdfs:label "Munich"@en, "München"@de, "Мюнхен"@ru .
wd:Q1299 rdfs:label "The Beatles"@en, "Die Beatles"@de ; skos:altLabel "Fab Four"@en .
wd:Q28848 rdfs:label "St. Paul"@en . wd:Q38022 rdfs:label "Saint Louis"@en .
wd:Q30 rdfs:label "United States"@en, "Vereinigte Staaten"@de ; skos:altLabel "USA"@en .
wd:Q43653 rdfs:label "Apollo 11"@en . wd:Q207000 rdfs:label "Apollo 12"@en .
wd:Q7207 rdfs:label "Elizabeth I"@en . wd:Q9682 rdfs:label "Elizabeth II"@en .
wd:Q361 rdfs:label "World War I"@en ; skos:altLabel "First World War"@en .
wd:Q362 rdfs:label "World War II"@en ; skos:altLabel "Second World War"@en .
wd:Q255 rdfs:label "Beethoven, Ludwig van" . wd:Q41390 rdfs:label "Kurt Gödel" . wd:Q220 rdfs:label "Rome" .
wd:Q365 wdt:P17 wd:Q30 . wd:Q1726 wdt:P17 wd:Q30 .
"""
READ_AS = {
    "Q365": ["koln", "KEULEN", "ケルン", "Colonge", "City of Colgne", "cologne!"],
    "Q1726": ["Munchen", "Muenchen", "мюнхен", "Мунхен"],
    "Q1299": ["Beatles", "beatles, the", "The Beatels", "fab-four", "THE BEATLES?"],
    "Q28848": ["Saint Paul", "st paul"],
    "Q38022": ["St. Louis", "St Luois"],
    "Q30": ["U.S.A.", "the USA", "vereinigte staaten", "The United States"],
    "Q43653": ["Apolo 11", "apollo-11"],
    "Q9682": ["Elisabeth II", "elizabeth  ii"],
    "Q362": ["Second Wrold War", "World War II."],
    "Q255": ["Ludwig van Beethoven", "Ludwig van Beethovn"],
    "Q41390": ["Godel, Kurt", "Kurt Goedel"],
    "Q220": ["Roem"],
}
MISREAD = ["Apollo 13", "Apollo 1", "Elizabeth III", "World War", "World War III", "Third World War", "Rom", "Romeo"]


async def test_names_in_other_languages_styles_and_spellings_are_read_and_near_ones_are_not(
    graph_of: GraphOf,
) -> None:
    graph = graph_of(IN_LANGUAGES)
    meant = {text: node for node, texts in READ_AS.items() for text in texts}
    reply = await call(graph, "Retrieve", unhurried(embedding=LEXICAL, max_tokens=8_000), text=[*meant, *MISREAD])
    assert {text for text, match in strings(reply.data["matches"]).items() if match in {"loose", "none"}} == {*MISREAD}
    found = {
        list(meant)[int(row[7]) - 1]: row[0] for row in rows(reply.data["candidates"]) if int(row[7]) <= len(meant)
    }
    assert found == meant


async def test_retrieve_says_that_a_name_is_not_here(sample: LocalAdapter) -> None:
    settings = unhurried(embedding=LEXICAL)
    reply = await call(sample, "Retrieve", settings, text="Kazuo Ishiguro")
    assert reply.plain.text == ("No entity matches 'Kazuo Ishiguro'. Try another spelling or fewer words.")
    assert (reply.data["match"], reply.data["knowledge"]) == ("none", "unnamed")


async def test_retrieve_takes_several_texts(sample: LocalAdapter) -> None:
    settings = unhurried(embedding=LEXICAL)
    reply = await call(sample, "Retrieve", settings, text=["Albert Einstein", "Albrt Einstien", "NBA"], limit=1)
    assert reply.plain.summary == "3 texts: 1 exact, 1 close, 1 named by nothing here."
    assert reply.data["matches"] == {"Albert Einstein": "exact", "Albrt Einstien": "close", "NBA": "loose"}
    assert (reply.data["match"], reply.data["knowledge"]) == ("loose", "stated")
    assert [(row[0], row[7]) for row in rows(reply.data["candidates"])][:2] == [("Q937", "1"), ("Q937", "2")]
    begins = ("Albert Einstein", "Close: read 'Albrt Einstien' as", "No entity matches 'NBA'. Near, not the same:")
    assert [line.partition(begin)[1] for begin in begins for line in reply.plain.lines if line.startswith(begin)] == [
        *(begins[0], begins[0]),
        *begins[1:],
    ]


async def test_a_list_of_names_is_answered_as_each_of_them(sample: LocalAdapter) -> None:
    settings, names = unhurried(embedding=LEXICAL), ["Albert Einstein", "Jack London"]
    alone = [await call(sample, "Retrieve", settings, text=each) for each in names]
    for text in (names, ", ".join(names), json.dumps(names)):
        reply = await call(sample, "Retrieve", settings, text=text)
        assert reply.summary == "2 texts: 2 exact."
        assert reply.lines == [line for each in alone for line in each.lines]
        assert reply.data["cards"] == {"Q937": alone[0].data["card"], "Q45765": alone[1].data["card"]}


async def test_a_type_may_be_named_and_a_class_is_meant(graph_of: GraphOf) -> None:
    reply = await call(graph_of(MERCURY), "Retrieve", text="The Mountain and the Harbour", type="film")
    assert reply.plain.summary == "Exact: 'The Mountain and the Harbour' names one thing among film."
    assert "No entity matches 'flims'" in await refusal(graph_of(MERCURY), "Retrieve", text="x", type="flims")
