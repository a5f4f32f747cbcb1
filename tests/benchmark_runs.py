"""Every method played through `eval run`, with a model on loopback that replies by script."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias, get_args

from benchmark_players import ROWS, Reply, reply_of, short_reply_of, write_rows
from cli_runs import CommandLine
from kg_agents.llm import FunctionCall
from kg_eval.logs import read_run
from kg_eval.methods.catalog import NEED_ENTITIES
from kg_eval.metrics.scores import MAIN_METRIC, score
from kg_eval.plan import MethodName
from kg_eval.questions import BenchmarkName
from scripted_model import Asked, Failure, calling, serving_model
from story_graphs import TOKYO, write_story

AGENTS: Final = ("oda", "graph-counselor")
Way: TypeAlias = tuple[MethodName, str]
"""A method, and a parameter of it."""

WAYS: Final[tuple[Way, ...]] = (
    *((method, "") for method in get_args(MethodName)),
    *((method, "manner=paper") for method in AGENTS),
)
"""Every method, and the agents in both manners."""

BENCHMARKS: Final[tuple[BenchmarkName, ...]] = tuple(ROWS)


def words_of(method: MethodName, setting: str, benchmark: BenchmarkName = "jsonl") -> tuple[str, ...]:
    """Return how `eval run` is told of a method; what begins from entities finds them where a file gives none."""
    found = benchmark in {"grbench", "world"} and method in NEED_ENTITIES
    return (
        *("--benchmark", benchmark, "--method", method, "--linking", "model" if found else "gold"),
        *(("--set", setting) if setting else ()),
    )


def model_of(method: MethodName, setting: str, answer: str) -> Callable[[Asked], str | Failure]:
    """Return a model that plays a method to an answer, question after question."""
    reply = short_reply_of(method, answer) if method in AGENTS and not setting else reply_of(method, answer)

    def replying(asked: Asked) -> str | Failure:
        found: Reply = "Tokyo" if asked.prompt.startswith("Name the things") else reply(asked.prompt)
        return calling((found.name, found.arguments)) if isinstance(found, FunctionCall) else found

    return replying


def scored(cli: CommandLine, folder: Path, store: Path, way: Way, benchmark: BenchmarkName) -> object:
    """Run a method over the question of a benchmark, and return its score, or why it has none."""
    out = folder / "-".join((*way, benchmark))
    with serving_model(model_of(*way, ROWS[benchmark][1])) as service:
        asked = (*words_of(*way, benchmark), "--data", str(write_rows(folder, benchmark)), "--graph", str(store))
        run = cli.run("eval", "run", *asked, "--model", "m", "--base-url", service.url, "--out", str(out))
    if run.code:
        return run.err
    (outcome,) = read_run(out).outcomes
    return outcome.skipped or score(outcome, MAIN_METRIC[benchmark])


def stored(cli: CommandLine, folder: Path) -> Path:
    """Import the graph about Tokyo, and return its store."""
    assert cli.run("import", str(write_story(folder, TOKYO)), "--to", str(folder / "store")).code == 0
    return folder / "store"
