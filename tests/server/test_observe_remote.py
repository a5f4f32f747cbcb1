"""observe says the same of a graph behind an endpoint or of Wikidata as of one at hand, once as much is known of it."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyoxigraph
import pytest

from calls import Reply, call, plain, rows, unhurried
from kg_adapters.caching import CachingAdapter
from kg_adapters.http.pacing import Rates
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.open_options import OpenOptions
from kg_adapters.prefixes import WIKIDATA
from kg_adapters.protocol import KGAdapter, SupportsLearning, known_profile
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.queries import Queries
from kg_adapters.wikidata.opening import open_wikidata
from sparql_stand_in import StandInEndpoint, parts_of
from wikidata_stand_in import QUERY, WikidataStandIn, as_wikidata, running

PREFIXES: Final = (
    "@prefix wd: <http://www.wikidata.org/entity/> . @prefix wdt: <http://www.wikidata.org/prop/direct/> . "
    "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> . "
)
PEOPLE: Final = PREFIXES + (
    'wdt:P31 rdfs:label "instance of"@en . wdt:P108 rdfs:label "employer"@en . wdt:P106 rdfs:label "occupation"@en . '
    'wdt:P40 rdfs:label "child"@en . wdt:P22 rdfs:label "father"@en . wd:Q5 rdfs:label "human"@en . '
    'wdt:P106 skos:altLabel "career"@en, "Beruf"@de . wdt:P69 rdfs:label "educated at"@en . '
    'wd:Q1 rdfs:label "Anna Berg"@en ; wdt:P31 wd:Q5 ; wdt:P106 wd:Q21 ; wdt:P40 wd:Q101 . '
    'wd:Q21 rdfs:label "poet"@en . '
    'wd:Q2 rdfs:label "Otto Lang"@en ; wdt:P31 wd:Q5 ; wdt:P106 wd:Q21 . '
    'wd:Q3 rdfs:label "Ida Koch"@en ; wdt:P31 wd:Q5 ; wdt:P108 wd:Q22 . wd:Q22 rdfs:label "City Library"@en . '
    + "".join(
        f'wd:Q{100 + n} rdfs:label "Elder {n}"@en ; wdt:P31 wd:Q5 ; wdt:P106 wd:Q21 ; wdt:P40 wd:Q{200 + n} . '
        f'wd:Q{200 + n} rdfs:label "Younger {n}"@en ; wdt:P31 wd:Q5 ; wdt:P22 wd:Q{100 + n} . '
        for n in range(24)
    )
)


@dataclass(frozen=True)
class Elsewhere:
    """A graph that is asked by requests, and how many queries it was sent."""

    graph: CachingAdapter
    asked: Callable[[], int]

    async def learn(self) -> None:
        """Learn what is learned beside the answers."""
        assert isinstance(self.graph, SupportsLearning)
        await self.graph.learn_profile()


@pytest.fixture
def here(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    return graph_of(PEOPLE)


@pytest.fixture(params=["endpoint", "wikidata"])
async def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Elsewhere]:
    store = pyoxigraph.Store()
    store.load(PEOPLE, pyoxigraph.RdfFormat.TURTLE)
    triples = "".join(f"{quad.triple} .\n" for quad in store)
    if request.param == "endpoint":
        endpoint = StandInEndpoint(triples)
        queries = Queries.of(DIALECTS["standard"], Vocabulary())
        parts = replace(parts_of(endpoint, queries), prefixes=WIKIDATA)
        async with aclosing(SparqlAdapter(parts)) as adapter:
            yield Elsewhere(CachingAdapter(adapter), lambda: len(endpoint.asked))
        return
    stand_in = WikidataStandIn(as_wikidata(triples.splitlines(keepends=True)))
    async with running(stand_in):
        options = OpenOptions(tmp_path, wikidata=stand_in.options())
        async with aclosing(await open_wikidata("", options, rates=Rates())) as wikidata:
            yield Elsewhere(CachingAdapter(wikidata), lambda: len(stand_in.asked(QUERY)))


async def observed(graph: KGAdapter, question: str, *entities: str) -> Reply:
    # As wide as usual, but asked for: so a small file is not looked at whole, of which Wikidata cannot be known.
    return await call(graph, "observe", question=question, entities=list(entities), hops=2, top_n=52)


def whole(summary: str) -> str:
    """Return what would be said had all of a class been looked at, which of Wikidata's are never."""
    return summary.replace("humans looked at", "humans")


