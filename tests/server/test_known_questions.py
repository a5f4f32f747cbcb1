"""Questions that were once answered wrongly: what is not stated, values of an entity, and one fact among many."""

from collections.abc import Callable
from pathlib import Path

import pytest

from calls import call, plain, rows
from kg_adapters.local.adapter import LocalAdapter
from kg_server.settings import Settings

POETS = """
@prefix wd: <http://www.wikidata.org/entity/> . @prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
wdt:P31 rdfs:label "instance of"@en . wdt:P108 rdfs:label "employer"@en . wdt:P106 rdfs:label "occupation"@en .
wdt:P570 rdfs:label "date of death"@en . wdt:P569 rdfs:label "date of birth"@en . wd:Q5 rdfs:label "human"@en .
wd:Q937 rdfs:label "Albert Einstein"@en ; wdt:P31 wd:Q5 ; wdt:P106 wd:Q169470 . wd:Q169470 rdfs:label "physicist"@en .
wd:Q6711 rdfs:label "Allen Ginsberg"@en ; wdt:P31 wd:Q5 ; wdt:P106 wd:Q49757 ; wdt:P108 wd:Q371625 ;
    wdt:P569 "1926-06-03"^^xsd:date ; wdt:P570 "1997-04-05"^^xsd:date . wd:Q49757 rdfs:label "poet"@en .
wd:Q371625 rdfs:label "Brooklyn College"@en .
""" + "".join(f"wd:Q9{number} wdt:P31 wd:Q5 ; wdt:P106 wd:Q49757 . " for number in range(30))


@pytest.fixture
def poets(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    return graph_of(POETS)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("GetNeighbor", {"entity": "Albert Einstein", "relation": "employer"}),
        ("Degree", {"entity": "Albert Einstein", "relation": "employer", "direction": "out"}),
        ("Compose", {"expression": "Neighbor[Albert Einstein, employer]"}),
        ("Sparql", {"query": 'SELECT ?x { @"Albert Einstein" @"employer" ?x }', "timeout_s": 60}),
    ],
)
async def test_of_an_employer_that_is_not_stated_coverage_says_how_little_that_means(
    poets: LocalAdapter, tool: str, arguments: dict[str, object]
) -> None:
    reply = await call(poets, tool, **arguments)
    assert "f 32 humans 1 has one, so its absence proves nothing" in reply.text
    assert reply.data["knowledge"] == "unknown"


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "Who employed Albert Einstein?",
            " Albert Einstein has no employer here; of 32 humans 1 has one, so its absence proves nothing.",
        ),
        (
            "What is the date of death of Albert Einstein?",
            " Albert Einstein has no date of death here; of 32 humans 1 has one, so its absence proves nothing.",
        ),
        ("What was his occupation?", ""),
        ("Who employed Allen Ginsberg?", ""),
    ],
)
async def test_observe_says_what_is_asked_for_and_missing(poets: LocalAdapter, question: str, said: str) -> None:
    entity = "Allen Ginsberg" if "Ginsberg" in question else "Albert Einstein"
    reply = await call(poets, "observe", question=question, entities=[entity])
    assert reply.plain.summary.endswith(said or "by meaning and spelling.")
    assert reply.data["knowledge"] == ("unknown" if said else "stated")


async def test_coverage_of_the_shipped_sample_is_quoted(sample: LocalAdapter) -> None:
    reply = await call(sample, "GetNeighbor", entity="John Lennon", relation="employer")
    assert "of 4,175 humans 267 have one, so its absence proves nothing" in reply.summary
    assert (reply.data["status"], reply.data["knowledge"]) == ("empty", "unknown")


async def test_a_date_of_death_is_seen_looked_up_and_remembered(poets: LocalAdapter, tmp_path: Path) -> None:
    line = "Allen Ginsberg (Q6711) | date of death (P570) | 1997-04-05"
    seen = await call(poets, "observe", question="When did he die?", entities=["Allen Ginsberg"])
    assert plain(line) in seen.plain.lines
    found = await call(poets, "GetNeighbor", entity="Allen Ginsberg", relation="date of death")
    assert found.plain.text == f"{plain(line)}."
    assert "1997-04-05" in (await call(poets, "Feature", entity="Allen Ginsberg", feature="date of death")).plain.text
    kept = await call(poets, "memory-append", Settings(data_folder=tmp_path), triples=[line])
    assert kept.plain.lines == ["Allen Ginsberg -[date of death]-> 1997-04-05"]


@pytest.mark.parametrize("question", ["Who is the child of John Lennon?", "What are the occupations of John Lennon?"])
async def test_twelve_occupations_do_not_hide_a_child(sample: LocalAdapter, question: str) -> None:
    reply = await call(sample, "observe", question=question, entities=["Q1203"])
    own = {row[1]: row for row in rows(reply.data["groups"]) if row[0] == "Q1203" and row[2] == "out"}
    assert own["P106"][3] == "15"
    assert own["P40"][3:] == ["1", own["P40"][4], "1", "Q311238"]
    assert len([line for line in reply.lines if line.startswith("John Lennon") and "| occupation" in line]) == 1
