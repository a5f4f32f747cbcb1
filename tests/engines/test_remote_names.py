"""Behind a real engine, and at Wikidata's services, a name is judged as it is at hand, however it is written."""

import os
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from generated_names import Asked, generated_names, mistaken
from kg_adapters.http.pacing import Rates
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.sparql.store import statements
from kg_adapters.local.store import LocalStore
from kg_adapters.open_options import OpenOptions
from kg_adapters.prefixes import WIKIDATA
from kg_adapters.protocol import KGAdapter
from kg_adapters.sparql.adapter import SparqlAdapter, SparqlParts
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql.search import EndpointSearch
from kg_adapters.wikidata.opening import open_wikidata
from kg_server.naming.entities import Identity, identify
from kg_server.naming.misspelling import words_of
from remote_graphs import ENGINE_S, Engine
from wikidata_stand_in import WikidataStandIn, as_wikidata, running

pytestmark = pytest.mark.xdist_group("engines")

SIZE, EVERY = 550, 1 if os.environ.get("ALL_NAMES") else 8
LEAST_RIGHT, FORGIVEN_FROM = 0.98, 4
SURE = {"exact", "alias", "a word missing", "absent", "another number"}


@pytest.fixture(scope="module")
def asked(sample_files: LocalStore) -> Sequence[Asked]:
    """Names as people write and miswrite them; `ALL_NAMES=1` takes all of the 550."""
    return generated_names(sample_files.index, SIZE)[::EVERY]


async def judged_wrongly(graph: KGAdapter, asked: Sequence[Asked]) -> list[tuple[Asked, Identity]]:
    """Return the names on which the verdict is wrong, asked for one by one: a scan takes all that a machine has."""
    return [each for name in asked for each in await mistaken(graph, [name])]


async def test_generated_names_are_judged_rightly_behind_an_engine(engine: Engine, asked: Sequence[Asked]) -> None:
    queries = Queries.of(DIALECTS[engine.dialect], Vocabulary())
    endpoint = SparqlEndpoint(engine.options(engine.sample))
    search = EndpointSearch(
        QueryAsker(endpoint, queries.dialect, ENGINE_S), queries.names, engine.text_search, scan_s=ENGINE_S
    )
    parts = SparqlParts(engine.name, endpoint, queries, WIKIDATA, search=search, timeout_s=ENGINE_S)
    async with aclosing(SparqlAdapter(parts)) as graph:
        wrong = await judged_wrongly(graph, asked)
    assert [each.text for each, _ in wrong if each.way in SURE] == []
    assert [each.text for each, found in wrong if found.nodes] == []
    assert 1 - len(wrong) / len(asked) >= LEAST_RIGHT, [(each.way, each.text, found.match) for each, found in wrong]


async def test_what_wikidata_can_find_is_judged_rightly_and_of_all_else_nothing_is_guessed(
    sample_files: LocalStore, sample: LocalAdapter, asked: Sequence[Asked], tmp_path: Path
) -> None:
    here = await identify(sample, [each.text for each in asked])
    forgiven = {each.text for each, verdict in zip(asked, here, strict=True) if is_forgiven(verdict)}
    stand_in = WikidataStandIn(as_wikidata(statements(sample_files.index)))
    async with running(stand_in):
        options = OpenOptions(tmp_path, wikidata=stand_in.options(timeout_s=ENGINE_S))
        async with aclosing(await open_wikidata("", options, rates=Rates())) as graph:
            wrong = await judged_wrongly(graph, asked)
    assert [each.text for each, _ in wrong if each.way in SURE or each.text in forgiven] == []
    assert [each.text for each, found in wrong if found.nodes] == []
    slips = [each for each in asked if each.way in {"one slip", "two slips"}]
    assert sum(each.text in forgiven for each in slips) >= len(slips) / 2


def is_forgiven(verdict: Identity) -> bool:
    """Say whether Wikidata reads a text so: its search forgives one slip a word, not in its first two letters."""
    if verdict.match != "close":
        return False
    text, name = words_of(verdict.text), words_of(verdict.named[0].matched_text)
    return len(text) == len(name) and all(
        ours == theirs or (len(ours) >= FORGIVEN_FROM and ours[:2] == theirs[:2])
        for ours, theirs in zip(text, name, strict=True)
    )
