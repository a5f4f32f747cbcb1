"""Run methods over the questions about the world with the oracle for a model: `python -m benchmarks.world.play`.

It needs no key. It shows how far the machinery of each method reaches, and what a table and a picture look like.
"""

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Final, get_args

import anyio
import platformdirs

from benchmarks.world.one_call import read_calls
from benchmarks.world.oracle import Oracle
from benchmarks.world.questions import QUESTIONS
from benchmarks.world.reasons import reasons_of
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_agents.sessions import connect_tools
from kg_eval.methods.catalog import LEARN
from kg_eval.questions import read_questions
from kg_eval.reports.plots import plots_of
from kg_eval.reports.tables import Done, as_text, done, tables_of
from kg_eval.runs.plan import MethodName, RunPlan
from kg_eval.runs.running import AT_ONCE, Models, read_outcomes, run
from kg_server.app import build_server
from kg_server.commands.solved import keep_solved
from kg_server.settings import Settings

CACHE: Final = platformdirs.user_cache_path("kg-sextant", appauthor=False)
WORLD: Final = "sample:world"
METHODS: Final[tuple[MethodName, ...]] = get_args(MethodName)


def main() -> None:
    """Run the methods, and print the tables, why what went wrong did, and where the picture is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", help="the methods; all by default")
    parser.add_argument("--sample", type=int, help="how many questions are drawn; all by default")
    parser.add_argument("--seed", type=int, default=0, help="what the draw begins with")
    parser.add_argument("--learn", action="store_true", help="show the agents what they have solved before")
    parser.add_argument("--out", type=Path, help="where the runs are kept; a new folder by default")
    given = parser.parse_args()
    folder = given.out or Path(tempfile.mkdtemp(prefix="kg-sextant-eval-"))
    runs = anyio.run(partial(played, learn=given.learn), given.methods or METHODS, folder, given.sample, given.seed)
    print("\n\n".join(map(as_text, (*tables_of(runs), *reasons_of(runs, folder, read_calls())))))
    for name, svg in plots_of(runs).items():
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
        print(f"\nThe picture is {folder / name}.svg.")


async def played(
    methods: Sequence[MethodName], folder: Path, sample: int | None, seed: int = 0, *, learn: bool = False
) -> list[Done]:
    """Run methods over the world, each in a folder of its own, and return the runs.

    Args:
        methods: The methods.
        folder: Where the runs are kept.
        sample: How many questions are drawn; all where it is None.
        seed: What the draw begins with.
        learn: Whether those that learn are shown what they have solved, one question after the other.
    """
    plan = RunPlan(
        benchmark="world",
        data=QUESTIONS,
        graph=WORLD,
        method="oda",
        model="oracle",
        linking="model",
        sample=sample,
        seed=seed,
    )
    plans = [plan.model_copy(update={"method": each, "learn": learn and each in LEARN}) for each in methods]
    async with aclosing(LocalAdapter(open_sample(CACHE, WORLD))) as graph:
        return [await _played(plan, folder / plan.method, graph) for plan in plans]


async def _played(plan: RunPlan, folder: Path, graph: LocalAdapter) -> Done:
    settings = Settings(cache_folder=CACHE, data_folder=folder / "data", embedder="lexical", learn=plan.learn)
    oracle = Oracle(plan.method, read_questions("world", QUESTIONS), read_calls())
    keep, at_once = (partial(keep_solved, settings, graph), 1) if plan.learn else (None, AT_ONCE)
    async with connect_tools(build_server(graph, settings)) as tools:
        if failed := await run(plan, folder, tools, Models(oracle), at_once=at_once, learn=keep):
            print(f"{plan.method}: {failed} questions failed and are not counted.")
    return done(plan.method, plan, read_outcomes(folder))


if __name__ == "__main__":
    main()
