"""Run the benchmarks: `python -m benchmarks`, or one section with `--only`."""

import argparse
import asyncio
import json
import os
import platform
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final, TypeAlias

import platformdirs
from rich.console import Console

from benchmarks.figures import Section, as_json, print_section, print_verdict
from benchmarks.gold import measure_gold
from benchmarks.graphs import BENCHMARK_GRAPH, Bench, bundled_sample, open_source
from benchmarks.large import measure_large
from benchmarks.lookups import measure_import, measure_lookups, measure_open, measure_paths, measure_retrieve
from benchmarks.observe import measure_agents, measure_observe, measure_one_hop
from benchmarks.remote import measure_remote
from benchmarks.scale import LARGE, SIZES, measure_scale
from benchmarks.serving import measure_calls, measure_clients, measure_start
from benchmarks.sets import measure_sets
from benchmarks.world.examples import measure_examples
from benchmarks.world.findings import measure_world
from benchmarks.world.misleading import measure_notes
from benchmarks.world.one_call import measure_calls_for_answers

RESULTS: Final = Path(__file__).parent / "results"
CACHE: Final = platformdirs.user_cache_path("kg-sextant", appauthor=False) / "benchmarks"
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
    "examples": measure_examples,
    "notes": measure_notes,
    "gold": measure_gold,
}


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print the table, and keep the figures as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure against the targets, beside peers."
    )
    parser.add_argument(
        "--only", action="append", choices=[*SECTIONS, "scale", "large"], help="a section; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="the bundled sample and few repeats")
    parser.add_argument("--fresh", action="store_true", help="repeat the imports of earlier runs")
    parser.add_argument("--no-peers", action="store_true", help="leave out the other libraries")
    parser.add_argument("--large", action="store_true", help=f"with scale: {LARGE} joined copies too (an hour)")
    parser.add_argument("--size", type=int, metavar="N", help="questions of each kind (200)")
    parser.add_argument("--repeats", type=int, metavar="N", help="how often a process is started (3)")
    parser.add_argument("--graph", type=Path, default=BENCHMARK_GRAPH, help="the N-Triples file to measure")
    parser.add_argument("--store", type=Path, default=CACHE, help="where imported graphs are kept")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the figures are kept as JSON")
    given = parser.parse_args(words)
    quick: bool = given.quick
    sizes = SIZES[:2] if quick else (*SIZES, LARGE) if given.large else SIZES
    sections: dict[str, Measure] = {**SECTIONS, "scale": partial(measure_scale, sizes=sizes), "large": measure_large}
    console = Console() if sys.stdout.isatty() else Console(width=_PLAIN_WIDTH)
    if given.fresh:
        shutil.rmtree(given.store, ignore_errors=True)
    given.store.mkdir(parents=True, exist_ok=True)
    bundled = quick or not given.graph.is_file()
    if bundled and not quick:
        console.print(f"There is no {given.graph}; measuring the bundled sample instead.", style="yellow")
    bench = Bench(
        bundled_sample(given.store) if bundled else open_source(given.graph, given.store),
        cache=given.store,
        console=console,
        size=given.size or (40 if quick else 200),
        repeats=given.repeats or (2 if quick else 3),
        with_peers=not given.no_peers,
    )
    measured = asyncio.run(_measure(bench, [sections[name] for name in given.only or SECTIONS], console))
    print_verdict(console, measured)
    now = datetime.now(UTC)
    about = {
        "graph": bench.graph.name,
        "at": now.isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "sections": as_json(measured),
    }
    given.results.mkdir(parents=True, exist_ok=True)
    file: Path = given.results / f"{now:%Y%m%d-%H%M%S}.json"
    file.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    console.print(f"Figures: {file}", style="dim", highlight=False)


async def _measure(bench: Bench, measures: Sequence[Measure], console: Console) -> list[Section]:
    measured: list[Section] = []
    started = perf_counter()
    for measure in measures:
        measured.append(await measure(bench))
        print_section(console, measured[-1])
        times = os.times()
        of_processor = times.user + times.system + times.children_user + times.children_system
        bench.tell(f"  {perf_counter() - started:.0f} s so far, {of_processor:.0f} s of processor time.")
    return measured


if __name__ == "__main__":
    main()
