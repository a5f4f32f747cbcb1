"""The figures of a run: each metric and measure as a mean with its interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kg_eval.metrics.intervals import Figure, macro_mean_of, mean_of
from kg_eval.metrics.judging import JudgeVerdict, judged
from kg_eval.metrics.scores import MEASURES, METRICS, published_tog_em, score
from kg_eval.outcomes import Outcome

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
        unreadable: How many verdicts of the judge could not be read.
        metrics: By name.
        groups: Each metric by group of questions; `macro` is the mean of the groups.
        measures: What is told beside accuracy, by name.
        cost: The price of all.
    """

    asked: int
    skipped: int
    missing_topics: int
    without_gold: int
    unreadable: int
    metrics: Mapping[str, Figure]
    groups: Mapping[str, Mapping[str, Figure]]
    measures: Mapping[str, Figure]
    cost: float


def summary_of(
    outcomes: Sequence[Outcome],
    verdicts: Mapping[str, JudgeVerdict] | None = None,
    *,
    official: bool = False,
    seed: int = 0,
) -> Summary:
    """Return the figures of a run.

    Args:
        outcomes: What came of each question.
        verdicts: What a judge said of them, by id.
        official: Whether the published script's variant of the exact match is told as well.
        seed: What the dice of the intervals begin with.
    """
    values = scores_of(outcomes, verdicts or {}, official=official)
    groups = {outcome.record.id: outcome.record.group for outcome in outcomes}
    measured = {name: [of(outcome) for outcome in outcomes] for name, of in MEASURES.items()}
    asked = [outcome for outcome in outcomes if not outcome.skipped]
    return Summary(
        asked=len(asked),
        skipped=len(outcomes) - len(asked),
        missing_topics=sum(len(outcome.missing_topics) for outcome in outcomes),
        without_gold=sum(not outcome.record.scored for outcome in asked),
        unreadable=sum(verdict == "unreadable" for verdict in (verdicts or {}).values()),
        metrics=_figures({name: [*each.values()] for name, each in values.items()}, seed),
        groups={name: found for name, each in values.items() if (found := _by_group(each, groups, seed))},
        measures=_figures({name: [each for each in of if each is not None] for name, of in measured.items()}, seed),
        cost=sum(outcome.usage.cost for outcome in outcomes),
    )


def scores_of(
    outcomes: Sequence[Outcome], verdicts: Mapping[str, JudgeVerdict], *, official: bool = False
) -> dict[str, dict[str, float]]:
    """Return the scores of a run, by metric and by the id of the question."""
    found = {
        str(metric): {each.record.id: value for each in outcomes if (value := score(each, metric)) is not None}
        for metric in METRICS
    }
    if verdicts:
        found["judge"] = judged(verdicts)
    if official:
        found[OFFICIAL] = published_tog_em(outcomes)
    return found


def _by_group(values: Mapping[str, float], groups: Mapping[str, str], seed: int) -> dict[str, Figure]:
    """Return the figures of each group and their mean; nothing where there is one group."""
    found: dict[str, list[float]] = {}
    for id_, value in values.items():
        found.setdefault(groups[id_], []).append(value)
    if len(found) <= 1:
        return {}
    macro = macro_mean_of(found, seed)
    return {**_figures(found, seed), **({"macro": macro} if macro is not None else {})}


def _figures(values: Mapping[str, Sequence[float]], seed: int) -> dict[str, Figure]:
    return {name: figure for name, each in values.items() if (figure := mean_of(each, seed)) is not None}
