"""A soak judges answers rightly, and says what is wrong."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from benchmarks.soak_report import Held, Said, SoakReport, Tally, Verdict, judged
from mcp.types import CallToolResult, TextContent

EXPECTED = Said("one triple", {"status": "ok", "triples": [["a", "b", "c"]]}, is_error=False)
HELD = Held(connections=2, threads=5, tasks=17, files=20, megabytes=200.0)
NOTHING = Held(connections=0, threads=3, tasks=0, files=11, megabytes=190.0)
GOOD = SoakReport(
    tally=Tally(Counter({"right": 9, "clear error": 1, "stopped early": 1, "wrong": 0}), [0.1] * 10),
    weather={"fair": 9, "drop": 1},
    phases=[HELD, HELD],
    before=NOTHING,
    after=NOTHING,
    most_connections=6,
    most_threads=40,
    recovered=True,
)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (EXPECTED, "right"),
        (replace(EXPECTED, text="one triple more"), "wrong"),
        (replace(EXPECTED, data={"status": "ok", "triples": []}), "wrong"),
        (replace(EXPECTED, is_error=True), "unclear error"),
        (replace(EXPECTED, data={"status": "timeout", "triples": []}), "stopped early"),
        (Said("The endpoint x failed (HTTP 500): no. Ask for less, or again later.", {}, is_error=True), "clear error"),
        (Said("The endpoint x dropped the connection. Ask again.", {}, is_error=True), "clear error"),
        (Said("The endpoint x failed (HTTP 500).", {}, is_error=True), "unclear error"),
        (Said("Something went wrong. Ask again.", {}, is_error=True), "unclear error"),
    ],
)
def test_an_answer_is_right_or_names_cause_and_next_step_or_is_bad(said: Said, verdict: Verdict) -> None:
    assert judged(said, EXPECTED) == verdict


def test_cursors_do_not_make_a_difference() -> None:
    def result(cursor: str) -> CallToolResult:
        text = f'5 triples; 2 here. Next page: cursor="{cursor}".'
        data = {"summary": text, "cursor": cursor, "total": 5}
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=data)

    assert Said.by(result("abc")) == Said.by(result("xyz"))
    assert Said.by(result("abc")).data == {"summary": "5 triples; 2 here. Next page: cursor.", "total": 5}


def test_a_tally_keeps_what_must_not_be_and_counts_errors_that_differ_in_numbers_alone() -> None:
    tally = Tally()
    for seconds in (0.1, 0.2):
        late = Said(f"x gave no answer within {seconds} s. Ask for less.", {}, is_error=True)
        tally.add("Degree", late, EXPECTED, seconds)
    tally.add("Feature", replace(EXPECTED, text="two triples"), EXPECTED, 0.3)
    assert tally == Tally(
        Counter({"clear error": 2, "wrong": 1}),
        [0.1, 0.2, 0.3],
        ["Feature: two triples"],
        Counter({"x gave no answer within # s. Ask for less.": 2}),
    )


def test_a_soak_in_which_nothing_went_wrong_has_no_problems() -> None:
    assert GOOD.problems == ()
    assert GOOD.lines()[:3] == [
        "answers: 10: 9 right, 1 clear error, 1 stopped early, 0 wrong",
        "weather: 10 requests: 9 fair, 1 drop",
        "seconds a call: median 0.100, p95 0.10, worst 0.10",
    ]


def tally_of(**numbers: int) -> Tally:
    kinds: dict[str, Verdict] = {"right": "right", "wrong": "wrong", "unclear": "unclear error"}
    return Tally(Counter({kinds[name]: number for name, number in numbers.items()}), [0.1])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda: replace(GOOD, tally=tally_of(right=9, wrong=2)), "2 answers are of the kind 'wrong'"),
        (lambda: replace(GOOD, tally=tally_of(right=9, unclear=1)), "1 answers are of the kind 'unclear error'"),
        (lambda: replace(GOOD, tally=Tally(seconds=[0.1])), "no answer was right"),
        (lambda: replace(GOOD, recovered=False), "calls still fail when the weather is fair again"),
        (lambda: at_the_end(replace(HELD, connections=7)), "7 connections are open, where 6 are allowed"),
        (lambda: at_the_end(replace(HELD, threads=44)), "44 threads are left of a phase; at first 5"),
        (lambda: at_the_end(replace(HELD, tasks=18)), "18 tasks are left of a phase; at first 17"),
        (lambda: at_the_end(replace(HELD, files=70)), "70 files are open; before it 11"),
        (lambda: at_the_end(replace(HELD, megabytes=241.0)), "memory grew by 41 MB after the first phase"),
        (lambda: replace(GOOD, after=replace(NOTHING, connections=1)), "1 connections outlive the graph"),
        (lambda: replace(GOOD, after=replace(NOTHING, threads=4)), "4 threads outlive the graph; before it 3"),
        (lambda: replace(GOOD, after=replace(NOTHING, files=12)), "12 files outlive the graph; before it 11"),
    ],
)
def test_whatever_goes_wrong_is_said(change: Callable[[], SoakReport], problem: str) -> None:
    report = change()
    assert report.problems == (problem,)
    assert report.lines()[-1] == f"WRONG: {problem}."


def at_the_end(held: Held) -> SoakReport:
    return replace(GOOD, phases=[HELD, held])
