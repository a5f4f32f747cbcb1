"""Every method, and every form of questions, goes through `eval run` once; all pairs do in tests/hardening."""

from itertools import cycle
from pathlib import Path

import pytest

from benchmark_runs import BENCHMARKS, WAYS, scored, stored
from cli_runs import CommandLine


def test_every_method_and_every_benchmark_goes_through_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = CommandLine(tmp_path, capsys)
    store = stored(cli, tmp_path)
    pairs = zip(WAYS, cycle(BENCHMARKS), strict=False)
    scores = {(way, benchmark): scored(cli, tmp_path, store, way, benchmark) for way, benchmark in pairs}
    assert scores == dict.fromkeys(scores, 1.0)
    assert len(scores) == len(WAYS)