@pytest.mark.parametrize(
    ("question", "entities"),
    [
        ("What is the career of Elder 3?", ["Q103"]),
        ("Whose father is Elder 4?", ["Q104"]),
        ("Who employed Elder 5?", ["Q105"]),
        ("Who is the employer of Anna Berg and Otto Lang?", ["Q1", "Q2"]),
        ("Where do Anna Berg and Ida Koch work, who is their employer?", ["Q1", "Q3"]),
    ],
)
async def test_the_same_is_said_by_one_request_a_hop_and_one_more(
    here: LocalAdapter, elsewhere: Elsewhere, question: str, entities: list[str]
) -> None:
    await elsewhere.learn()
    before = elsewhere.asked()
    theirs = await observed(elsewhere.graph, question, *entities)
    assert elsewhere.asked() - before <= 1 + 2
    mine = await observed(here, question, *entities)
    assert theirs.data["groups"] == mine.data["groups"]
    assert (whole(theirs.summary), theirs.data["knowledge"]) == (mine.summary, mine.data["knowledge"])


async def test_another_name_of_a_relation_counts_and_an_inverse_is_said_once(elsewhere: Elsewhere) -> None:
    await elsewhere.learn()
    career = rows((await observed(elsewhere.graph, "What is the career of Elder 3?", "Q103")).data["groups"])
    assert career[0][:2] == ["Q103", "P106"]
    assert len([row for row in career if row[0] == "Q103" and "Q203" in row]) == 1


async def test_what_several_lack_is_said_of_each_and_not_where_one_has_it(elsewhere: Elsewhere) -> None:
    await elsewhere.learn()
    both = await observed(elsewhere.graph, "Who is the employer of Anna Berg and Otto Lang?", "Q1", "Q2")
    assert whole(both.plain.summary).endswith(
        " Anna Berg has no employer here; of 51 humans 1 has one, so its absence proves nothing."
        " Otto Lang has no employer here; of 51 humans 1 has one, so its absence proves nothing."
    )
    assert both.data["knowledge"] == "unknown"
    one = await observed(elsewhere.graph, "Who is the employer of Anna Berg and Ida Koch?", "Q1", "Q3")
    assert (one.data["knowledge"], "has no" in one.plain.summary) == ("unknown", False)


async def test_what_is_not_known_yet_is_not_asked_for_and_nothing_is_said_of_it(elsewhere: Elsewhere) -> None:
    reply = await observed(elsewhere.graph, "Who employed Elder 5?", "Q105")
    assert elsewhere.asked() <= 1 + 2
    assert (reply.data["knowledge"], "has no" in reply.summary) == ("unknown", False)
    assert (await known_profile(elsewhere.graph)).classes == ()


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
    assert reply.data["knowledge"] == "unknown"


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
    kept = await call(poets, "memory-append", unhurried(data_folder=tmp_path), triples=[line])
    assert kept.plain.lines == ["Allen Ginsberg -[date of death]-> 1997-04-05"]


@pytest.mark.parametrize("question", ["Who is the child of John Lennon?", "What are the occupations of John Lennon?"])
async def test_twelve_occupations_do_not_hide_a_child(sample: LocalAdapter, question: str) -> None:
    reply = await call(sample, "observe", question=question, entities=["Q1203"])
    own = {row[1]: row for row in rows(reply.data["groups"]) if row[0] == "Q1203" and row[2] == "out"}
    assert own["P106"][3] == "15"
    assert own["P40"][3:] == ["1", own["P40"][4], "1", "Q311238"]
    assert len([line for line in reply.lines if line.startswith("John Lennon") and "| occupation" in line]) == 1
