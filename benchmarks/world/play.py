"""Run methods over the questions about the world with the oracle for a model: `python -m benchmarks.world.play`.

It needs no key. It shows how far the machinery of each method reaches, and what a table and a picture look like.
"""

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final, get_args

import anyio
import platformdirs

from benchmarks.world.one_call import read_calls
from benchmarks.world.oracle import Oracle
from benchmarks.world.questions import QUESTIONS
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_agents.sessions import connect_tools
from kg_agents.tool_calls import Toolbox
from kg_eval.metrics.scores import score
from kg_eval.questions import read_questions
from kg_eval.reports.plots import plots_of
from kg_eval.reports.tables import Done, as_text, done, tables_of
from kg_eval.runs.plan import MethodName, RunPlan
from kg_eval.runs.running import Models, read_outcomes, run
from kg_server.app import build_server
from kg_server.settings import Settings

WORLD: Final = "sample:world"
METHODS: Final[tuple[MethodName, ...]] = get_args(MethodName)


def main() -> None:
    """Run the methods, and print a table, what went wrong, and where the picture is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", help="the methods; all by default")
    parser.add_argument("--sample", type=int, help="how many questions are drawn; all by default")
    parser.add_argument("--seed", type=int, default=0, help="what the draw begins with")
    parser.add_argument("--out", type=Path, help="where the runs are kept; a new folder by default")
    given = parser.parse_args()
    folder = given.out or Path(tempfile.mkdtemp(prefix="kg-sextant-eval-"))
    runs = anyio.run(played, given.methods or METHODS, folder, given.sample, given.seed)
    print("\n\n".join(map(as_text, tables_of(runs))))
    for each in runs:
        wrong = [f"{one.record.id} ({one.record.kind})" for one in each.outcomes if score(one, "set") == 0]
        print(f"\nNot right by {each.name}: {', '.join(wrong) or 'none'}.")
    for name, svg in plots_of(runs).items():
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
        print(f"\nThe picture is {folder / name}.svg.")


async def played(methods: Sequence[MethodName], folder: Path, sample: int | None, seed: int = 0) -> list[Done]:
    """Run methods over the world, each in a folder of its own, and return the runs.

    Args:
        methods: The methods.
        folder: Where the runs are kept.
        sample: How many questions are drawn; all where it is None.
        seed: What the draw begins with.
    """
    cache = platformdirs.user_cache_path("kg-sextant", appauthor=False)
    settings = Settings(cache_folder=cache, data_folder=folder / "data", embedder="lexical")
    async with (
        aclosing(LocalAdapter(open_sample(cache, WORLD))) as graph,
        connect_tools(build_server(graph, settings)) as tools,
    ):
        return [await _played(method, folder / method, tools, sample, seed) for method in methods]


async def _played(method: MethodName, folder: Path, tools: Toolbox, sample: int | None, seed: int) -> Done:
    plan = RunPlan(
        benchmark="world",
        data=QUESTIONS,
        graph=WORLD,
        method=method,
        model="oracle",
        linking="model",
        sample=sample,
        seed=seed,
    )
    oracle = Oracle(method, read_questions("world", QUESTIONS), read_calls())
    if failed := await run(plan, folder, tools, Models(oracle)):
        print(f"{method}: {failed} questions failed and are not counted.")
    return done(method, plan, read_outcomes(folder))


if __name__ == "__main__":
    main()
