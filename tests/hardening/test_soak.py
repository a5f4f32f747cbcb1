"""A server that is asked everything at once answers rightly and gives back what it took; a soak says otherwise."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.footprint import Footprint, children_of
from benchmarks.load_report import LoadReport
from benchmarks.soak import Soak, soaked_over_http, soaked_over_stdio
from benchmarks.soak_mix import SHARES
from benchmarks.soak_report import Tally, Verdict
from benchmarks.workload import choose_workload

from kg_adapters.local.cache import open_sample

HELD = Footprint(threads=5, files=60, megabytes=300.0, workers=1, workers_megabytes=80.0, cpu_s=3.0)
GOOD = LoadReport(
    name="2 clients",
    seconds=2.0,
    tallies={
        "Degree": Tally(Counter({"right": 4}), [0.01] * 4),
        "observe": Tally(Counter({"right": 2}), [0.02] * 2),
    },
    acknowledged=7,
    lost=0,
    before=HELD,
    after=HELD,
    most_threads=40,
    logged=(),
)


@pytest.mark.parametrize("soaked", [soaked_over_http, soaked_over_stdio])
def test_callers_who_ask_everything_at_once_get_what_they_get_alone_and_nothing_leaks(
    soaked: Callable[[Soak], Coroutine[object, object, LoadReport]], tmp_path: Path
) -> None:
    others = children_of(os.getpid())
    work = choose_workload(open_sample(tmp_path / "cache").index, 2)
    asked = Soak(tmp_path, work, clients=6, in_flight=6, seconds=3.0)

    report = asyncio.run(soaked(asked))

    assert report.problems == ()
    assert report.verdicts["right"] > 20
    assert set(report.tallies) <= set(SHARES)
    assert set(children_of(os.getpid())) <= set(others)


def test_a_load_in_which_nothing_went_wrong_has_no_problems() -> None:
    assert (GOOD.problems, GOOD.misses) == ((), ())
    assert GOOD.lines() == [
        "2 clients: 6 calls in 2 s, 3 a second: 6 right",
        "                                 calls    p50 ms    p95 ms    p99 ms   p95/p50",
        "  all                                6      10.0      20.0      20.0       2.0",
        "  Degree                             4      10.0      10.0      10.0       1.0",
        "  observe                            2      20.0      20.0      20.0       1.0",
        "memory: 7 facts acknowledged, 0 lost",
        "before: 300 MB, 60 descriptors, 5 threads, 1 workers with 80 MB, 3.0 s of processor time",
        "after:  300 MB, 60 descriptors, 5 threads, 1 workers with 80 MB, 3.0 s of processor time",
    ]


def _judged(verdicts: Counter[Verdict]) -> LoadReport:
    return replace(GOOD, tallies={"Degree": Tally(verdicts, [0.1])})


@pytest.mark.parametrize(
    ("report", "problem"),
    [
        (_judged(Counter({"right": 9, "wrong": 2})), "2 answers are of the kind 'wrong'"),
        (_judged(Counter({"right": 9, "unclear error": 1})), "1 answers are of the kind 'unclear error'"),
        (_judged(Counter()), "no answer was right"),
        (replace(GOOD, lost=1), "1 of 7 facts that were acknowledged are lost"),
        (replace(GOOD, after=replace(HELD, files=69)), "69 descriptors are open; before it 60"),
        (replace(GOOD, after=replace(HELD, threads=46)), "46 threads are left; before it 5"),
        (replace(GOOD, after=replace(HELD, megabytes=451.0)), "memory grew by 151 MB"),
        (replace(GOOD, logged=["Traceback"]), "the server logged 1 lines"),
    ],
)
def test_whatever_goes_wrong_is_said(report: LoadReport, problem: str) -> None:
    assert report.problems == (problem,)
    assert report.lines()[-1] == f"WRONG: {problem}."


@pytest.mark.parametrize(
    ("report", "miss"),
    [
        (_judged(Counter({"right": 1, "clear error": 1, "stopped early": 1})), "2 answers came too late"),
        (
            replace(GOOD, tallies={"Degree": Tally(Counter({"right": 40}), [0.01] * 36 + [0.06] * 4)}),
            "p95 is 6.0 times the median",
        ),
    ],
)
def test_a_missed_target_is_said_and_is_no_problem(report: LoadReport, miss: str) -> None:
    assert (report.misses, report.problems) == ((miss,), ())
    assert f"MISSED: {miss}." in report.lines()


def test_a_process_that_has_ended_holds_nothing() -> None:
    assert Footprint.of(2**22 + 1) == Footprint()
