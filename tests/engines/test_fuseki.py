"""Apache Jena Fuseki finds names by its full-text index, jena-text."""

from pathlib import Path

import httpx2
import pytest

from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.queries import Queries
from query_shapes import every_query
from remote_graphs import ENGINE_S, Engine

# In the process in which the contract is kept over it.
pytestmark = [pytest.mark.xdist_group("engines"), pytest.mark.xdist_group("fuseki")]

ENTITY = "<http://www.wikidata.org/entity/"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


@pytest.fixture(scope="module")
def names(fuseki_engine: Engine, sample_triples: bytes) -> str:
    """The graph of all names in English that entities of the sample have."""
    lines = sample_triples.decode().splitlines()
    named = [line for line in lines if line.startswith(ENTITY) and f" {LABEL} " in line and line.endswith('"@en .')]
    return fuseki_engine.load_new("\n".join(named))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Tokyo", "Q1490"),
        ("Tokio", "Q1490"),
        ("Tkoyo", "Q1490"),
        ("Yakult Swallows", "Q1324392"),
        ("Yakult Swalows", "Q1324392"),
        ("OR AND NOT", None),
        ("Tokyo? (city) [1:2] ^~*", "Q1490"),
    ],
)
async def test_a_name_is_found_by_the_full_text_index(
    fuseki_engine: Engine, names: str, tmp_path: Path, text: str, first: str | None
) -> None:
    async with fuseki_engine.opened(names, tmp_path) as graph:
        found = await graph.search(text, limit=5)
    assert first is None or str(found[0].entity).endswith(f"/{first}"), found


def test_every_query_is_answered(fuseki_engine: Engine) -> None:
    graph = fuseki_engine.load_new("")
    for query in every_query(Queries.of(DIALECTS["fuseki"], Vocabulary())):
        asked = {"query": query, "default-graph-uri": graph}
        reply = httpx2.post(fuseki_engine.running.url, data=asked, timeout=ENGINE_S, trust_env=False)
        assert reply.status_code == 200, f"{query}: {reply.text}"


async def test_it_is_recognised_without_a_setting(fuseki_engine: Engine, names: str, tmp_path: Path) -> None:
    async with fuseki_engine.opened(names, tmp_path, dialect="auto", text_search="auto") as graph:
        found = graph.engine
    assert found is not None
    assert (found.dialect, found.text_search) == ("fuseki", "lucene")
