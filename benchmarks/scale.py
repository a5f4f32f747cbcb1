"""Graphs of a million statements to a hundred million: what each takes to import, to hold and to ask, beside peers."""

import json
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.child import Questions, Usage, run_job
from benchmarks.figures import TIMES, Figure, Line, Section, Target, beside, race
from benchmarks.graphs import Bench, Pair, copies
from benchmarks.lookups import HOPS, HUB_PAGE, PAGE, labelled
from benchmarks.observe import observed, questions_of
from benchmarks.peers import PeerGraph
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import INDEX_FOLDER, open_store
from kg_adapters.models import PathRequest
from kg_adapters.terms import Iri
from kg_server.observation.scoring import SpellingScorer

SIZES: Final = (1, 4, 16)
LARGE: Final = 80
# How many copies of the benchmark graph a library can hold in the memory of a small machine, in reasonable time.
_FOLLOWS: Final[Mapping[str, int]] = {"Oxigraph": 16, "networkx": 4}
_IMPORT_S: Final[Mapping[int, float]] = {16: 120, LARGE: 480}
_IMPORT_MB: Final[Mapping[int, float]] = {16: 1_000, LARGE: 4_000}
_GROWTH: Final[Mapping[str, float]] = {"look-up": 1.2, "hub page": 1.2, "paths": 1.2, "Retrieve": 1.5}
_MB: Final = 1_000_000


async def measure_scale(bench: Bench, sizes: Sequence[int]) -> Section:
    """Import and ask graphs of several sizes, each so many joined copies of the benchmark graph."""
    lines: list[Line] = []
    first: tuple[str, Usage] | None = None
    for times in sizes:
        bench.tell(f"Measuring {times} {TIMES} the graph …")
        imported, ours, theirs, disk_mb, statements = _measured(bench, times)
        size = f"{statements / 1e6:.1f} M"
        lines += _costs(size, times, imported, ours, theirs)
        lines.append(Line(f"{size}: on disk", Figure(disk_mb, "MB")))
        lines += _questions_lines(size, ours, theirs, first)
        first = first or (size, ours)
    notes = (
        "Imports are without SPARQL. A server's memory is its own, beside the files that it maps.",
        "The peers hold the graph in memory, and load it at every start.",
    )
    return Section("scale", "Graphs of growing size", lines, notes)


def _measured(bench: Bench, times: int) -> tuple[Usage, Usage, dict[str, Usage], float, int]:
    """Return what importing and asking took, ours and others', the megabytes on disk and the statements."""
    source = copies(bench.graph, times, bench.cache)
    with TemporaryDirectory(dir=bench.cache, prefix="sized-") as scratch:
        store, asked = Path(scratch, "store"), Path(scratch, "questions.json")
        imported = run_job("import-bare", source, store)
        # Any use of the index brings its files into the system's cache sooner or later.
        for file in (store / INDEX_FOLDER).iterdir():
            with file.open("rb") as pages, Path(os.devnull).open("wb") as nothing:
                shutil.copyfileobj(pages, nothing)
        disk_mb = sum(file.stat().st_size for file in store.rglob("*") if file.is_file()) / _MB
        asked.write_text(json.dumps(_questions(bench)), encoding="utf-8")
        ours = run_job("ask", store, asked)
        theirs = {name: run_job(f"ask-{name}", source, asked) for name in _peers(bench, times)}
        counts = open_store(store).info.counts
    return imported, ours, theirs, disk_mb, counts.triples + counts.features


async def medians_of(graph: LocalAdapter | PeerGraph, asked: Questions) -> dict[str, float]:
    """Return the median seconds of each kind of question that a graph can be asked."""
    asks = _our_asks(graph) if isinstance(graph, LocalAdapter) else _peer_asks(graph)
    return {
        kind: (await race({kind: ask}, [(each[0], each[1]) for each in asked[kind]]))[kind].median
        for kind, ask in asks.items()
        if asked[kind]
    }


def _our_asks(graph: LocalAdapter) -> Mapping[str, Callable[[Pair], Awaitable[object]]]:
    async def page(limit: int, case: Pair) -> object:
        return await labelled(graph, case[0], limit)

    async def paths(case: Pair) -> object:
        return await graph.paths(PathRequest(Iri(case[0]), Iri(case[1]), max_hops=HOPS))

    async def search(case: Pair) -> object:
        return await graph.search(case[0], limit=5)

    return {
        "look-up": partial(page, PAGE),
        "hub page": partial(page, HUB_PAGE),
        "paths": paths,
        "paths, hub-adjacent": paths,
        "Retrieve": search,
        "Retrieve, typo": search,
        "observe by letters": partial(observed, graph, SpellingScorer()),
    }


def _peer_asks(peer: PeerGraph) -> Mapping[str, Callable[[Pair], Awaitable[object]]]:
    async def page(limit: int, case: Pair) -> object:
        return peer.rows(case[0], limit)

    async def paths(case: Pair) -> object:
        return peer.paths(*case, HOPS)

    return {"look-up": partial(page, PAGE), "hub page": partial(page, HUB_PAGE), "paths": paths}


def _questions(bench: Bench) -> Questions:
    """Return the same questions for every size: the first copy keeps its ids and names."""
    work = bench.work
    kinds = {"look-up": work.low, "hub page": work.hubs, "Retrieve": work.names, "Retrieve, typo": work.typos}
    return {
        **{kind: [(text, "") for text in texts] for kind, texts in kinds.items()},
        "paths": work.random_pairs,
        "paths, hub-adjacent": work.hub_adjacent,
        "observe by letters": questions_of(bench),
    }


def _peers(bench: Bench, times: int) -> list[str]:
    return [name for name, most in _FOLLOWS.items() if times <= most] if bench.with_peers else []


def _costs(size: str, times: int, imported: Usage, ours: Usage, theirs: Mapping[str, Usage]) -> list[Line]:
    seconds, peak = Figure(imported.seconds), Figure(imported.peak_mb, "MB")
    loads = beside(seconds, {name: Figure(peer.seconds) for name, peer in theirs.items()})
    peaks = beside(peak, {name: Figure(peer.peak_mb, "MB") for name, peer in theirs.items()})
    return [
        Line(f"{size}: import", seconds, Target(_IMPORT_S[times]) if times in _IMPORT_S else None, loads),
        Line(f"{size}: import, processor time", Figure(imported.processor_s)),
        Line(f"{size}: import, peak memory", peak, Target(_IMPORT_MB[times]) if times in _IMPORT_MB else None, peaks),
        Line(f"{size}: open and look up", Figure(ours.seconds), Target(0.1)),
        Line(f"{size}: memory of a server", Figure(ours.own_mb, "MB")),
    ]


def _questions_lines(
    size: str, ours: Usage, theirs: Mapping[str, Usage], first: tuple[str, Usage] | None
) -> list[Line]:
    """Return a line for each kind of question, beside the smallest graph and the peers."""
    lines: list[Line] = []
    for kind, seconds in ours.medians.items():
        others = {name: Figure(peer.medians[kind]) for name, peer in theirs.items() if kind in peer.medians}
        smallest = {} if first is None else {first[0]: Figure(first[1].medians[kind])}
        target = Target(_GROWTH[kind], first[0]) if first is not None and kind in _GROWTH else None
        lines.append(Line(f"{size}: {kind}", Figure(seconds), target, beside(Figure(seconds), {**smallest, **others})))
    return lines
