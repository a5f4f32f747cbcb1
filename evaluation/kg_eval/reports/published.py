"""The figures that the papers print."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

_REFERENCE: Final = {"tog-em": "GPT-4", "rouge-l": "Llama-3.1-70B-Instruct"}
"""The model whose figures stand beside those of any other, by metric."""


@dataclass(frozen=True, slots=True)
class Published:
    """One figure of a paper, in percent."""

    table: str
    benchmark: str
    group: str
    metric: str
    method: str
    model: str
    value: float


@cache
def published_figures() -> tuple[Published, ...]:
    """Return the figures of both papers' tables of results."""
    text = files("kg_eval").joinpath("reports/published.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return tuple(Published(**{**row, "value": float(row["value"])}) for row in rows)  # type: ignore[arg-type]


def printed(benchmark: str, group: str, metric: str, method: str, model: str) -> Published | None:
    """Return the figure to stand beside a run: of the same model if there is one, else of the papers' strongest."""
    found = [
        each
        for each in published_figures()
        if (each.benchmark, each.group, each.metric, each.method) == (benchmark, group, metric, method)
    ]
    return _of_model(found, model) or _of_model(found, _REFERENCE.get(metric, "")) or next(iter(found), None)


def _of_model(figures: Iterable[Published], model: str) -> Published | None:
    wanted = model.rpartition("/")[2].lower()
    return next((each for each in figures if each.model.lower() == wanted), None)
