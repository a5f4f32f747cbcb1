"""The graphs that are measured: the benchmark graph, the sample, and ten of a kind joined."""

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyoxigraph as ox

from benchmarks.child import Usage
from benchmarks.processes import run_job
from benchmarks.sources import opened
from kg_adapters.local.cache import open_cached, open_sample
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.index import EdgeTable, GraphIndex
from kg_adapters.local.store import INDEX_FOLDER, open_store

BENCHMARK_GRAPH: Final = Path(__file__).parents[2] / "shared" / "data" / "wikidata-1m.nt.gz"

_ENTITY: Final = re.compile(rb"(?<=entity/Q)\d+")
_LABEL_END: Final = re.compile(rb'(?="@[\w-]+ \.\s*$)')
_JOINT: Final = b"<http://www.wikidata.org/entity/Q%d> <http://www.wikidata.org/prop/direct/P460> "
_JOINT_EVERY: Final = 1_000
_SHIFT: Final = 10**9
_CHUNK: Final = 2**20


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph as the file that everybody reads, and as our store of it.

    Args:
        name: What people call it.
        source: The file.
        store: The store.
        built: What its import took, where it was imported just now.
    """

    name: str
    source: Path
    store: Path
    built: Usage | None = None


def open_source(source: Path, cache: Path) -> Graph:
    """Return the graph of an RDF file, imported in an earlier run or now, in a process of its own that is measured."""
    before = set(cache.iterdir()) if cache.is_dir() else set[Path]()
    usage = run_job(("cache", str(source), str(cache)))
    store = open_cached([source], cache, ImportOptions()).folder
    return Graph(source.name, source, store, None if store in before else usage)


def bundled_sample(cache: Path) -> Graph:
    """Return the sample that ships with the package, written out once as N-Triples for those who read files."""
    shipped = open_sample(cache).folder
    source = cache / f"{shipped.name}.nt"
    if not source.is_file():
        unfinished = source.with_suffix(".part")
        with unfinished.open("wb") as file:
            ox.serialize(_triples(open_store(shipped).index), file, format=ox.RdfFormat.N_TRIPLES)
        unfinished.rename(source)
    return Graph("the bundled sample", source, open_cached([source], cache, ImportOptions()).folder)


def copies(graph: Graph, times: int, cache: Path) -> Path:
    """Return a file of so many copies of a graph, written in an earlier run or now.

    A copy's entities have other numbers and labels; every thousandth is joined to itself in the next copy. The first
    copy keeps its ids, so that the same questions can be put to both graphs.
    """
    if times == 1:
        return graph.source
    source = cache / f"{graph.store.name}-x{times}.nt.gz"
    if not source.is_file():
        unfinished = source.with_suffix(".part")
        with gzip.open(unfinished, "wb", compresslevel=1) as file:
            for copy in range(times):
                with opened(graph.source) as lines:
                    file.writelines(_shifted(lines, copy, last=copy == times - 1))
        unfinished.rename(source)
    return source


def read_through(store: Path) -> None:
    """Bring the files of a store's index into the system's cache, where any use of it brings them sooner or later."""
    for file in sorted((store / INDEX_FOLDER).iterdir()):
        with file.open("rb", buffering=0) as pages:
            while pages.read(_CHUNK):
                pass


def _shifted(lines: Iterator[bytes], copy: int, *, last: bool) -> Iterator[bytes]:
    joined: set[int] = set()
    for line in lines:
        if copy == 0:
            yield line
        else:
            moved = _ENTITY.sub(lambda found: b"%d" % (int(found.group()) + copy * _SHIFT), line)
            yield _LABEL_END.sub(b" %d" % copy, moved, count=1)
        head = _ENTITY.search(line)
        number = 0 if head is None else int(head.group())
        if number % _JOINT_EVERY == 1 and number not in joined and not last:
            joined.add(number)
            here, there = (number + place * _SHIFT for place in (copy, copy + 1))
            yield _JOINT % here + b"<http://www.wikidata.org/entity/Q%d> .\n" % there


def _triples(index: GraphIndex) -> Iterator[ox.Triple]:
    relations = [ox.NamedNode(index.relations[number]) for number in range(len(index.relations))]
    for node in range(len(index.nodes)):
        head = ox.NamedNode(index.nodes[node])
        for relation, tail in _edges(index.out, node):
            yield ox.Triple(head, relations[relation], ox.NamedNode(index.nodes[tail]))
        for row in range(int(index.features.starts[node]), int(index.features.starts[node + 1])):
            language = int(index.features.languages[row])
            text = index.features.values[row]
            literal = (
                ox.Literal(text, datatype=ox.NamedNode(index.datatypes[int(index.features.datatypes[row])]))
                if language < 0
                else ox.Literal(text, language=index.languages[language])
            )
            yield ox.Triple(head, relations[int(index.features.relations[row])], literal)


def _edges(table: EdgeTable, node: int) -> Iterator[tuple[int, int]]:
    for group in range(int(table.groups[node]), int(table.groups[node + 1])):
        for place in range(int(table.starts[group]), int(table.starts[group + 1])):
            yield int(table.relations[group]), int(table.neighbors[place])
