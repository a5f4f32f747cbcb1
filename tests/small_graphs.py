"""Indexes and stores of small graphs."""

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pyoxigraph

from kg_adapters.importing.build import build_store
from kg_adapters.index.builder import IndexBuilder
from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.labels import Vocabulary
from kg_adapters.local.cache import open_cached
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import LocalStore, open_store
from kg_adapters.testing import ntriples

SHARED_STORES = "SHARED_STORES"
"""The variable that names the folder of stores that tests share."""


def index_of(statements: Iterable[str], vocabulary: Vocabulary | None = None) -> GraphIndex:
    """Return the index of a graph in memory, written in the notation of `kg_adapters.testing`."""
    return _index(ntriples(statements), vocabulary or Vocabulary())


def store_of(folder: Path, triples: str) -> LocalStore:
    """Import an N-Triples text into a store in an empty folder."""
    source = folder / "graph.nt"
    source.write_text(triples, encoding="utf-8")
    build_store([source], folder / "store", ImportOptions())
    return open_store(folder / "store")


@cache
def shared_store(text: str, name: str = "test", *, form: str = "ttl", sparql: bool = True) -> LocalStore:
    """Return the store of a graph, given as Turtle or in another form, imported once; no test may change it."""
    folder = Path(os.environ[SHARED_STORES])
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.{form}"
    if not source.exists():
        unfinished = source.with_suffix(f".{os.getpid()}")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.rename(source)
    return open_cached([source], folder, ImportOptions(name=name, sparql=sparql))


def _index(triples: str, vocabulary: Vocabulary) -> GraphIndex:
    builder = IndexBuilder(vocabulary)
    for quad in pyoxigraph.parse(triples, format=pyoxigraph.RdfFormat.N_TRIPLES):
        head = str(quad.subject) if isinstance(quad.subject, pyoxigraph.BlankNode) else quad.subject.value
        match quad.object:
            case pyoxigraph.Literal() as text:
                builder.add_feature(head, quad.predicate.value, text.value, text.datatype.value, text.language)
            case pyoxigraph.BlankNode() as tail:
                builder.add_edge(head, quad.predicate.value, str(tail))
            case pyoxigraph.NamedNode() as tail:
                builder.add_edge(head, quad.predicate.value, tail.value)
            case _:
                raise TypeError(f"{quad} is no statement of RDF 1.1")
    return builder.finish()
