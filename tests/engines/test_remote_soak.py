"""Clients in bad weather get right answers or clear errors, and nothing leaks; and a soak would say otherwise."""

import asyncio
from pathlib import Path

import pytest
from benchmarks.remote_soak import Soak, chosen_calls, soaked

from kg_adapters.local.store import LocalStore
from remote_graphs import Engine

pytestmark = pytest.mark.xdist_group("engines")


def test_clients_in_bad_weather_get_right_answers_or_clear_errors_and_nothing_leaks(
    oxigraph_engine: Engine, sample_files: LocalStore, tmp_path: Path
) -> None:
    calls = asyncio.run(chosen_calls(sample_files, tmp_path, size=2, timeout_s=2))
    asked = Soak(
        oxigraph_engine.running.url,
        oxigraph_engine.sample,
        oxigraph_engine.dialect,
        calls,
        tmp_path,
        clients=6,
        seconds=2,
        phases=2,
        timeout_s=2,
    )

    report = soaked(asked)

    assert report.problems == (), report.tally.bad
    assert report.tally.bad == []
    assert report.tally.verdicts["right"] > 0
    assert sum(report.weather.values()) > report.weather["fair"]
    assert len(report.phases) == 2
