"""One job in a process of its own, so that its memory is its own: `python -m benchmarks.child JOB PATH …`.

Prints one line of JSON: how long the job took, what the process held at most, what it holds now and what the job added.
"""
# ruff: noqa: PLC0415 - a job imports its own library alone, since the memory of its process is measured

import asyncio
import gc
import json
import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Final

from benchmarks.sources import opened
from kg_adapters.requests import NeighborRequest

_STATUS: Final = Path("/proc/self/status")
_KIB_PER_MB: Final = 1_000_000 / 1_024


@dataclass(frozen=True, slots=True)
class Usage:
    """What one job took: seconds, those of the processor, and megabytes (10^6 bytes) of resident memory."""

    seconds: float
    processor_s: float
    peak_mb: float
    held_mb: float
    added_mb: float


def import_ours(source: str, target: str) -> Callable[[], object]:
    """Build a store with all its indexes."""
    from kg_adapters.local.building.build import build_store
    from kg_adapters.local.import_options import ImportOptions

    return lambda: build_store([Path(source)], Path(target), ImportOptions())


def import_bare(source: str, target: str) -> Callable[[], object]:
    """Build a store with all its indexes but SPARQL's."""
    from kg_adapters.local.building.build import build_store
    from kg_adapters.local.import_options import ImportOptions

    return lambda: build_store([Path(source)], Path(target), ImportOptions(sparql=False))


def import_cached(source: str, cache: str) -> Callable[[], object]:
    """Build the store that later runs find in a cache, or find it there."""
    from kg_adapters.local.cache import open_cached
    from kg_adapters.local.import_options import ImportOptions

    return lambda: open_cached([Path(source)], Path(cache), ImportOptions()).folder


def import_oxigraph(source: str, target: str) -> Callable[[], object]:
    """Bulk load on disk."""
    import pyoxigraph as ox

    def job() -> object:
        store = ox.Store(target)
        with opened(Path(source)) as file:
            store.bulk_load(file, format=ox.RdfFormat.N_TRIPLES)
        store.optimize()
        store.flush()
        return store

    return job


def open_ours(store: str, entity: str) -> Callable[[], object]:
    """Open a store and look up one entity."""
    from kg_adapters.local.adapter import LocalAdapter
    from kg_adapters.local.store import open_store
    from kg_adapters.terms import Iri

    def job() -> object:
        adapter = LocalAdapter(open_store(Path(store)))
        asyncio.run(adapter.neighbors(NeighborRequest((Iri(entity),))))
        return adapter

    return job


def open_oxigraph(store: str, entity: str) -> Callable[[], object]:
    """Open the same triples on disk and look up one entity."""
    import pyoxigraph as ox

    def job() -> object:
        opened = ox.Store.read_only(store)
        node = ox.NamedNode(entity)
        found = [*opened.quads_for_pattern(node, None, None), *opened.quads_for_pattern(None, None, node)]
        return opened, found

    return job


JOBS: Final[Mapping[str, Callable[[str, str], Callable[[], object]]]] = {
    "import": import_ours,
    "import-bare": import_bare,
    "cache": import_cached,
    "import-oxigraph": import_oxigraph,
    "open": open_ours,
    "open-oxigraph": open_oxigraph,
}


def main(name: str, *paths: str) -> None:
    """Run one job and print what it took."""
    job = JOBS[name](*paths)
    gc.collect()
    before = memory("VmRSS")
    started, worked = perf_counter(), process_time()
    kept = job()
    seconds, processor_s = perf_counter() - started, process_time() - worked
    held = memory("VmRSS")
    print(json.dumps(asdict(Usage(seconds, processor_s, memory("VmHWM"), held, held - before))))
    del kept


def memory(field: str) -> float:
    """Return a size of this process in megabytes; `ru_maxrss` would start from the parent's, but serves elsewhere."""
    if not _STATUS.is_file():
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1_000_000 if sys.platform == "darwin" else _KIB_PER_MB)
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) / _KIB_PER_MB


if __name__ == "__main__":
    main(*sys.argv[1:])
