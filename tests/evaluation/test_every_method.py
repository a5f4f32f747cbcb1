"""Every method, and every form of questions, goes through `eval run` once; all pairs do in tests/hardening."""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from benchmark_runs import BENCHMARKS, WAYS, scored, stored
from cli_runs import CommandLine
from kg_eval.questions import BenchmarkName


def test_every_method_and_every_benchmark_goes_through_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = CommandLine(tmp_path, capsys)
    store = stored(cli, tmp_path)
    benchmarks: Iterator[BenchmarkName] = cycle(BENCHMARKS)
    scores = {way: scored(cli, tmp_path, store, way, next(benchmarks)) for way in WAYS}
    assert scores == dict.fromkeys(scores, 1.0)
    assert len(scores) == len(WAYS)
