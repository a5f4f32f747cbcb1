"""The section of the benchmark whose model always speaks the gold answer: what is lost is not lost by a model."""

import json
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import anyio
import pyoxigraph as ox

from benchmarks.figures import Figure, Line, Section, Target
from benchmarks.graphs import BENCHMARK_GRAPH, Bench
from benchmarks.world.questions import QUESTIONS
from kg_agents.evidence.matching import is_name
from kg_eval.logs import read_run
from kg_eval.metrics.scores import MAIN_METRIC, score
from kg_eval.player import GOLD, REPHRASED
from kg_eval.questions import read_questions

PUBLISHED: Final = BENCHMARK_GRAPH.parent / "benchmarks"
_RUNS: Final = {
    "oda": 'method = "oda"',
    "oda-paper": 'method = "oda"\nsettings = { manner = "paper" }',
    "graph-counselor": 'method = "graph-counselor"',
    "graph-counselor-paper": 'method = "graph-counselor"\nsettings = { manner = "paper" }',
    "tools": 'method = "tools"',
}
_TOKENS: Final = {"oda": 1_300, "graph-counselor": 2_000, "tools": 2_500}
_RIGHT: Final = Target(0.995, least=True)
"""Not all: GRBench counts a name twice that is part of another, and answers give each once."""
_LONGEST: Final = 100
"""How many characters a question may have that serves as a name."""
_MADE_UP: Final = "http://example.com/"
_LABEL: Final = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#label")


async def measure_gold(bench: Bench) -> Section:
    """Run suites with a player in place of the model, which follows every prompt and speaks the gold answer.

    The world is asked in the words of its file and in others. The graphs of GRBench are too large to keep here: its
    questions are asked of a made-up graph, in which the answers of each stand beside it.
    """
    lines, notes = list[Line](), list[str]()
    with TemporaryDirectory() as kept:
        folder = Path(kept)
        for name, common in _benchmarks(bench, folder).items():
            for model in (GOLD, REPHRASED) if name == "world" else (REPHRASED,):
                bench.tell(f"Asking {name}, with {model} for a model …")
                suite = folder / f"{name}-{model}.toml"
                given = {**common, "sample": bench.size, "seed": 1}
                shared = "".join(f"{key} = {json.dumps(value)}\n" for key, value in given.items())
                runs = "".join(f'\n[[runs]]\nname = "{run}"\n{method}\n' for run, method in _RUNS.items())
                suite.write_text(f"[common]\n{shared}{runs}", encoding="utf-8")
                asked = ("eval", "suite", str(suite), "--model", model, "--out", str(suite.with_suffix("")))
                await anyio.run_process([sys.executable, "-m", "kg_server", *asked], stderr=None)
                for run in _RUNS:
                    found, missed = _lines(suite.with_suffix("") / run, f"{name}, {run}, {model}")
                    lines += found
                    notes += missed
    title = "Right answers of a model that always speaks them, in each benchmark's own metric"
    return Section("gold", title, tuple(lines), tuple(notes))


def _benchmarks(bench: Bench, folder: Path) -> Mapping[str, Mapping[str, str]]:
    """Return what each benchmark's runs share, as a suite says it."""
    world = {"benchmark": "world", "data": str(QUESTIONS), "graph": "sample:world", "linking": "model"}
    if not PUBLISHED.is_dir():
        bench.tell(f"There is no {PUBLISHED}: only the world's questions are asked.")
        return {"world": world}
    answers = folder / "answers.nt"
    questions = _short(PUBLISHED / "grbench", folder / "grbench")
    ox.serialize(_made_up(questions), answers, format=ox.RdfFormat.N_TRIPLES)
    files = {"qald10": "qald_10-en.json", "creak": "creak.json"}
    return {
        "world": world,
        **{
            name: {"benchmark": name, "data": str(PUBLISHED / file), "graph": str(bench.graph.store)}
            for name, file in files.items()
        },
        "grbench": {
            "benchmark": "grbench",
            "data": str(questions),
            "graph": str(answers),
            "linking": "model",
        },
    }


def _short(questions: Path, folder: Path) -> Path:
    """Copy the questions that a node can be called by; others quote whole judgements."""
    folder.mkdir()
    for file in questions.iterdir():
        lines = file.read_text(encoding="utf-8").splitlines()
        short = (line for line in lines if len(json.loads(line)["question"]) <= _LONGEST)
        (folder / file.name).write_text("\n".join(short), encoding="utf-8")
    return folder


def _made_up(questions: Path) -> Iterator[ox.Triple]:
    """Yield a graph in which each question is a node, from which one relation leads to its answers."""
    answer, node = ox.NamedNode(f"{_MADE_UP}answer"), partial("{}{}".format, _MADE_UP)
    yield ox.Triple(answer, _LABEL, ox.Literal("answer"))
    for number, record in enumerate(read_questions("grbench", questions)):
        asked = ox.NamedNode(node(f"q{number}"))
        yield ox.Triple(asked, _LABEL, ox.Literal(record.question))
        for place, gold in enumerate(record.golds):
            if is_name(gold.text):
                end = ox.NamedNode(node(f"a{number}-{place}"))
                yield ox.Triple(end, _LABEL, ox.Literal(gold.text))
                yield ox.Triple(asked, answer, end)
            else:
                yield ox.Triple(asked, answer, ox.Literal(gold.text))


def _lines(run: Path, what: str) -> tuple[list[Line], list[str]]:
    """Return how many answers of a run are right and what they took, and which were not right.

    Those questions count whose entities the graph holds: the others are not asked by ODA, which begins from them.
    """
    kept = read_run(run)
    plan = kept.plan
    held = {each.record.id for each in read_run(run.with_name("oda")).outcomes if not each.skipped}
    scores = [(each, score(each, MAIN_METRIC[plan.benchmark])) for each in kept.outcomes if each.record.id in held]
    counted = [(each, value) for each, value in scores if value is not None]
    tokens = median(each.usage.tokens for each, _ in counted)
    goal = _TOKENS.get(run.name) if plan.benchmark == "world" else None
    lines = [
        Line(
            f"{what}: right, of {len(counted)}",
            Figure(sum(value for _, value in counted) / len(counted), "share"),
            _RIGHT,
        ),
        Line(f"{what}: tokens a question", Figure(tokens, "tokens"), Target(goal) if goal else None),
    ]
    return lines, [f"Wrong by {what}: {each.record.id}." for each, value in counted if value < 1]
