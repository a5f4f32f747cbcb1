"""One job in a process of its own, so that its memory is its own: `python -m benchmarks.child JOB PATH …`.

Prints one line of JSON: what the job took and what the process holds; of `ask` jobs, what questions took as well.
"""
# ruff: noqa: PLC0415 - a job imports its own library alone, since the memory of its process is measured

import asyncio
import gc
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final, TypeAlias

Job: TypeAlias = Generator[Any]
"""Yields once its library is imported, then what it keeps once the job is done, then what else is to be known."""
Questions: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]
"""What a library is asked about one graph, by kind: entities, pairs of them, names, or questions with their entity."""

_STATUS: Final = Path("/proc/self/status")
_KIB_PER_MB: Final = 1_000_000 / 1_024


@dataclass(frozen=True, slots=True)
class Usage:
    """What one job took: seconds, those of the processor, and megabytes (10^6 bytes) of resident memory.

    `own_mb` leaves out what is only mapped from files; `medians` are the seconds of a question, by kind.
    """

    seconds: float
    processor_s: float
    peak_mb: float
    held_mb: float
    own_mb: float
    medians: Mapping[str, float] = field(default_factory=dict[str, float])


def run_job(name: str, *paths: str | Path) -> Usage:
    """Run one job in a process of its own.

    Raises:
        subprocess.CalledProcessError: It failed; its message is on standard error.
    """
    command = [sys.executable, "-m", "benchmarks.child", name, *map(str, paths)]
    return Usage(**json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))  # noqa: S603 - our own module


def import_ours(source: str, target: str, *, sparql: bool = True) -> Job:
    """Build a store with all its indexes."""
    from kg_adapters.importing.build import build_store
    from kg_adapters.local.import_options import ImportOptions

    yield None
    yield build_store([Path(source)], Path(target), ImportOptions(sparql=sparql))


def import_cached(source: str, cache: str) -> Job:
    """Build the store that later runs find in a cache, or find it there."""
    from kg_adapters.local.cache import open_cached
    from kg_adapters.local.import_options import ImportOptions

    yield None
    yield open_cached([Path(source)], Path(cache), ImportOptions()).folder


def import_oxigraph(source: str, target: str) -> Job:
    """Bulk load on disk."""
    import pyoxigraph as ox

    from benchmarks.peers import opened

    yield None
    store = ox.Store(target)
    with opened(Path(source)) as file:
        store.bulk_load(file, format=ox.RdfFormat.N_TRIPLES)
    store.optimize()
    store.flush()
    yield store


def open_ours(store: str, entity: str) -> Job:
    """Open a store and look up one entity."""
    from kg_adapters.local.adapter import LocalAdapter
    from kg_adapters.local.store import open_store
    from kg_adapters.requests import NeighborRequest
    from kg_adapters.terms import Iri

    yield None
    adapter = LocalAdapter(open_store(Path(store)))
    asyncio.run(adapter.neighbors(NeighborRequest((Iri(entity),))))
    yield adapter


def open_oxigraph(store: str, entity: str) -> Job:
    """Open the same triples on disk and look up one entity."""
    import pyoxigraph as ox

    yield None
    graph, node = ox.Store.read_only(store), ox.NamedNode(entity)
    yield graph, [*graph.quads_for_pattern(node, None, None), *graph.quads_for_pattern(None, None, node)]


def ask_ours(store: str, questions: str) -> Job:
    """Open a store and ask all questions."""
    from benchmarks.lookups import labelled
    from benchmarks.scale import medians_of
    from kg_adapters.local.adapter import LocalAdapter
    from kg_adapters.local.store import open_store

    yield None
    asked: Questions = json.loads(Path(questions).read_bytes())
    adapter = LocalAdapter(open_store(Path(store)))
    asyncio.run(labelled(adapter, asked["look-up"][0][0], 1))
    yield adapter
    yield asyncio.run(medians_of(adapter, asked))


def ask_peer(library: str, source: str, questions: str) -> Job:
    """Load a graph into another library and ask it what it can answer."""
    from benchmarks import peers
    from benchmarks.scale import medians_of

    yield None
    peer: peers.PeerGraph = getattr(peers, library)(Path(source))
    yield peer
    yield asyncio.run(medians_of(peer, json.loads(Path(questions).read_bytes())))


JOBS: Final[Mapping[str, Callable[..., Job]]] = {
    "import": import_ours,
    "import-bare": partial(import_ours, sparql=False),
    "cache": import_cached,
    "import-oxigraph": import_oxigraph,
    "open": open_ours,
    "open-oxigraph": open_oxigraph,
    "ask": ask_ours,
    "ask-Oxigraph": partial(ask_peer, "OxigraphPeer"),
    "ask-networkx": partial(ask_peer, "NetworkxPeer"),
}


def main(name: str, *paths: str) -> None:
    """Run one job and print what it took."""
    job = JOBS[name](*paths)
    next(job)
    gc.collect()
    started, worked = perf_counter(), process_time()
    kept = next(job)
    seconds, processor_s, held = perf_counter() - started, process_time() - worked, _memory("VmRSS")
    medians: Mapping[str, float] = next(job, dict[str, float]())
    print(json.dumps(asdict(Usage(seconds, processor_s, _memory("VmHWM"), held, _memory("RssAnon"), medians))))
    del kept


def _memory(field: str) -> float:
    """Return a size of this process in megabytes; `ru_maxrss` would start from the parent's, but serves elsewhere."""
    if not _STATUS.is_file():
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1_000_000 if sys.platform == "darwin" else _KIB_PER_MB)
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) / _KIB_PER_MB


if __name__ == "__main__":
    main(*sys.argv[1:])
