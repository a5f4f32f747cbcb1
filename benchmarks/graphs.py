"""The graphs that are measured, and what is asked about them, the same in every run."""

import gzip
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from pathlib import Path
from time import perf_counter
from typing import Final, TypeAlias

import numpy as np
from rich.console import Console

from benchmarks.child import Usage, run_job
from benchmarks.peers import NetworkxPeer, OxigraphPeer, PeerGraph, opened
from kg_adapters.index.graph_index import GraphIndex, Longs
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_cached, open_sample
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.sparql.store import statements
from kg_adapters.local.store import LocalStore, open_store, verify_index

Pair: TypeAlias = tuple[str, str]

BENCHMARK_GRAPH: Final = Path(__file__).parents[2] / "shared" / "data" / "wikidata-1m.nt.gz"
LOW_DEGREE: Final = 20
HUB_DEGREE: Final = 5_000
_FEWEST_HUBS: Final = 4
_MOST_HUBS: Final = 20
_MADE_UP: Final = "Wikidata item "
_ENTITY: Final = re.compile(rb"(?<=entity/Q)\d+")
_LABEL_END: Final = re.compile(rb'(?="@[\w-]+ \.\s*$)')
_JOINT: Final = b"<http://www.wikidata.org/entity/Q%d> <http://www.wikidata.org/prop/direct/P460> "
_JOINT_EVERY: Final = 1_000
_SHIFT: Final = 10**9


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph: its name, the file that all libraries read, our store of it, and the cost of an import just now."""

    name: str
    source: Path
    store: Path
    built: Usage | None = None


class Bench:
    """One run over one graph.

    Args:
        graph: What is measured.
        cache: Where a section may keep what is slow to make.
        console: Where progress is printed.
        size: How many questions of each kind are asked.
        repeats: How often a process is started.
        with_peers: Whether other libraries take part; `loading` holds how many seconds each took to load the graph.
    """

    def __init__(
        self, graph: Graph, *, cache: Path, console: Console, size: int, repeats: int, with_peers: bool
    ) -> None:
        self.graph = graph
        self.cache = cache
        self.size = size
        self.repeats = repeats
        self.with_peers = with_peers
        self.loading: dict[str, float] = {}
        self._console = console

    @cached_property
    def store(self) -> LocalStore:
        """Our store of the graph, open."""
        return self._opened()

    @cached_property
    def adapter(self) -> LocalAdapter:
        """Our adapter over the store."""
        return LocalAdapter(self.store)

    def fresh_adapter(self) -> LocalAdapter:
        """Return an adapter with empty caches."""
        return LocalAdapter(self._opened())

    def _opened(self) -> LocalStore:
        """Open the store as it is once everything was read: a block is verified when it is first read."""
        store = open_store(self.graph.store)
        verify_index(store)
        return store

    @cached_property
    def work(self) -> "Workload":
        """The questions."""
        return choose_workload(self.store.index, self.size)

    @cached_property
    def peers(self) -> Sequence[PeerGraph]:
        """The other libraries, each with the whole graph in memory."""
        peers: list[PeerGraph] = []
        for peer in (OxigraphPeer, NetworkxPeer) if self.with_peers else ():
            self.tell(f"Loading the graph into {peer.name} …")
            started = perf_counter()
            peers.append(peer(self.graph.source))
            self.loading[peer.name] = perf_counter() - started
        return peers

    def tell(self, text: str) -> None:
        """Print a line of progress."""
        self._console.print(text, style="dim", highlight=False, markup=False)


@dataclass(frozen=True, slots=True)
class Workload:
    """The questions for one graph; entities are IRIs.

    Args:
        low: Entities with 1 to 20 neighbours.
        hubs: Entities with 5,000 neighbours or more, or the four largest of a small graph; the largest first.
        random_pairs: Two of any entities that have neighbours.
        hub_adjacent: Two low-degree neighbours of one hub.
        hub_pairs: Two hubs.
        names: Labels of entities, without the made-up ones.
        typos: The same with two neighbouring letters exchanged.
    """

    low: tuple[str, ...]
    hubs: tuple[str, ...]
    random_pairs: tuple[Pair, ...]
    hub_adjacent: tuple[Pair, ...]
    hub_pairs: tuple[Pair, ...]
    names: tuple[str, ...]
    typos: tuple[str, ...]


def choose_workload(index: GraphIndex, size: int) -> Workload:
    """Choose up to `size` questions of each kind."""
    dice = random.Random(20)  # noqa: S311 - the same choice every time is the point
    degrees: Longs = np.diff(index.links.starts)
    low = _pick(dice, np.flatnonzero((degrees > 0) & (degrees <= LOW_DEGREE)), size)
    order: list[int] = np.argsort(-degrees, kind="stable")[:_MOST_HUBS].tolist()
    hubs = [node for rank, node in enumerate(order) if rank < _FEWEST_HUBS or degrees[node] >= HUB_DEGREE]
    linked = np.flatnonzero(degrees > 0)
    pairs = zip(_pick(dice, linked, size), _pick(dice, linked, size), strict=True)
    adjacent: list[tuple[int, int]] = []
    hub_pairs = [*combinations(hubs, 2)]
    labelled = _pick(dice, np.flatnonzero(index.labels >= 0), len(index.nodes))
    for turn in range(size):
        hub = hubs[turn % len(hubs)]
        around = index.links.neighbors[index.links.starts[hub] : index.links.starts[hub + 1]]
        first, second = dice.sample(around[degrees[around] <= LOW_DEGREE].tolist(), 2)
        adjacent.append((first, second))
    labels = (index.features.values[int(index.labels[node])] for node in labelled)
    names = tuple(islice((name for name in labels if len(name) >= 6 and not name.startswith(_MADE_UP)), size))
    return Workload(
        low=tuple(index.nodes[node] for node in low),
        hubs=tuple(index.nodes[node] for node in hubs),
        random_pairs=_keys(index, [(a, b) for a, b in pairs if a != b]),
        hub_adjacent=_keys(index, adjacent),
        hub_pairs=_keys(index, dice.sample(hub_pairs, min(size, len(hub_pairs)))),
        names=names,
        typos=tuple(_mistyped(dice, name) for name in names),
    )


def open_source(source: Path, cache: Path) -> Graph:
    """Return the graph of an RDF file, imported by an earlier run or now, in a process of its own that is measured."""
    before = set(cache.iterdir()) if cache.is_dir() else set[Path]()
    usage = run_job("cache", source, cache)
    store = open_cached([source], cache, ImportOptions()).folder
    return Graph(source.name, source, store, None if store in before else usage)


def bundled_sample(cache: Path) -> Graph:
    """Return the sample that ships with the package, written once as N-Triples for those who read files."""
    shipped = open_sample(cache)
    source = cache / f"{shipped.folder.name}.nt"
    if not source.is_file():
        unfinished = source.with_suffix(".part")
        unfinished.write_text("".join(statements(shipped.index)), encoding="utf-8")
        unfinished.rename(source)
    return Graph("the bundled sample", source, open_cached([source], cache, ImportOptions()).folder)


def copies(graph: Graph, times: int, cache: Path) -> Path:
    """Return a file of so many copies of a graph, written by an earlier run or now.

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


def _mistyped(dice: random.Random, name: str) -> str:
    place = dice.randrange(1, len(name) - 2)
    return name[:place] + name[place + 1] + name[place] + name[place + 2 :]


def _pick(dice: random.Random, nodes: Longs, size: int) -> list[int]:
    choices: list[int] = nodes.tolist()
    return dice.sample(choices, min(size, len(choices)))


def _keys(index: GraphIndex, pairs: Sequence[tuple[int, int]]) -> tuple[Pair, ...]:
    return tuple((index.nodes[a], index.nodes[b]) for a, b in pairs)
