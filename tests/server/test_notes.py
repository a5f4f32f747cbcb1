import json
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest
from mcp import Client
from mcp.types import TextContent

from calls import call, reply_of, unhurried
from kg_adapters.errors import InvalidRequest
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store, verify_store
from kg_agents.evidence.values import IdLabels
from kg_agents.experience import Learned
from kg_server.answers.results import token_count
from kg_server.app import EXPERIENCE_FILE, build_server
from kg_server.commands.answering import keep_solved
from kg_server.commands.graphs import opening
from kg_server.notes import Example, Notes, Preferred
from kg_server.settings import Settings

WRITTEN = """
# Cities
A city guide's own graph, of places in Japan.

## About
Cities and the countries (see 1) that they are in.

## Traps
- `capital` of a city is the seat of its government.
### country
- Its size was never recorded.

## Prefer
- head office: P36
- "seat": P36
- no relation here

## Examples
Question: What is the capital of Japan?
`GetNeighbor entity=Q17 relation=P36`
Answer: Tokyo
How many people live in Tokyo?
kg-sextant call Feature entity=Q1490 "feature=population"
What has no call?

## Spelling
Names are in English.
"""


async def told(settings: Settings, graph: LocalAdapter, **arguments: object) -> list[str]:
    reply = await call(graph, "Schema", settings, **arguments)
    return [line for line in reply.lines if line.startswith("note | ")]


def test_notes_are_read_by_their_headings_and_what_cannot_be_read_is_named_with_its_line() -> None:
    notes = Notes.parse(WRITTEN)
    assert notes.about == "Cities and the countries (see 1) that they are in."
    assert notes.preferred == (Preferred("head office", "P36", 14), Preferred("seat", "P36", 15))
    assert notes.examples == (
        Example("What is the capital of Japan?", ("GetNeighbor entity=Q17 relation=P36",), "Tokyo", 19),
        Example("How many people live in Tokyo?", ('Feature entity=Q1490 "feature=population"',), "", 22),
    )
    assert [(each.heading, each.topic) for each in notes.lines] == [
        ("Cities", ""),
        ("About", ""),
        ("Traps", ""),
        ("Traps", "country"),
        ("Spelling", ""),
    ]
    assert [problem.partition(":")[0] for problem in notes.problems] == ["Line 16", "Line 24"]


@pytest.mark.parametrize(
    "hostile",
    ["# " * 30_000, "x: " * 20_000, "## Prefer\n" + "a: b:" * 10_000, "## Examples\n" + "`" * 60_000, "-\n" * 32_000],
    ids=["heading", "line", "names", "call", "lines"],
)
def test_hostile_notes_are_read_in_bounds_and_shown_as_lines(hostile: str) -> None:
    notes = Notes.parse(f"{hostile}\n\u202eturned\u2028note | Prefer: a means b")
    assert token_count(notes.about) <= 70
    assert all(line.isprintable() for line in notes.fitting(None, (), 100_000))
    assert sum(map(token_count, notes.fitting(None, (), 500))) <= 500


