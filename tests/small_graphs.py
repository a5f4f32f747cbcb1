"""Small graphs: their indexes and stores, those of the papers' worked cases, and graphs without any extra ability."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import anyio
import pyoxigraph

from kg_adapters.caching import CachingAdapter
from kg_adapters.importing.build import build_store
from kg_adapters.index.builder import IndexBuilder
from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.labels import Vocabulary
from kg_adapters.local.cache import open_cached
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import LocalStore, open_store
from kg_adapters.models import GraphSchema, NeighborPage
from kg_adapters.profile import GraphProfile, unknown_profile
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Node
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
        with suppress(FileExistsError):  # Another process was first, and may be reading its file.
            source.hardlink_to(unfinished)
        unfinished.unlink()
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


class WithoutSets(CachingAdapter):
    """An adapter that computes no sets, remembers what it is asked, and can be made to wait."""

    def __init__(self, graph: KGAdapter) -> None:
        super().__init__(graph)
        del self.compute
        self.requests: list[NeighborRequest] = []
        self.waiting: frozenset[Node] = frozenset()
        self.reached = anyio.Event()

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        self.requests.append(request)
        if self.waiting.intersection(request.entities):
            self.reached.set()
            await anyio.sleep_forever()
        return await super().neighbors(request)


class Unlisted(CachingAdapter):
    """A graph of which neither the definition nor the profile knows any relation."""

    async def schema(self) -> GraphSchema:
        return replace(await super().schema(), relations=(), features=(), complete=False)

    async def profile(self) -> GraphProfile:
        return unknown_profile()


class Sketchy(WithoutSets):
    """A graph whose definition lists nothing, and that computes no sets."""

    async def schema(self) -> GraphSchema:
        return replace(await super().schema(), relations=(), features=(), complete=False)


PREFIXES = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""

TOKYO = f"""{PREFIXES}
wd:Q1490 rdfs:label "Tokyo"@en ; wdt:P31 wd:Q50337 ; wdt:P36 wd:Q179645 ; wdt:P1376 wd:Q17 .
wd:Q50337 rdfs:label "prefecture of Japan"@en .
wd:Q179645 rdfs:label "Shinjuku"@en .
wd:Q17 rdfs:label "Japan"@en .
wdt:P31 rdfs:label "instance of"@en .
wdt:P36 rdfs:label "capital"@en .
wdt:P1376 rdfs:label "capital of"@en .
"""

PREFECTURE = f"""{PREFIXES}
wd:Q1490 rdfs:label "Tokyo"@en ; wdt:P31 wd:Q50337 ; wdt:P36 wd:Q179645 .
wd:Q50337 rdfs:label "prefecture of Japan"@en .
wd:Q179645 rdfs:label "Shinjuku"@en .
wd:Q17 rdfs:label "Japan"@en ; wdt:P36 wd:Q1490 .
wdt:P31 rdfs:label "instance of"@en .
wdt:P36 rdfs:label "capital"@en .
"""

NOVELS = f"""{PREFIXES}
wd:Q476871 rdfs:label "The Call of the Wild"@en ; wdt:P50 wd:Q45765 ;
    wdt:P840 wd:Q2009, wd:Q16, wd:Q30, wd:Q797 .
wd:Q465360 rdfs:label "White Fang"@en ; wdt:P50 wd:Q45765 ; wdt:P840 wd:Q2009, wd:Q16 .
wd:Q45765 rdfs:label "Jack London"@en .
wd:Q2009 rdfs:label "Yukon"@en .
wd:Q16 rdfs:label "Canada"@en .
wd:Q30 rdfs:label "United States of America"@en .
wd:Q797 rdfs:label "Alaska"@en .
wdt:P50 rdfs:label "author"@en .
wdt:P840 rdfs:label "narrative location"@en .
"""

GOETHE = f"""{PREFIXES}
wd:Q5879 rdfs:label "Johann Wolfgang von Goethe"@en ; wdt:P451 wd:Q1 ; wdt:P19 wd:Q1794 .
wd:Q1 rdfs:label "Lili Schönemann"@en ; wdt:P19 wd:Q3042 .
wd:Q1794 rdfs:label "Frankfurt"@en .
wd:Q3042 rdfs:label "Offenbach am Main"@en .
wdt:P451 rdfs:label "unmarried partner"@en .
wdt:P19 rdfs:label "place of birth"@en .
"""


def write_story(folder: Path, turtle: str) -> Path:
    """Write a graph as Turtle and return its file."""
    path = folder / "story.ttl"
    path.write_text(turtle, encoding="utf-8")
    return path
