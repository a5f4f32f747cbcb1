"""Every method answers questions of every form through `eval run`, and goes on after it was killed."""

import gc
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmark_players import BENCHMARKS, QUESTION, WAYS, Way, model_of, scored, stored, words_of, write_rows
from cli_runs import COMMAND, CommandLine
from kg_eval.logs import read_run
from patience import PATIENCE_S
from scripted_model import Asked, Failure, serving_model

# inspect_ai leaves a stream of its hooks open.
pytestmark = pytest.mark.filterwarnings("ignore:.*MemoryObject:pytest.PytestUnraisableExceptionWarning")

HELD = 4
"""Which request gets no reply, as the run is killed."""


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Collect what inspect_ai leaves open here, where its warning is ignored."""
    yield
    gc.collect()


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_a_method_answers_a_question_of_every_benchmark(cli: CommandLine, tmp_path: Path, way: Way) -> None:
    store = stored(cli, tmp_path)
    scores = {benchmark: scored(cli, tmp_path, store, way, benchmark) for benchmark in BENCHMARKS}
    assert scores == dict.fromkeys(BENCHMARKS, 1.0)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_a_method_that_was_killed_goes_on_without_asking_twice(cli: CommandLine, tmp_path: Path, way: Way) -> None:
    store, out = stored(cli, tmp_path), tmp_path / "run"
    rows = [{"question": f"{QUESTION} ({n})", "answers": ["Shinjuku"], "entities": ["Q1490"]} for n in range(HELD)]
    reached, killed = threading.Event(), threading.Event()
    players = [model_of(*way, "Shinjuku") for _ in range(2)]  # one before the kill, one after it

    def replying(asked: Asked) -> str | Failure:
        if len(service.asked) == HELD and not killed.is_set():
            reached.set()
            killed.wait(PATIENCE_S)
            return "nobody is there to hear this"
        return players[killed.is_set()](asked)

    with serving_model(replying) as service:
        words = (
            *("eval", "run", *words_of(*way), "--data", str(write_rows(tmp_path, "jsonl", rows))),
            *("--graph", str(store), "--out", str(out), "--at-once", "1", "--model", "m", "--base-url", service.url),
        )
        config = ("--config", str(tmp_path / "config.toml"))
        process = subprocess.Popen([*COMMAND, *config, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            assert reached.wait(PATIENCE_S)
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed.set()
        run = cli.run(*words)
    assert (run.code, "set: 100.00" in cli.run("eval", "score", str(out)).out) == (0, True)
    questions = read_run(out).questions
    kinds = {tuple(call.kind for call in question.calls) for question in questions}
    assert (len(questions), len(kinds)) == (HELD, 1)
    # What was answered before the kill is not asked again; the question under way is asked from its beginning.
    each = kinds.pop().count("llm")
    answered = (HELD - 1) // each
    assert len(service.asked) == HELD + each * (HELD - answered)
