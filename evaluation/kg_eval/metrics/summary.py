"""The figures of a run: means with intervals, verdicts of judges, sources and costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kg_agents.llm import Llm
from kg_agents.llm.dialogue import Dialogue, Limits, Task, fitting
from kg_agents.llm.texts import without_thinking
from kg_eval.metrics.scores import MEASURES, METRICS, published_tog_em, score, texts_of
from kg_eval.outcomes import Outcome
from kg_prompts import render
from kg_prompts.evaluation import VerdictPrompt

RESAMPLES: Final = 2_000
LEVEL: Final = 0.95

_AT_ONCE: Final = 2_000_000
"""How many values are drawn at once."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean with its 95 % interval, and over how many questions."""

    value: float
    low: float
    high: float
    count: int


def mean_of(values: Sequence[float], seed: int = 0, resamples: int = RESAMPLES) -> Figure | None:
    """Return the mean of values with its interval; None where there is no value."""
    if not values:
        return None
    means = _resampled_means(values, np.random.default_rng(seed), resamples)
    return _figure(float(np.mean(values)), means, len(values))


def macro_mean_of(groups: Mapping[str, Sequence[float]], seed: int = 0, resamples: int = RESAMPLES) -> Figure | None:
    """Return the mean of the means of groups; each group is drawn from by itself."""
    filled = [values for values in groups.values() if values]
    if not filled:
        return None
    dice = np.random.default_rng(seed)
    means = np.mean([_resampled_means(values, dice, resamples) for values in filled], axis=0)
    value = float(np.mean([np.mean(values) for values in filled]))
    return _figure(value, means, sum(map(len, filled)))


def difference_of(
    ours: Mapping[str, float], theirs: Mapping[str, float], seed: int = 0, resamples: int = RESAMPLES
) -> Figure | None:
    """Return by how much one mean is larger than another over the questions, by id, that both have."""
    return mean_of([value - theirs[id_] for id_, value in ours.items() if id_ in theirs], seed, resamples)


