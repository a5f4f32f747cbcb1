"""Apache Jena Fuseki finds names by its full-text index, jena-text."""

from pathlib import Path

import pytest

from remote_graphs import Engine

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
