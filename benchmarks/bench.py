"""What every section needs: the graph, our adapter over it, the questions, and the peers once somebody asks."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from time import perf_counter

from rich.console import Console

from benchmarks.graphs import Graph
from benchmarks.peers.answers import PeerGraph
from benchmarks.peers.networkx_graph import NetworkxPeer
from benchmarks.peers.oxigraph import OxigraphPeer
from benchmarks.peers.rdflib_graph import RdflibPeer
from benchmarks.workload import Workload, choose_workload
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import LocalStore, open_store


class Bench:
    """One run over one graph.

    Args:
        graph: What is measured.
        cache: Where a section may keep what is slow to make.
        console: Who is told what is going on.
        size: How many questions of each kind are asked.
        repeats: How often a process is started.
        with_peers: Whether other libraries take part; `loading` says how many seconds each took to load the graph.
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
        return open_store(self.graph.store)

    @cached_property
    def adapter(self) -> LocalAdapter:
        """Our adapter over the store."""
        return LocalAdapter(self.store)

    def fresh_adapter(self) -> LocalAdapter:
        """Return an adapter that has not been asked anything yet and so remembers no terms."""
        return LocalAdapter(open_store(self.graph.store))

    @cached_property
    def work(self) -> Workload:
        """The questions."""
        return choose_workload(self.store.index, self.size)

    @cached_property
    def peers(self) -> Sequence[PeerGraph]:
        """The other libraries, each with the whole graph in memory."""
        if not self.with_peers:
            return ()
        peers: list[PeerGraph] = []
        for peer in (OxigraphPeer, RdflibPeer, NetworkxPeer):
            self.tell(f"Loading the graph into {peer.name} …")
            started = perf_counter()
            peers.append(peer(self.graph.source))
            self.loading[peer.name] = perf_counter() - started
        return peers

    def tell(self, text: str) -> None:
        """Say what is going on."""
        self._console.print(text, style="dim", highlight=False, markup=False)
