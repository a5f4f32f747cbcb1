"""The suite of the world, asked of a model that always speaks the gold answer: what is lost is not lost by a model."""

import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import anyio

from benchmarks.figures import Figure, Line, Section, Target
from benchmarks.graphs import Bench
from benchmarks.world.questions import FOLDER
from kg_eval.logs import read_run
from kg_eval.metrics.scores import MAIN_METRIC, score
from kg_eval.player import GOLD, REPHRASED

SUITE: Final = FOLDER / "suite.toml"
_TOKENS: Final = {"oda": 1_300, "graph-counselor": 2_000, "tools": 2_600}
"""The most tokens that a method should take for a question; these are the runs of the suite."""


async def measure_gold(bench: Bench) -> Section:
    """Run the suite with a player in place of the model, which follows every prompt, in its own words or in others."""
    lines, notes = list[Line](), list[str]()
    with TemporaryDirectory() as folder:
        for model in (GOLD, REPHRASED):
            bench.tell(f"Asking the world's questions, with {model} for a model …")
            out = Path(folder, model)
            asked = ("eval", "suite", str(SUITE), "--model", model, "--out", str(out))
            await anyio.run_process([sys.executable, "-m", "kg_server", *asked], stderr=None)
            for run, goal in _TOKENS.items():
                kept = read_run(out / run)
                scores = [(each, score(each, MAIN_METRIC[kept.plan.benchmark])) for each in kept.outcomes]
                counted = [(each, value) for each, value in scores if value is not None]
                right = Figure(sum(value for _, value in counted) / len(counted), "share")
                tokens = Figure(median(each.usage.tokens for each, _ in counted), "tokens")
                lines.append(Line(f"{run}, {model}: right, of {len(counted)}", right, Target(1.0, least=True)))
                lines.append(Line(f"{run}, {model}: tokens a question", tokens, Target(goal)))
                notes += [f"Wrong by {run}, {model}: {each.record.id}." for each, value in counted if value < 1]
    return Section("gold", "Right answers of a model that always speaks them", tuple(lines), tuple(notes))
