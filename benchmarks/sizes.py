"""Graphs of a million statements to a hundred million: what each takes to import, to hold and to ask, beside peers."""

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.bench import Bench
from benchmarks.child import Usage
from benchmarks.figures import TIMES, Base, Figure, Line, Peer, Section, Target
from benchmarks.graphs import copies, read_through
from benchmarks.log_log import Panel, as_svg
from benchmarks.observe import questions_of
from benchmarks.processes import run_job
from benchmarks.sized_child import ANSWERED, QUESTIONS, Answered, Questions
from kg_adapters.local.store import open_store

SIZES: Final = (1, 4, 16)
LARGE: Final = 80
# How many copies of the benchmark graph a library can hold in the memory of a small machine, in reasonable time.
_FOLLOWS: Final[Mapping[str, int]] = {"KGLite": 16, "Oxigraph": 16, "networkx": 4, "rdflib": 1}
_IMPORT_S: Final[Mapping[int, float]] = {1: 10, 16: 240, LARGE: 1_500}
_IMPORT_MB: Final[Mapping[int, float]] = {1: 1_000, 16: 2_500, LARGE: 4_000}
_SERVER_MB: Final = 300.0
_SLOWER: Final = 1.5
_STEADY: Final = frozenset({"look-up", "hub page", "paths", "paths, hub-adjacent"})
_MB: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class _Sized:
    """What one graph took, ours and others by name."""

    statements: int
    imported: Usage
    disk_mb: float
    ours: Answered
    theirs: Mapping[str, Answered] = field(default_factory=dict[str, Answered])


async def measure_sizes(bench: Bench, sizes: Sequence[int], picture: Path) -> Section:
    """Import and ask graphs of several sizes, and draw how the figures grow.

    Args:
        bench: The graph to begin with.
        sizes: How many copies of it, joined, to measure.
        picture: The SVG file to write.
    """
    measured: list[_Sized] = []
    for times in sizes:
        bench.tell(f"Measuring {times} {TIMES} the graph …")
        measured.append(_measured(bench, copies(bench.graph, times, bench.cache), times))
    _draw(measured, picture)
    lines = [line for times, each in zip(sizes, measured, strict=True) for line in _lines(times, each, measured[0])]
    notes = (
        "Imports are without SPARQL. A server's memory is its own, beside the files that it maps.",
        "The peers hold the graph in memory, and load it at every start. KGLite keeps Wikidata's edges alone.",
        f"Picture: {picture}",
    )
    return Section("scale", "Graphs of growing size", tuple(lines), notes)


def _draw(measured: Sequence[_Sized], picture: Path) -> None:
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(as_svg("Size of the graph", "statements", _panels(measured)), encoding="utf-8")


def _measured(bench: Bench, source: Path, times: int) -> _Sized:
    with TemporaryDirectory(dir=bench.cache, prefix="sized-") as scratch:
        store, asked = Path(scratch, "store"), Path(scratch, "questions.json")
        imported = run_job(("import-bare", str(source), str(store)))
        read_through(store)
        asked.write_bytes(_questions(bench))
        disk_mb = sum(file.stat().st_size for file in store.rglob("*") if file.is_file()) / _MB
        ours = _asked("ours", store, asked)
        theirs: dict[str, Answered] = {}
        for name in _peers(bench, times):
            bench.tell(f"  {name} …")
            theirs[name] = _asked(name, source, asked)
        counts = open_store(store).info.counts
    return _Sized(counts.triples + counts.features, imported, disk_mb, ours, theirs)


