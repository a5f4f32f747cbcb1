"""Every tool says as what it read a name, and computes nothing from a name that is not here."""

from collections.abc import Callable

import pytest
from mcp import Client

from calls import call, refusal, rows
from kg_adapters.local.adapter import LocalAdapter
from kg_server.app import build_server
from kg_server.entity_arguments import MOST_NEAR
from kg_server.settings import Settings

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
    "The Mountain and the Harbour (e:book), book, genre (e:genre): drama (e:drama); "
    "The Mountain and the Harbour (e:film), film, genre (e:genre): comedy (e:comedy). "
    "Give the id of the one that is meant."
)
GraphOf = Callable[[str], LocalAdapter]


@pytest.mark.parametrize(
    ("tool", "arguments", "summary"),
    [
        ("GetNeighbor", {"entity": "Tokyo"}, "Tokyo (Q1490) has 4 outgoing facts"),
        ("Feature", {"entity": "EDO"}, "'EDO' is an alias: Tokyo (Q1490) has 4 values"),
        ("Degree", {"entity": "Tokyo"}, "Tokyo (Q1490) has 3 distinct neighbours"),
        ("GetPath", {"source": "EDO", "target": "Q17"}, "'EDO' is an alias of Tokyo (Q1490). 4 paths link Tokyo"),
        ("observe", {"entities": ["EDO"], "question": "capital"}, "'EDO' is an alias of Tokyo (Q1490). "),
    ],
)
async def test_a_name_is_read_where_an_id_is_and_one_that_is_no_label_is_said(
    tokyo: LocalAdapter, tool: str, arguments: dict[str, object], summary: str
) -> None:
    reply = await call(tokyo, tool, **arguments)
    name = "EDO" if "EDO" in summary else "Tokyo"
    assert reply.summary.startswith(summary)
    assert reply.data["read"] == {name: "Q1490"}


async def test_an_id_needs_no_word(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "GetNeighbor", entity="Q1490")
    assert reply.summary.startswith("Tokyo (Q1490) has")
    assert "read" not in reply.data


async def test_a_misspelt_name_is_read_and_said(sample: LocalAdapter) -> None:
    reply = await call(sample, "Degree", entity="Albert Einstien")
    assert reply.summary.startswith("'Albert Einstien' read, one letter off: Albert Einstein (Q937) has")


@pytest.mark.parametrize("name", ["Kazuo Ishiguro", "European Union", "NBA", "Lakers"])
async def test_what_is_not_here_is_not_computed_with(sample: LocalAdapter, name: str) -> None:
    text = await refusal(sample, "GetNeighbor", entity=name)
    assert text.startswith(f"No entity matches '{name}'. ")
    assert text.count(";") < MOST_NEAR


async def test_several_that_cannot_be_read_are_named_together(tokyo: LocalAdapter) -> None:
    text = await refusal(tokyo, "GetPath", source="Osaka", target="Kyoto")
    assert text == (
        "No entity matches 'Osaka'. Retrieve finds things by other words. "
        "No entity matches 'Kyoto'. Retrieve finds things by other words."
    )


async def test_namesakes_are_refused_with_what_tells_them_apart(graph_of: GraphOf) -> None:
    assert await refusal(graph_of(MERCURY), "Feature", entity="the mountain and the harbour") == THINGS.replace(
        "'The Mountain and the Harbour'", "'the mountain and the harbour'"
    )


async def test_the_resource_of_a_name_is_that_of_its_entity(tokyo: LocalAdapter) -> None:
    async with Client(build_server(tokyo, Settings())) as client:
        shown = str((await client.read_resource("kg://entity/Tokyo")).contents)
    assert "Tokyo (Q1490) has 4 values" in shown


async def test_retrieve_shows_what_tells_namesakes_apart(graph_of: GraphOf) -> None:
    reply = await call(graph_of(MERCURY), "Retrieve", text="The Mountain and the Harbour")
    assert reply.text == (
        "Exact: 'The Mountain and the Harbour' names 2 things.\n"
        "The Mountain and the Harbour (e:book) | book | genre (e:genre): drama (e:drama)\n"
        "The Mountain and the Harbour (e:film) | film | genre (e:genre): comedy (e:comedy)"
    )
    assert (reply.data["match"], reply.data["knowledge"]) == ("exact", "stated")


async def test_the_verdict_does_not_depend_on_the_limit(graph_of: GraphOf) -> None:
    replies = [
        await call(graph_of(MERCURY), "Retrieve", text="The Mountain and the Harbor", limit=limit)
        for limit in (1, 2, 50)
    ]
    assert [reply.data["match"] for reply in replies] == ["close", "close", "close"]
    assert [len(rows(reply.data["candidates"])) for reply in replies] == [1, 2, 2]
    assert replies[0].data["status"] == "truncated"
    assert replies[0].summary == (
        "Close: read 'The Mountain and the Harbor' as The Mountain and the Harbour (e:book), "
        "the name of 2 things, 1 of them here."
    )


async def test_retrieve_says_that_a_name_is_not_here(sample: LocalAdapter) -> None:
    settings = Settings(embedder="lexical")
    reply = await call(sample, "Retrieve", settings, text="Kazuo Ishiguro")
    assert reply.text == (
        "No entity matches 'Kazuo Ishiguro'. Near, not the same:\n"
        "Kazuhiko Inoue (Q225654) | Japanese voice actor | human"
    )
    assert (reply.data["match"], reply.data["knowledge"]) == ("none", "unnamed")


async def test_lakers_finds_the_team_before_the_lake(sample: LocalAdapter) -> None:
    reply = await call(sample, "Retrieve", Settings(embedder="lexical"), text="Lakers")
    assert reply.data["match"] == "loose"
    assert reply.lines[0].startswith("Los Angeles Lakers (Q121783) | ")


async def test_retrieve_takes_several_texts(sample: LocalAdapter) -> None:
    settings = Settings(embedder="lexical")
    reply = await call(sample, "Retrieve", settings, text=["Albert Einstein", "Albrt Einstien", "NBA"], limit=1)
    assert reply.summary == "3 texts: 1 exact, 1 close, 1 named by nothing here."
    assert reply.data["matches"] == {"Albert Einstein": "exact", "Albrt Einstien": "close", "NBA": "loose"}
    assert (reply.data["match"], reply.data["knowledge"]) == ("loose", "stated")
    assert [(row[0], row[7]) for row in rows(reply.data["candidates"])][:2] == [("Q937", "1"), ("Q937", "2")]
    assert [line.partition(" | ")[0] for line in reply.lines][:4] == [
        "Albert Einstein (Q937)",
        "Close: read 'Albrt Einstien' as Albert Einstein (Q937).",
        "Albert Einstein (Q937)",
        "No entity matches 'NBA'. Near, not the same:",
    ]


async def test_a_type_may_be_named_and_a_class_is_meant(graph_of: GraphOf) -> None:
    reply = await call(graph_of(MERCURY), "Retrieve", text="The Mountain and the Harbour", type="film")
    assert reply.summary == "Exact: 'The Mountain and the Harbour' names one thing among film (e:Film)."
    assert "No entity matches 'flims'" in await refusal(graph_of(MERCURY), "Retrieve", text="x", type="flims")