def _resampled_means(values: Sequence[float], dice: np.random.Generator, resamples: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    rows = max(1, _AT_ONCE // len(array))
    parts = [
        array[dice.integers(0, len(array), size=(min(rows, resamples - first), len(array)))].mean(axis=1)
        for first in range(0, resamples, rows)
    ]
    return np.concatenate(parts)


def _figure(value: float, means: NDArray[np.float64], count: int) -> Figure:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Figure(value, float(low), float(high), count)


JudgeVerdict: TypeAlias = Literal["yes", "no", "unreadable"]

Verdicts: TypeAlias = Mapping[str, Mapping[str, JudgeVerdict]]
"""What judges said: by the judge, and then by the id of the question."""

TEMPERATURE: Final = 0.01
TOP_P: Final = 1.0
_REPLY_TOKENS: Final = 256
"""Room for a model that thinks aloud before it says its word."""


async def judge(outcome: Outcome, llm: Llm) -> JudgeVerdict:
    """Have a model say whether an outcome is right; where there is no answer, or no right one, it is not asked.

    Raises:
        RunEnded: The model fails.
    """
    if not (answered := bool(texts_of(outcome))) or not outcome.record.golds:
        return "no" if answered or outcome.record.answerable else "yes"
    prompt = render(
        VerdictPrompt(
            question=outcome.record.question,
            prediction=outcome.prediction,
            gold=", ".join(each.text for each in outcome.record.golds),
        )
    )
    task = Task("verdict", fitting(lambda: [prompt], "the question and its answers"), _REPLY_TOKENS, TEMPERATURE, TOP_P)
    return await Dialogue(llm, Limits()).ask(task, read_verdict)


def read_verdict(reply: str) -> JudgeVerdict:
    """Return what a judge says; only `Yes` or `No` counts."""
    word = without_thinking(reply).strip(" \t\r\n.!*\"'`").lower()
    return "yes" if word == "yes" else "no" if word == "no" else "unreadable"


def judged(verdicts: Mapping[str, JudgeVerdict]) -> dict[str, float]:
    """Return verdicts as scores: what could not be read is not right."""
    return {id_: float(verdict == "yes") for id_, verdict in verdicts.items()}


def judge_metric(judge_name: str) -> str:
    """Return what the score by a judge is called."""
    return f"judge ({judge_name})"


OFFICIAL: str = "tog-em (official)"
"""What the published script's variant is called."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of a run.

    Args:
        asked: How many questions were asked.
        skipped: How many were not, because the graph has none of their entities.
        missing_topics: How many entities of questions the graph does not have.
        without_gold: How many were asked that no metric can score.
        metrics: By name.
        groups: Each metric by group of questions and by level; `macro` is the mean of the groups.
        measures: What is told beside accuracy, by name.
        cost: The price of all.
    """

    asked: int
    skipped: int
    missing_topics: int
    without_gold: int
    metrics: Mapping[str, Figure]
    groups: Mapping[str, Mapping[str, Figure]]
    measures: Mapping[str, Figure]
    cost: float


def summary_of(
    outcomes: Sequence[Outcome],
    verdicts: Verdicts | None = None,
    *,
    official: bool = False,
    seed: int = 0,
) -> Summary:
    """Return the figures of a run.

    Args:
        outcomes: What came of each question.
        verdicts: What judges said of them.
        official: Whether the published script's variant of the exact match is told as well.
        seed: What the dice of the intervals begin with.
    """
    values = scores_of(outcomes, verdicts or {}, official=official)
    records = [outcome.record for outcome in outcomes]
    groups = {each.id: each.group for each in records}
    levels = {each.id: f"level {each.level}" for each in records if each.level}
    measured = {name: [of(outcome) for outcome in outcomes] for name, of in MEASURES.items()}
    asked = [outcome for outcome in outcomes if not outcome.skipped]
    return Summary(
        asked=len(asked),
        skipped=len(outcomes) - len(asked),
        missing_topics=sum(len(outcome.missing_topics) for outcome in outcomes),
        without_gold=sum(not outcome.record.scored for outcome in asked),
        metrics=_figures({name: [*each.values()] for name, each in values.items()}, seed),
        groups={
            name: found
            for name, each in values.items()
            if (found := {**_by_group(each, groups, seed), **_figures(_parted(each, levels), seed)})
        },
        measures=_figures({name: [each for each in of if each is not None] for name, of in measured.items()}, seed),
        cost=sum(outcome.usage.cost for outcome in outcomes),
    )


def scores_of(
    outcomes: Sequence[Outcome], verdicts: Verdicts, *, official: bool = False
) -> dict[str, dict[str, float]]:
    """Return the scores of a run, by metric and by the id of the question."""
    found = {
        str(metric): {each.record.id: value for each in outcomes if (value := score(each, metric)) is not None}
        for metric in METRICS
    }
    found |= {judge_metric(name): judged(each) for name, each in verdicts.items()}
    if official:
        found[OFFICIAL] = published_tog_em(outcomes)
    return found


def _by_group(values: Mapping[str, float], groups: Mapping[str, str], seed: int) -> dict[str, Figure]:
    """Return the figures of each group and their mean; nothing where there is one group."""
    found = _parted(values, groups)
    if len(found) <= 1:
        return {}
    macro = macro_mean_of(found, seed)
    return {**_figures(found, seed), **({"macro": macro} if macro is not None else {})}


def _parted(values: Mapping[str, float], parts: Mapping[str, str]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for id_, value in values.items():
        if id_ in parts:
            found.setdefault(parts[id_], []).append(value)
    return found


def _figures(values: Mapping[str, Sequence[float]], seed: int) -> dict[str, Figure]:
    return {name: figure for name, each in values.items() if (figure := mean_of(each, seed)) is not None}