def _asked(library: str, graph: Path, questions: Path) -> Answered:
    """Put questions to a library with a graph in a process of its own, as `benchmarks.sized_child` does.

    Raises:
        subprocess.CalledProcessError: It failed; what it said is on standard error.
    """
    command = [sys.executable, "-m", "benchmarks.sized_child", library, str(graph), str(questions)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own module
    return ANSWERED.validate_json(done.stdout)


def _peers(bench: Bench, times: int) -> list[str]:
    follow = [name for name, most in _FOLLOWS.items() if times <= most] if bench.with_peers else []
    return [name for name in follow if name != "KGLite" or find_spec("kglite") is not None]


def _questions(bench: Bench) -> bytes:
    """Return the same questions for every size: the first copy keeps its ids and names."""
    work = bench.work
    return QUESTIONS.dump_json(
        Questions(
            low=work.low,
            hubs=work.hubs,
            pairs=work.random_pairs,
            hub_adjacent=work.hub_adjacent,
            names=work.names,
            typos=work.typos,
            observed=tuple(questions_of(bench)),
        )
    )


def _lines(times: int, each: _Sized, first: _Sized) -> list[Line]:
    size = f"{each.statements / 1e6:.1f} M"
    seconds, peak = Figure(each.imported.seconds), Figure(each.imported.peak_mb, "MB")
    theirs = {name: _beside(seconds, Figure(peer.load_s)) for name, peer in each.theirs.items()}
    peaks = {name: _beside(peak, Figure(peer.peak_mb, "MB")) for name, peer in each.theirs.items()}
    lines = [
        Line(f"{size}: import", seconds, _most(_IMPORT_S.get(times)), peers=theirs),
        Line(f"{size}: import, processor time", Figure(each.imported.processor_s)),
        Line(f"{size}: import, peak memory", peak, _most(_IMPORT_MB.get(times)), peers=peaks),
        Line(f"{size}: on disk", Figure(each.disk_mb, "MB")),
        Line(f"{size}: open and look up", Figure(each.ours.load_s)),
        Line(f"{size}: memory of a server", Figure(each.ours.own_mb, "MB"), _most(_SERVER_MB)),
    ]
    for kind, median in each.ours.medians.items():
        own, base = Figure(median), None
        if each is not first:
            smaller = Figure(first.ours.medians[kind])
            base = Base(f"{first.statements / 1e6:.1f} M", smaller, median / smaller.median)
        targets = (Target("ratio", _SLOWER),) if base is not None and kind in _STEADY else ()
        peers = {
            name: _beside(own, Figure(peer.medians[kind])) for name, peer in each.theirs.items() if kind in peer.medians
        }
        lines.append(Line(f"{size}: {kind}", own, targets, base, peers))
    return lines


def _most(limit: float | None) -> tuple[Target, ...]:
    return () if limit is None else (Target("median", limit),)


def _beside(own: Figure, theirs: Figure) -> Peer:
    return Peer(theirs, theirs.median / own.median)


def _panels(measured: Sequence[_Sized]) -> list[Panel]:
    panels = [
        _panel("import, seconds", measured, lambda each: each.imported.seconds, lambda peer: peer.load_s),
        _panel("import, peak MB", measured, lambda each: each.imported.peak_mb, lambda peer: peer.peak_mb),
        _panel("memory of a server, MB", measured, lambda each: each.ours.own_mb, lambda peer: peer.own_mb),
        _panel("on disk, MB", measured, lambda each: each.disk_mb, lambda _: None),
    ]
    asked = (
        _panel(f"{kind}, ms", measured, partial(_our_milliseconds, kind), partial(_milliseconds, kind))
        for kind in measured[0].ours.medians
    )
    return [*panels, *asked]


def _our_milliseconds(kind: str, each: _Sized) -> float:
    return 1e3 * each.ours.medians[kind]


def _milliseconds(kind: str, answered: Answered) -> float | None:
    median = answered.medians.get(kind)
    return None if median is None else 1e3 * median


def _panel(
    title: str, measured: Sequence[_Sized], ours: Callable[[_Sized], float], theirs: Callable[[Answered], float | None]
) -> Panel:
    lines = {"ours": [(float(each.statements), ours(each)) for each in measured]}
    for name in _FOLLOWS:
        held = ((each.statements, theirs(each.theirs[name])) for each in measured if name in each.theirs)
        if points := [(float(size), figure) for size, figure in held if figure is not None]:
            lines[name] = points
    return Panel(title, lines)
