"""The benchmark runs from end to end and judges figures rightly."""

import asyncio
import io
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from benchmarks.__main__ import main
from benchmarks.bench import Bench
from benchmarks.figures import Base, Figure, Line, Peer, Section, Target, line_of
from benchmarks.graphs import open_source
from benchmarks.sizes import measure_sizes
from benchmarks.table import amount, print_section, print_verdict
from benchmarks.timing import Timings, differing, race
from rich.console import Console


def test_the_smallest_run_prints_a_table_and_keeps_the_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "star.nt"
    source.write_text(_star(60), encoding="utf-8")
    places = ["--graph", str(source), "--store", str(tmp_path / "cache"), "--results", str(tmp_path / "results")]

    main(
        [
            *places,
            "--only",
            "open",
            "--only",
            "lookups",
            "--only",
            "retrieve",
            "--only",
            "paths",
            "--only",
            "observe",
            "--repeats",
            "1",
            "--size",
            "8",
        ]
    )

    (file,) = (tmp_path / "results").iterdir()
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert kept["graph"] == "star.nt"
    assert [section["name"] for section in kept["sections"]] == ["open", "lookups", "retrieve", "paths", "observe"]
    assert [line["what"] for line in kept["sections"][1]["lines"]] == [
        "neighbours, low degree",
        "neighbours, low degree, with labels",
        "neighbours, hub, 200 rows with labels",
        "degree of a hub, by relation",
    ]
    printed = capsys.readouterr().out
    assert "targets met" in printed
    assert "Answers differ" not in printed
    assert "networkx" in printed


def test_everybody_counts_the_same_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "towns.nt"
    facts = (
        f"<http://e.org/n{n}> <http://e.org/{r}> <http://e.org/{r}{n % k}> ."
        for n in range(60)
        for r, k in (("in", 3), ("of", 4))
    )
    source.write_text("\n".join(facts), encoding="utf-8")
    places = ["--graph", str(source), "--store", str(tmp_path / "cache"), "--results", str(tmp_path / "results")]

    main([*places, "--only", "sets"])

    (file,) = (tmp_path / "results").iterdir()
    (section,) = json.loads(file.read_text(encoding="utf-8"))["sections"]
    assert [line["what"] for line in section["lines"]] == [
        "count of an intersection",
        "top ten by neighbours",
        "groups",
    ]
    printed = capsys.readouterr().out
    assert "Answers differ" not in printed
    assert "rdflib by hand" in printed


def test_a_graph_that_is_not_there_is_named_in_one_line_and_the_sample_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = tmp_path / "absent.nt.gz"

    places = ["--graph", str(absent), "--store", str(tmp_path), "--results", str(tmp_path / "results")]

    main([*places, "--no-peers", "--only", "calls", "--size", "20"])

    printed = capsys.readouterr().out
    assert f"There is no {absent}; measuring the bundled sample instead." in printed
    assert "GetNeighbor, hub, limit 50" in printed


async def test_contestants_take_turns_and_one_that_is_out_of_time_drops_out() -> None:
    asked: list[tuple[str, int]] = []

    async def first(case: int) -> None:
        asked.append(("first", case))

    async def second(case: int) -> None:
        asked.append(("second", case))

    timings = await race({"first": first, "second": second}, range(6), budget_s=0)

    assert {name: len(taken.seconds) for name, taken in timings.items()} == {"first": 5, "second": 5}
    assert asked[4:8] == [("first", 0), ("second", 0), ("second", 1), ("first", 1)]


async def test_answers_that_differ_are_reported_by_name() -> None:
    async def right(case: int) -> int:
        return case

    async def wrong(case: int) -> int:
        return min(case, 1)

    assert await differing({"right": right, "wrong": wrong}, range(3)) == ["2: right 2, wrong 1"]


def test_a_ratio_counts_only_the_cases_that_both_did() -> None:
    timings = {"ours": Timings((1.0, 2.0, 3.0, 90.0)), "floor": Timings((1.0, 1.0, 1.0, 1.0)), "peer": Timings((6.0,))}

    line = line_of("calls", timings, base="floor", targets=(Target("ratio", 2.5),))

    base, peer = Base("floor", Figure(1.0), 2.5), Peer(Figure(6.0), 6.0)
    assert line == Line("calls", Figure(2.5), (Target("ratio", 2.5),), base, {"peer": peer})


