"""The figures that the papers print."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from kg_eval.runs.plan import RunPlan

_REFERENCE: Final = {"tog-em": "GPT-4", "rouge-l": "Llama-3.1-70B-Instruct"}
"""The model whose figures stand beside those of any other, by metric."""


@dataclass(frozen=True, slots=True)
class Published:
    """One figure of a paper, in percent; `variant` is what was taken out of the method or replaced, if anything."""

    table: str
    benchmark: str
    group: str
    metric: str
    method: str
    model: str
    value: float
    variant: str = ""


@cache
def published_figures() -> tuple[Published, ...]:
    """Return the figures of both papers' tables of results."""
    text = files("kg_eval").joinpath("reports/published.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), restval="")
    return tuple(Published(**{**row, "value": float(row["value"])}) for row in rows)  # type: ignore[arg-type]


def printed(plan: RunPlan, group: str, metric: str) -> Published | None:
    """Return the figure to stand beside a run: of the same model if there is one, else of the papers' strongest.

    Args:
        plan: The run; what is taken out of its method has figures of its own, or none.
        group: The group of questions; empty for all.
        metric: The metric; the official variant of one has the figures of the paper too.
    """
    named = metric.removesuffix(" (official)")
    wanted = (plan.benchmark, group, named, plan.method, plan.parameters.get("ablation", ""))
    found = [
        each
        for each in published_figures()
        if (each.benchmark, each.group, each.metric, each.method, each.variant) == wanted
    ]
    return _of_model(found, plan.model) or _of_model(found, _REFERENCE.get(named, "")) or next(iter(found), None)


def _of_model(figures: Iterable[Published], model: str) -> Published | None:
    wanted = model.rpartition("/")[2].lower()
    return next((each for each in figures if each.model.lower() == wanted), None)
