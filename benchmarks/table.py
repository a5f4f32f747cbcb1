"""The table that people read."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.figures import TIMES, Figure, Line, Peer, Section, Target, Unit

_MISSING = "·"


def print_section(console: Console, section: Section) -> None:
    """Print one section with a column for each peer that takes part."""
    peers = list(dict.fromkeys(name for line in section.lines for name in line.peers))
    table = Table(title=section.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    columns = _columns(section.lines, peers)
    shown = {heading: cells for heading, cells in columns.items() if any(str(cell) != _MISSING for cell in cells)}
    for heading in shown:
        table.add_column(heading, justify="left" if heading == "what" else "right", overflow="fold")
    for row in zip(*shown.values(), strict=True):
        table.add_row(*row)
    console.print(table)
    for note in section.notes:
        console.print(f"  {note}", style="dim", highlight=False, markup=False)


def print_verdict(console: Console, sections: Sequence[Section]) -> None:
    """Print how many targets hold, and which do not."""
    judged = [line for section in sections for line in section.lines if line.met is not None]
    missed = [line for line in judged if not line.met]
    console.print(f"\n{len(judged) - len(missed)} of {len(judged)} targets met.", style="bold", highlight=False)
    for line in missed:
        console.print(f"  missed: {line.what}", style="red", highlight=False, markup=False)


def amount(value: float, unit: Unit) -> str:
    """Return a quantity as people write it, with three significant digits at most."""
    if unit == "MB":
        return f"{value:,.0f} MB"
    if unit == "calls/s":
        return f"{value:,.0f}/s"
    if unit == "share":
        return f"{100 * value:.1f} %"
    if unit in {"tokens", "calls", "characters"}:
        return f"{value:,.0f} {unit}"
    if value < 1e-3:
        return f"{_digits(value * 1e6)} µs"
    return f"{_digits(value * 1e3)} ms" if value < 1 else f"{_digits(value)} s"


def _columns(lines: Sequence[Line], peers: Sequence[str]) -> dict[str, list[str | Text]]:
    columns: dict[str, list[str | Text]] = {
        "what": [line.what for line in lines],
        "median": [Text(_median(line.ours), "bold") for line in lines],
        "p95": [_MISSING if line.ours.p95 is None else amount(line.ours.p95, line.ours.unit) for line in lines],
        "p90, worst": [_spread(line) for line in lines],
        "ratio": [_ratio(line) for line in lines],
        "target": [", ".join(_wish(line, target) for target in line.targets) or _MISSING for line in lines],
        "met": [_mark(line) for line in lines],
    }
    return columns | {name: [_peer(line.peers.get(name)) for line in lines] for name in peers}


def _spread(line: Line) -> str:
    """Return the other measures of spread where a target is about one of them."""
    if not any(target.aspect in {"p90", "worst"} for target in line.targets):
        return _MISSING
    spread = (line.ours.p90, line.ours.worst)
    return ", ".join(amount(value, line.ours.unit) for value in spread if value is not None) or _MISSING


def _ratio(line: Line) -> str:
    """Return what the figure is measured against, or else how much of its targets it takes."""
    if line.base is not None:
        return f"{line.base.ratio:.2f} {TIMES} {line.base.name} {_median(line.base.figure)}"
    if not line.targets or line.ours.unit == "share":
        return _MISSING
    return f"{max(line.reached(target) / target.limit for target in line.targets):.2f} {TIMES} target"


def _peer(peer: Peer | None) -> str | Text:
    return _MISSING if peer is None else Text(f"{_median(peer.figure)} ({_times(peer.ratio)})", "dim")


def _mark(line: Line) -> Text:
    if line.met is None:
        return Text(_MISSING)
    return Text("✓", "bold green") if line.met else Text("✗", "bold red")


def _wish(line: Line, target: Target) -> str:
    sign = "≥" if target.least else "≤"
    if target.aspect == "ratio":
        return f"{sign} {target.limit:g} {TIMES}"
    limit = f"{sign} {amount(target.limit, line.ours.unit)}"
    return limit if target.aspect == "median" else f"{target.aspect} {limit}"


def _median(figure: Figure) -> str:
    return amount(figure.median, figure.unit)


def _times(ratio: float) -> str:
    return f"{ratio:.0f}{TIMES}" if ratio >= 10 else f"{ratio:.1f}{TIMES}"


def _digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