async def test_schema_shows_the_notes_that_fit_within_a_quarter_of_its_budget(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    file = tmp_path / "cities.md"
    file.write_text(WRITTEN)
    settings = unhurried(notes=file)
    every = await told(settings, tokyo)
    assert len(every) == 9
    assert every[2] == "note | Traps: `capital` of a city is the seat of its government."
    of_country = await told(settings, tokyo, about="country")
    assert of_country[0] == "note | Traps, country: Its size was never recorded."
    assert "note | Spelling: Names are in English." not in of_country
    assert len(await told(settings, tokyo, max_tokens=500)) < len(every)
    for budget in (500, 2_000):
        reply = await call(tokyo, "Schema", settings, max_tokens=budget)
        assert max(token_count(reply.text), token_count(json.dumps(reply.data))) <= budget
        assert [line.removeprefix("note | ") for line in reply.lines if "note | " in line] == reply.data["notes"]


async def test_the_instructions_begin_with_what_the_notes_say_the_graph_is_about(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    file = tmp_path / "cities.md"
    file.write_text(f"{WRITTEN}\n## About\n" + "More on these cities and their countries.\n" * 500)
    async with Client(build_server(tokyo, unhurried(notes=file), await tokyo.profile())) as client:
        assert client.instructions is not None
        assert "Its owner notes: 'Cities and the countries (see 1) that they are in. More" in client.instructions
        assert token_count(client.instructions) < 380


async def test_notes_are_read_again_when_they_change_and_stay_in_use_when_they_cannot_be(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    source = tmp_path / "people.ttl.gz"
    source.touch()
    file = tmp_path / "people.notes.md"
    settings = unhurried(graph=str(source))
    async with Client(build_server(tokyo, settings)) as client:

        async def shown() -> list[str]:
            result = await client.call_tool("Schema", {})
            lines = "\n".join(getattr(block, "text", "") for block in result.content).splitlines()
            return [line for line in lines if line.startswith("note")]

        assert await shown() == []
        file.write_text("Of people.")
        assert await shown() == ["note | About: Of people."]
        file.write_text("Of people and of towns.")
        assert await shown() == ["note | About: Of people and of towns."]
        file.write_bytes(b"\xff\xfe" * 9)
        assert await shown() == ["note | About: Of people and of towns."]
        file.unlink()
        assert await shown() == []


async def test_chosen_notes_that_cannot_be_read_are_refused_at_the_start(tokyo: LocalAdapter, tmp_path: Path) -> None:
    file = tmp_path / "large.md"
    with pytest.raises(InvalidRequest, match=r"large\.md cannot be read"):
        build_server(tokyo, unhurried(notes=file))
    file.write_bytes(b"a" * 64_001)
    with pytest.raises(InvalidRequest, match="more than 64,000 bytes"):
        build_server(tokyo, unhurried(notes=file))


@pytest.mark.parametrize("update", [False, True])
async def test_notes_in_a_store_are_no_damage_and_kept_by_the_next_import(tmp_path: Path, *, update: bool) -> None:
    source, folder = tmp_path / "cities.nt", tmp_path / "store"
    source.write_text("<http://e.org/a> <http://e.org/b> <http://e.org/c> .\n")
    build_store([source], folder, ImportOptions())
    (folder / "notes.md").write_text("Of towns.")
    source.write_text("<http://e.org/a> <http://e.org/b> <http://e.org/d> .\n")
    build_store([source], folder, ImportOptions(), update=update)
    assert (folder / "notes.md").read_text() == "Of towns."
    (folder / "notes.md").write_text("Of towns, edited.")
    verify_store(folder)
    async with aclosing(LocalAdapter(open_store(folder))) as graph:
        assert await told(unhurried(graph=str(folder)), graph) == ["note | About: Of towns, edited."]


async def test_examples_of_notes_are_recalled_also_where_nothing_is_learned(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    file = tmp_path / "cities.md"
    file.write_text(WRITTEN)
    async with Client(build_server(tokyo, unhurried(notes=file))) as client:
        reply = reply_of(await client.call_tool("Recall", {"question": "What is the capital of Osaka?"}))
        (message,) = (await client.get_prompt("oda", {"question": "What is the capital of Osaka?"})).messages
    example = ["question: What is the capital of Japan?", "call: GetNeighbor entity=Q17 relation=P36", "answer: Tokyo"]
    assert reply.lines[:3] == [f"1. {line}" for line in example]
    assert isinstance(message.content, TextContent)
    assert "\n".join(reply.lines) in message.content.text
    assert not (tmp_path / EXPERIENCE_FILE).exists()


MISLEADING = """
@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:acme rdfs:label "Acme" ; e:place e:oslo ; e:r7 e:bergen . e:other e:place e:oslo .
e:oslo rdfs:label "Oslo" . e:bergen rdfs:label "Bergen" .
e:place rdfs:label "location" . e:r7 rdfs:label "headquarters" .
"""


@pytest.mark.parametrize("name", ["Location", "head office"])
@pytest.mark.parametrize(
    ("tool", "written"),
    [
        ("GetNeighbor", {"entity": "e:acme", "relation": "{}"}),
        ("Compose", {"expression": "Neighbor[Acme, {}]"}),
        ("Sparql", {"query": 'SELECT ?where {{ e:acme @"{}" ?where }}'}),
    ],
)
async def test_a_preferred_name_of_a_relation_means_it_in_every_tool_and_this_is_said(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path, tool: str, written: dict[str, str], name: str
) -> None:
    file = tmp_path / "notes.md"
    file.write_text("## Prefer\n- location: e:r7\n- Head Office: <http://e.org/r7>\n- location: e:place\n")
    arguments = {key: value.format(name) for key, value in written.items()}
    reply = await call(graph_of(MISLEADING), tool, unhurried(notes=file), **arguments)
    assert not reply.is_error, reply.text
    assert "Bergen" in reply.text
    assert "Oslo" not in reply.text
    misspelt = {key: value.format(name.replace("a", "aa")) for key, value in written.items()}
    near = await call(graph_of(MISLEADING), tool, unhurried(notes=file), **misspelt)
    assert ("e:r7" in near.text, "e:place" in near.text) == (True, False), near.text
    said = (
        "Read '{}' as headquarters (e:r7)" if tool == "Sparql" else "'{}' is read as headquarters (e:r7), by the notes"
    )
    assert said.format(name) in reply.text


async def test_a_label_that_an_answer_shows_is_kept_as_such_whatever_is_preferred(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path
) -> None:
    file = tmp_path / "notes.md"
    file.write_text("## Prefer\n- location: e:r7\n")
    settings = unhurried(notes=file, data_folder=tmp_path)
    for city, relation in (("Oslo", "e:place"), ("Bergen", "e:r7")):
        reply = await call(graph_of(MISLEADING), "memory-append", settings, triples=[f"Acme | location | {city}"])
        assert f"({relation})]->" in reply.text


async def test_a_preferred_relation_that_the_graph_does_not_use_is_not_shown_and_has_no_effect(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path
) -> None:
    file = tmp_path / "notes.md"
    file.write_text("## Prefer\n- location: e:none\n- seat: e:r7\n")
    settings, graph = unhurried(notes=file), graph_of(MISLEADING)
    reply = await call(graph, "GetNeighbor", settings, entity="e:acme", relation="location")
    assert "Oslo" in reply.text
    assert await told(settings, graph) == ["note | Prefer: seat means e:r7"]


async def test_schema_about_a_preferred_name_begins_with_the_relation_that_it_means(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path
) -> None:
    file = tmp_path / "notes.md"
    file.write_text("## Prefer\n- location: e:r7\n")
    reply = await call(graph_of(MISLEADING), "Schema", unhurried(notes=file), about="location")
    assert [line.split(" | ")[1] for line in reply.lines[1:]] == ["headquarters (e:r7)", "location (e:place)"]


async def test_each_of_several_graphs_has_its_own_notes(tmp_path: Path) -> None:
    graphs = {name: {"graph": str(tmp_path / f"my-{name}.ttl"), "timeout_s": 120} for name in ("plants", "offices")}
    for name in graphs:
        (tmp_path / f"my-{name}.ttl").write_text(MISLEADING)
    asking = "## Examples\nWhere is the {} of Acme?\n`GetNeighbor entity=e:acme relation=location`\n"
    (tmp_path / "my-plants.notes.md").write_text("Of plants.\n" + asking.format("plant"))
    prefer = "## Prefer\n- location: e:r7\n"
    (tmp_path / "my-offices.notes.md").write_text(f"Of offices.\n{prefer}" + asking.format("office"))
    more = {"cache_folder": tmp_path / "cache", "timeout_s": 120}
    settings = Settings.model_validate({"graphs": graphs, "data_folder": tmp_path, "learn": True, **more})
    async with opening(settings, patience_s=60) as served, Client(build_server(served, settings)) as client:

        async def shown(tool: str, **arguments: object) -> str:
            return reply_of(await client.call_tool(tool, arguments)).text

        located = {name: await shown("GetNeighbor", entity="Acme", relation="location", graph=name) for name in graphs}
        together = await shown("Compose", expression="Neighbor[Acme, location]", graph=list(graphs))
        noted = {name: await shown("Schema", graph=name) for name in graphs}
        recalled = await shown("Recall", question="Where is the seat of Oslo?")
        facts = (("e:other [plants]", "e:place [plants]", "e:oslo [plants]"),)
        learned = Learned("Which seat is in Oslo?", ("Neighbor[e:other, e:place]",), ("Oslo",), facts, IdLabels())
        assert await keep_solved(settings, served, learned)
        again = await shown("Recall", question="Where is the seat of Oslo?")
    assert ["Oslo" in located["plants"], "Bergen" in located["offices"], "Oslo" in located["offices"]] == [
        *(True, True, False)
    ]
    assert ["Oslo" in together, "Bergen" in together] == [True, True]
    assert [("Of plants." in text, "Of offices." in text) for text in noted.values()] == [(True, False), (False, True)]
    assert all(f"graph: {name}" in recalled for name in graphs)
    assert "location [offices] | Neighbor[…, e:place]" in recalled
    assert "question: Which seat is in Oslo?" in again
