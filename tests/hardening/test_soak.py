"""A server that is asked everything at once answers rightly and gives back what it took."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.graphs import choose_workload
from benchmarks.soak import Report, Soak, children_of, soaked_over_http, soaked_over_stdio

from kg_adapters.local.cache import open_sample


@pytest.mark.parametrize(("soaked", "clients"), [(soaked_over_http, 64), (soaked_over_stdio, 6)])
def test_callers_who_ask_everything_at_once_get_what_they_get_alone_and_nothing_leaks(
    soaked: Callable[[Soak], Report], clients: int, tmp_path: Path
) -> None:
    others = children_of(os.getpid())
    work = choose_workload(open_sample(tmp_path / "cache").index, 2)

    report = soaked(Soak(tmp_path, work, clients=clients, seconds=3.0))

    assert report.problems == (), [*report.lines()]
    assert report.verdicts["right"] > 20
    assert set(children_of(os.getpid())) <= set(others)
