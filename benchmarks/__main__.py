"""Run the benchmarks: `python -m benchmarks`, or one section with `--only`."""

import argparse
import asyncio
import json
import os
import platform
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Final, TypeAlias

import platformdirs
from rich.console import Console

from benchmarks.agents import measure_agents
from benchmarks.bench import Bench
from benchmarks.calls import measure_calls, measure_start
from benchmarks.clients import measure_clients
from benchmarks.figures import Section, as_json
from benchmarks.graphs import BENCHMARK_GRAPH, Graph, bundled_sample, open_source
from benchmarks.imports import measure_import, measure_open
from benchmarks.lookups import measure_lookups, measure_retrieve
from benchmarks.observe import measure_observe
from benchmarks.one_hop import measure_one_hop
from benchmarks.paths import measure_paths
from benchmarks.remote import measure_remote
from benchmarks.sets import measure_sets
from benchmarks.sizes import LARGE, SIZES, measure_sizes
from benchmarks.table import print_section, print_verdict
from benchmarks.world.measure import measure_world
from benchmarks.world.measure_calls import measure_calls_for_answers
from benchmarks.world.measure_played import measure_played

RESULTS: Final = Path(__file__).parent / "results"
_PLAIN_WIDTH: Final = 160

Measure: TypeAlias = Callable[[Bench], Awaitable[Section]]

SECTIONS: Final[Mapping[str, Measure]] = {
    "import": measure_import,
    "open": measure_open,
    "lookups": measure_lookups,
    "retrieve": measure_retrieve,
    "paths": measure_paths,
    "sets": measure_sets,
    "observe": measure_observe,
    "one-hop": measure_one_hop,
    "agents": measure_agents,
    "calls": measure_calls,
    "clients": measure_clients,
    "start": measure_start,
    "remote": measure_remote,
    "world": measure_world,
    "one-call": measure_calls_for_answers,
    "played": measure_played,
}


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line."""

    sections: tuple[str, ...]
    quick: bool
    fresh: bool
    with_peers: bool
    sizes: tuple[int, ...]
    size: int | None
    repeats: int | None
    source: Path
    store: Path
    results: Path


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print the table, and keep the figures as JSON."""
    options = _options(words)
    console = Console() if sys.stdout.isatty() else Console(width=_PLAIN_WIDTH)
    if options.fresh:
        shutil.rmtree(options.store, ignore_errors=True)
    options.store.mkdir(parents=True, exist_ok=True)
    bench = Bench(
        _graph(options, console),
        cache=options.store,
        console=console,
        size=options.size or (40 if options.quick else 200),
        repeats=options.repeats or (2 if options.quick else 3),
        with_peers=options.with_peers,
    )
    sections = asyncio.run(_measure(bench, options, console))
    print_verdict(console, sections)
    file = _keep(sections, bench.graph, options.results)
    console.print(f"Figures: {file}", style="dim", highlight=False)


async def _measure(bench: Bench, options: Options, console: Console) -> list[Section]:
    sections: list[Section] = []
    wanted: dict[str, Measure] = {name: SECTIONS[name] for name in options.sections}
    if options.sizes:
        wanted["scale"] = lambda bench: measure_sizes(bench, options.sizes, options.results / "scale.svg")
    started, worked = perf_counter(), _processor_s()
    for measure in wanted.values():
        section = await measure(bench)
        print_section(console, section)
        sections.append(section)
        took, of_processor = perf_counter() - started, _processor_s() - worked
        bench.tell(f"  {took:.0f} s so far, {of_processor:.0f} s of processor time.")
    return sections


def _processor_s() -> float:
    """Return the processor time that this process and those that it waited for have taken, in seconds."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _graph(options: Options, console: Console) -> Graph:
    if not options.quick and not options.source.is_file():
        console.print(f"There is no {options.source}; measuring the bundled sample instead.", style="yellow")
    elif not options.quick:
        return open_source(options.source, options.store)
    return bundled_sample(options.store)


def _keep(sections: list[Section], graph: Graph, folder: Path) -> Path:
    now = datetime.now(UTC)
    about = {
        "graph": graph.name,
        "at": now.isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{now:%Y%m%d-%H%M%S}.json"
    file.write_text(json.dumps(as_json(sections, about), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return file


def _options(words: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure against the targets, beside peers."
    )
    parser.add_argument("--only", action="append", choices=[*SECTIONS, "scale"], help="a section; may be repeated")
    parser.add_argument("--quick", action="store_true", help="the bundled sample and few repeats")
    parser.add_argument("--fresh", action="store_true", help="import anew what was imported by an earlier run")
    parser.add_argument("--no-peers", action="store_true", help="leave out the other libraries")
    parser.add_argument("--large", action="store_true", help=f"with scale: {LARGE} joined copies too (an hour)")
    parser.add_argument("--size", type=int, metavar="N", help="questions of each kind (200)")
    parser.add_argument("--repeats", type=int, metavar="N", help="how often a process is started (3)")
    parser.add_argument("--graph", type=Path, default=BENCHMARK_GRAPH, help="the N-Triples file to measure")
    parser.add_argument("--store", type=Path, default=_cache(), help="where imported graphs are kept")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the figures are kept as JSON")
    given = parser.parse_args(words)
    only: list[str] = given.only or list(SECTIONS)
    return Options(
        sections=tuple(name for name in only if name in SECTIONS),
        quick=given.quick,
        fresh=given.fresh,
        with_peers=not given.no_peers,
        size=given.size,
        repeats=given.repeats,
        sizes=_sizes(quick=given.quick, large=given.large) if "scale" in only else (),
        source=given.graph,
        store=given.store,
        results=given.results,
    )


def _sizes(*, quick: bool, large: bool) -> tuple[int, ...]:
    if quick:
        return SIZES[:2]
    return (*SIZES, LARGE) if large else SIZES


def _cache() -> Path:
    return platformdirs.user_cache_path("kg-sextant", appauthor=False) / "benchmarks"


if __name__ == "__main__":
    main()
