"""Real SPARQL engines, started once for all tests of a process, with the sample in them."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from benchmarks.engines import fuseki, virtuoso
from benchmarks.engines.oxigraph import OxigraphEndpoint, running_oxigraph

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.sparql.store import statements
from kg_adapters.local.store import LocalStore
from kg_adapters.sparql.adapter import SparqlAdapter
from remote_graphs import ENGINES, SAMPLE_GRAPH, Engine


@pytest.fixture(scope="session")
def sample_triples(sample_files: LocalStore) -> bytes:
    """All that the sample says, as N-Triples."""
    return "".join(statements(sample_files.index)).encode()


@pytest.fixture(scope="session")
def oxigraph(tmp_path_factory: pytest.TempPathFactory, sample_triples: bytes) -> Iterator[OxigraphEndpoint]:
    """An endpoint over Oxigraph that keeps a log."""
    with running_oxigraph(tmp_path_factory.mktemp("oxigraph")) as endpoint:
        endpoint.load(SAMPLE_GRAPH, sample_triples)
        yield endpoint


@pytest.fixture(scope="session")
def oxigraph_engine(oxigraph: OxigraphEndpoint) -> Engine:
    """Oxigraph, as plain SPARQL 1.1."""
    return Engine("oxigraph", oxigraph)


@pytest.fixture(scope="session")
def virtuoso_engine(tmp_path_factory: pytest.TempPathFactory, sample_triples: bytes) -> Iterator[Engine]:
    """Virtuoso, set as such, with its full-text index."""
    _need(virtuoso.is_installed(), virtuoso.MISSING)
    with virtuoso.running_virtuoso(tmp_path_factory.mktemp("virtuoso")) as running:
        running.load(SAMPLE_GRAPH, sample_triples)
        running.index_texts()
        yield Engine("virtuoso", running, "virtuoso", "virtuoso")


@pytest.fixture(scope="session")
def fuseki_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Fuseki, set as such, with its full-text index, and without any graph: it would read the sample for too long."""
    _need(fuseki.is_installed(), fuseki.MISSING)
    with fuseki.running_fuseki(tmp_path_factory.mktemp("fuseki")) as running:
        yield Engine("fuseki", running, "fuseki", "lucene")


def _need(installed: bool, missing: str) -> None:
    if not installed:
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in ENGINES])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn; the tests over one run in one process, beside those over the other."""
    engine: object = request.getfixturevalue(f"{request.param}_engine")
    assert isinstance(engine, Engine)
    return engine


@pytest.fixture
async def sample(sample_files: LocalStore) -> AsyncIterator[LocalAdapter]:
    """The sample, read locally."""
    async with aclosing(LocalAdapter(sample_files)) as graph:
        yield graph


@pytest.fixture
async def remote_sample(engine: Engine, tmp_path: Path) -> AsyncIterator[SparqlAdapter]:
    """The sample, asked for over HTTP."""
    async with engine.opened(engine.sample, tmp_path) as graph:
        yield graph
