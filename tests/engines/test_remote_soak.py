"""Clients of an endpoint over a bad network get right answers or clear errors, and nothing leaks."""

from pathlib import Path

import pytest
from benchmarks.graphs import choose_workload
from benchmarks.soak import Soak, soaked_remotely

from kg_adapters.local.store import LocalStore
from remote_graphs import Engine

pytestmark = pytest.mark.xdist_group("engines")


def test_clients_over_a_bad_network_get_right_answers_or_clear_errors_and_nothing_leaks(
    oxigraph_engine: Engine, sample_files: LocalStore, tmp_path: Path
) -> None:
    work = choose_workload(sample_files.index, 2)
    endpoint = oxigraph_engine.options(oxigraph_engine.sample, timeout_s=1.8, pause_s=1.0)

    report = soaked_remotely(Soak(tmp_path, work, clients=6, seconds=4, timeout_s=2), endpoint)

    assert report.problems == (), [*report.lines()]
    assert report.verdicts["right"] > 0
    assert sum(report.weather.values()) > report.weather["fair"]
