"""Measure how good the answers are: `python -m benchmarks.quality`."""

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import platformdirs
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.graphs import bundled_sample
from benchmarks.quality_names import TARGETS, Found, choose_names, find_names
from benchmarks.quality_questions import QUESTIONS, Quality, Question, RandomScorer, ask_all, read_questions
from kg_adapters.embedding import CachedEmbedder, MiniLmEmbedder
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import LocalStore, open_store
from kg_server.observation.scoring import PaperScorer, RelationFirstScorer, Scorer, SpellingScorer

HOPS: Final = (1, 3)
DEFAULT: Final = "meaning and spelling, the default"
ONE_HOP_TARGETS: Final[Mapping[str, float]] = {"first": 0.82, "in the answer": 0.99}
_WIDTH: Final = 120


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line."""

    questions: Path
    most_questions: int | None
    names: int
    store: Path
    results: Path | None


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print two tables, and keep the figures as JSON where that was asked for."""
    asyncio.run(measure(_options(words), Console(width=_WIDTH)))


async def measure(options: Options, console: Console) -> None:
    """Ask the questions by each scorer, and the names in each way of writing them."""
    options.store.mkdir(parents=True, exist_ok=True)
    store = open_store(bundled_sample(options.store).store)
    questions = read_questions(options.questions)[: options.most_questions]
    async with aclosing(LocalAdapter(store)) as graph:
        names = await _names(graph, store, options.names, console)
        _print_names(console, names)
        qualities = await _questions(graph, questions, options.store, console)
    for hops, by_scorer in qualities.items():
        _print_questions(console, by_scorer, hops, len(questions))
    if options.results is not None:
        figures: dict[str, object] = {
            "Retrieve": {way: asdict(found) for way, found in names.items()},
            "observe": {
                f"hops={hops}": {scorer: quality.figures() for scorer, quality in by_scorer.items()}
                for hops, by_scorer in qualities.items()
            },
        }
        options.results.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


async def _names(graph: LocalAdapter, store: LocalStore, size: int, console: Console) -> dict[str, Found]:
    chosen = choose_names(store.index, graph, size)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Retrieve", total=sum(map(len, chosen.values())))
        return {way: await find_names(graph, asked, lambda: progress.advance(task)) for way, asked in chosen.items()}


async def _questions(
    graph: LocalAdapter, questions: Sequence[Question], cache: Path, console: Console
) -> dict[int, dict[str, Quality]]:
    async with aclosing(CachedEmbedder(MiniLmEmbedder(), path=cache / "vectors.sqlite")) as model:
        scorers: dict[str, Scorer] = {
            DEFAULT: RelationFirstScorer(model),
            "the pair alone, as in the paper": PaperScorer(model),
            "spelling alone": SpellingScorer(),
            "dice": RandomScorer(),
        }
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task("observe", total=len(HOPS) * len(scorers) * len(questions))
            return {
                hops: {
                    name: await ask_all(graph, scorer, questions, hops=hops, told=lambda: progress.advance(task))
                    for name, scorer in scorers.items()
                }
                for hops in HOPS
            }


def _print_names(console: Console, names: Mapping[str, Found]) -> None:
    table = Table(title="Retrieve on the sample, by how a name is written", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("a name's", "first", "first 5", "target for first 5"):
        table.add_column(heading, justify="left" if heading == "a name's" else "right")
    for way, found in names.items():
        table.add_row(way, f"{found.first:.3f}", f"{found.first_five:.3f}", _against(found.first_five, TARGETS[way]))
    console.print(table)


def _print_questions(console: Console, qualities: Mapping[str, Quality], hops: int, questions: int) -> None:
    title = f"observe on the sample, {questions:,} questions, hops={hops}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("ranked by")
    for heading in next(iter(qualities.values())).figures():
        table.add_column(heading, justify="right")
    for name, quality in qualities.items():
        table.add_row(
            name, *(f"{figure:.3f}" if figure <= 1 else f"{figure:.0f}" for figure in quality.figures().values())
        )
    if hops == 1:
        figures = qualities[DEFAULT].figures()
        judged = {name: _against(figures[name], target) for name, target in ONE_HOP_TARGETS.items()}
        table.add_section()
        table.add_row("target for the default", *(judged.get(name, "") for name in figures))
    console.print(table)


def _against(figure: float, target: float) -> str:
    return f"{target:.2f} {'✓' if figure >= target else '✗'}"


def _options(words: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description="Measure how good answers are.")
    parser.add_argument("--questions", type=Path, default=QUESTIONS, help="the questions, one JSON object a line")
    parser.add_argument("--limit", type=int, metavar="N", help="ask the first N questions only")
    parser.add_argument("--names", type=int, default=500, metavar="N", help="names in each way of writing (500)")
    parser.add_argument("--store", type=Path, default=_cache(), help="where the graph and the vectors are kept")
    parser.add_argument("--results", type=Path, help="a file to keep the figures in, as JSON")
    given = parser.parse_args(words)
    return Options(given.questions, given.limit, given.names, given.store, given.results)


def _cache() -> Path:
    return platformdirs.user_cache_path("kg-sextant", appauthor=False) / "benchmarks"


if __name__ == "__main__":
    main()