@pytest.mark.parametrize(
    ("target", "met"),
    [
        (Target("median", 1.0), True),
        (Target("median", 0.9), False),
        (Target("p95", 4.0), True),
        (Target("p95", 3.9), False),
        (Target("ratio", 2.0), True),
        (Target("ratio", 1.9), False),
        (Target("median", 1.0, least=True), True),
        (Target("median", 1.1, least=True), False),
    ],
)
def test_a_target_is_met_up_to_its_limit(target: Target, met: bool) -> None:
    line = Line("calls", Figure(1.0, p95=4.0), (target,), Base("floor", Figure(0.5), 2.0))

    assert line.met is met


def test_a_table_shows_figures_targets_and_peers() -> None:
    peer = {"rdflib": Peer(Figure(1.4e-4), 2.8)}
    line = Line("look-up", Figure(5e-5, p95=2e-3), (Target("median", 4e-5), Target("p95", 2e-2)), peers=peer)
    console = Console(width=160)

    with console.capture() as captured:
        print_section(console, Section("lookups", "Look-ups", (line, Line("other", Figure(80, "MB"))), ("A note.",)))
        print_verdict(console, [Section("lookups", "Look-ups", (line,))])

    rows = [" ".join(row.split()) for row in captured.get().splitlines()]
    times = "\N{MULTIPLICATION SIGN}"
    assert f"look-up 50.0 µs 2.00 ms 1.25 {times} target ≤ 40.0 µs, p95 ≤ 20.0 ms ✗ 140 µs (2.8{times})" in rows
    assert "other 80 MB · · · · ·" in rows
    assert rows[-2:] == ["0 of 1 targets met.", "missed: look-up"]


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Figure(61.23), "61.2 s"),
        (Figure(0.1234), "123 ms"),
        (Figure(4.2e-6), "4.20 µs"),
        (Figure(1234.4, "MB"), "1,234 MB"),
        (Figure(1290.2, "calls/s"), "1,290/s"),
        (Figure(0.9545, "share"), "95.5 %"),
        (Figure(1976.0, "tokens"), "1,976 tokens"),
    ],
)
def test_quantities_are_written_as_people_write_them(figure: Figure, text: str) -> None:
    assert amount(figure.median, figure.unit) == text


def _star(points: int) -> str:
    """Return four centres, each with points of its own and with two that all share, as N-Triples."""
    lines: list[str] = []
    for centre in range(4):
        for point in range(points):
            name = f"Point {point} of {centre}" if point > 1 else f"Shared point {point}"
            head = f"<http://ex.org/point{centre if point > 1 else ''}-{point}>"
            lines.append(f"{head} <http://ex.org/near> <http://ex.org/centre{centre}> .")
            lines.append(f'{head} <http://www.w3.org/2000/01/rdf-schema#label> "{name}"@en .')
    return "\n".join(lines) + "\n"


def test_graphs_of_growing_size_are_measured_and_drawn(tmp_path: Path) -> None:
    source = tmp_path / "star.nt"
    star = _star(60).replace("http://e.org/", "http://www.wikidata.org/entity/Q")
    source.write_text(star, encoding="utf-8")
    cache = tmp_path / "cache"
    cache.mkdir()
    console = Console(file=io.StringIO())
    bench = Bench(open_source(source, cache), cache=cache, console=console, size=4, repeats=1, with_peers=False)

    section = asyncio.run(measure_sizes(bench, (1, 2), tmp_path / "results" / "scale.svg"))

    first, second = (len(star.splitlines()) / 1e6 * times for times in (1, 2))
    assert [line.what for line in section.lines if line.what.endswith(": import")] == [
        f"{first:.1f} M: import",
        f"{second:.1f} M: import",
    ]
    assert {line.base.ratio > 0 for line in section.lines if line.base is not None} == {True}
    drawn = ET.fromstring((tmp_path / "results" / "scale.svg").read_text(encoding="utf-8"))  # noqa: S314 - our own
    titles = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"import, seconds", "look-up, ms", "paths, ms", "ours"} <= set(titles)
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}circle"))) >= 8
