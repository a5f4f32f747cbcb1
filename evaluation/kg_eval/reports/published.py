"""The figures that the papers print, and which of them may stand beside a run."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Final

from kg_agents.llm.dialogue import Limits
from kg_eval.methods.catalog import WITHOUT_GRAPH, method_of
from kg_eval.plan import RunPlan

DROP: Final = "drop"
"""The metric of what a paper says in words: by how much at most a method is worse without a part."""

_REFERENCES: Final = ("gpt-4", "llama-3.1-70b-instruct")
"""The models whose figures stand beside those of any other: each paper's strongest."""

_FREE: Final = frozenset(
    {
        *(field.name for field in fields(Limits)),
        *("ablation", "manner", "closed_book", "seed", "model_seed", "structured", "judge_unreadable"),
        *("examples_folder", "definition_file"),
    }
)
"""Parameters that make no other method of what the papers describe, or whose values are compared by themselves."""


@dataclass(frozen=True, slots=True)
class Published:
    """One figure of a paper, in percent or seconds.

    `variant` is what was taken out of the method or replaced, and `sample` of how many questions it is, where not all.
    """

    table: str
    benchmark: str
    group: str
    metric: str
    method: str
    model: str
    value: float
    variant: str = ""
    sample: int | None = None


@cache
def published_figures() -> tuple[Published, ...]:
    """Return the figures of both papers' tables of results, and those that their texts give of a figure."""
    text = files("kg_eval").joinpath("reports/published.csv").read_text(encoding="utf-8")
    return tuple(
        Published(**{**row, "value": float(row["value"]), "sample": int(row["sample"]) if row["sample"] else None})  # type: ignore[arg-type]
        for row in csv.DictReader(text.splitlines())
    )


def printed(plan: RunPlan, group: str, metric: str) -> Published | None:
    """Return the figure to stand beside a run: of the same model if there is one, else of the papers' strongest.

    There is none beside a run whose parameters are not the paper's, nor the seconds of another model.

    Args:
        plan: The run; what is taken out of its method has figures of its own, or none.
        group: The group of questions; empty for all.
        metric: The metric; the official variant of one has the figures of the paper too.
    """
    wanted = (plan.benchmark, group, plan.method, plan.parameters.get("ablation", ""))
    found = [
        each
        for each in published_figures()
        if (each.benchmark, each.group, each.method, each.variant) == wanted and _is_metric(each.metric, metric)
    ]
    if not found or not _as_published(plan):
        return None
    model = _name(plan.model)
    of_model = [each for each in found if each.model.lower() == model]
    if metric == "seconds":
        return next(iter(of_model), None)
    strongest = [each for name in _REFERENCES for each in found if each.model.lower() == name]
    return _of_sample(of_model or strongest or found, plan.sample)


def drop_without(plan: RunPlan) -> Published | None:
    """Return what a paper says of the part that a run leaves out, where it gives that in words alone."""
    ablation = plan.parameters.get("ablation")
    said = (each for each in published_figures() if each.metric == DROP and each.variant == ablation)
    return next((each for each in said if each.method == plan.method and _as_published(plan)), None)


def _of_sample(figures: Sequence[Published], sample: int | None) -> Published:
    return next((each for each in figures if each.sample == sample), figures[0])


def _is_metric(published: str, metric: str) -> bool:
    """Say whether a metric is that of a figure: judges by the beginning of their names, as in `judge (Qwen2.5-72B)`."""
    if published.startswith("judge (") and metric.startswith("judge ("):
        return _name(metric[7:-1]).startswith(published[7:-1].lower())
    return published == metric.removesuffix(" (official)")


def _name(model: str) -> str:
    return model.rpartition("/")[2].lower()


def _as_published(plan: RunPlan) -> bool:
    """Say whether a run does what the papers did: their parameters, entities given, nothing learned."""
    if plan.learn or (plan.linking == "model" and plan.method not in WITHOUT_GRAPH):
        return False
    manner = ["manner=paper"] if plan.method in {"oda", "graph-counselor"} else []
    if manner and plan.parameters.get("manner") != "paper" and "ablation" not in plan.parameters:
        return False
    kept = [f"{name}={value}" for name, value in plan.parameters.items() if name not in _FREE]
    return method_of(plan.method, [*kept, *manner]) == method_of(plan.method, manner)
