"""Scores of a run's outcomes: metrics, their intervals, and summaries by group."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import NormalDist
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kg_agents.evidence.answers import GivenAnswer, Status
from kg_agents.evidence.matching import fold
from kg_agents.evidence.values import split_graph
from kg_agents.llm import Llm, Usage
from kg_agents.llm.dialogue import Dialogue, Limits, Task, whole
from kg_agents.llm.texts import without_thinking
from kg_eval.metrics.matching import (
    SET_RIGHT,
    contains_match,
    first_is_right,
    in_braces,
    is_right,
    official_match,
    one_by_one,
    rouge_l,
    said,
    set_f1,
)
from kg_eval.questions import BenchmarkName, Record
from kg_prompts.evaluation import VerdictPrompt


@dataclass(frozen=True, slots=True)
class ScoredOutcome:
    """What came of one question, with the question and what is right, so that it can be scored again by itself.

    Args:
        record: The question.
        prediction: What published scripts read: the model's last reply, or the answers joined by commas.
        answers: The answers that count, the best first, each with its source and its evidence.
        model_answer: What the model said by itself, which counts for nothing.
        status: What came of it.
        stop_reason: Why the run ended, in a word.
        explanation: The same in a sentence, where it did not end with an answer.
        usage: What models used.
        tool_calls: How many calls of tools were made.
        fallbacks: How many observations spelling scored because the embedder was away or busy.
        seconds: How long it took.
        missing_topics: The entities of the question that the graph does not have.
        skipped: Why it was not asked at all; empty where it was.
        unreadable: How many replies could not be read, even when asked again, by what they were for.
    """

    record: Record
    prediction: str = ""
    answers: tuple[GivenAnswer, ...] = ()
    model_answer: tuple[str, ...] = ()
    status: Status = "stopped"
    stop_reason: str = ""
    explanation: str = ""
    usage: Usage = field(default_factory=Usage)
    tool_calls: int = 0
    fallbacks: int = 0
    seconds: float = 0.0
    missing_topics: tuple[str, ...] = ()
    skipped: str = ""
    unreadable: Mapping[str, int] = field(default_factory=dict[str, int])


MetricName: TypeAlias = Literal["tog-em", "hits@1", "f1", "set", "exact", "rouge-l"]

Measure: TypeAlias = Callable[[ScoredOutcome], float | None]
"""The value of one outcome; None where it has none."""

MAIN_METRIC: Final[Mapping[BenchmarkName, MetricName]] = {
    "qald10": "tog-em",
    "creak": "tog-em",
    "t-rex": "tog-em",
    "zero-shot-re": "tog-em",
    "webqsp": "hits@1",
    "grbench": "rouge-l",
    "kgdata": "tog-em",
    "simplequestions": "hits@1",
    "world": "set",
    "jsonl": "set",
}
"""The metric that a benchmark's figures are published in; of what is not published, the strictest."""


def texts_of(outcome: ScoredOutcome) -> tuple[str, ...]:
    """Return the answers of an outcome, each once; what only says that there is none is no answer."""
    return said(each.text for each in outcome.answers)


def score(outcome: ScoredOutcome, metric: MetricName) -> float | None:
    """Return the score of an outcome, from 0 to 1; None where it was not asked, or nothing tells right from wrong.

    Of a question that the graph cannot answer it is right to abstain, in every metric.
    """
    if outcome.skipped or not outcome.record.scored:
        return None
    if not outcome.record.answerable:
        return float(not texts_of(outcome))
    return float(_SCORES[metric](outcome))


def published_tog_em(outcomes: Iterable[ScoredOutcome]) -> dict[str, float]:
    """Return the scores of the published script of the Think-on-Graph line, by the id of the question.

    Its denominator is all records, so that what was skipped is wrong; a question that is asked twice takes the first
    answers for right both times.
    """
    golds: dict[str, tuple[str, ...]] = {}
    found: dict[str, float] = {}
    for outcome in outcomes:
        record = outcome.record
        right = golds.setdefault(record.question, record.published or tuple(each.text for each in record.golds))
        found[record.id] = float(not outcome.skipped and official_match(outcome.prediction, right) == "right")
    return found


def _named(outcome: ScoredOutcome) -> Mapping[str, Sequence[str]]:
    return {each.text: tuple(split_graph(entity)[0] for entity in each.entities) for each in outcome.answers}


def _contained(outcome: ScoredOutcome) -> bool:
    """Return whether the prediction and a right answer contain each other, or an answer says one in other words."""
    golds, named = outcome.record.golds, _named(outcome)
    each = one_by_one(texts_of(outcome), golds, 0, named)
    return contains_match(outcome.prediction, golds) or any(is_right(t, gold, 0, named) for t in each for gold in golds)


def _exact(outcome: ScoredOutcome) -> bool:
    names = (name for gold in outcome.record.golds for name in gold.names)
    return fold(in_braces(outcome.prediction)) in {*map(fold, names), fold(_joined(outcome))}


def _rouge(outcome: ScoredOutcome) -> float:
    """Return ROUGE-L, with what says a right answer in other words, as a date in another style, in its words."""
    golds, named, right = outcome.record.golds, _named(outcome), _joined(outcome)
    each = one_by_one(texts_of(outcome), golds, 0, named)
    meant = (next((gold.text for gold in golds if is_right(text, gold, 0, named)), text) for text in each)
    return max(rouge_l(in_braces(outcome.prediction), right), rouge_l(", ".join(meant), right))


def _joined(outcome: ScoredOutcome) -> str:
    return ", ".join(each.text for each in outcome.record.golds)


_SCORES: Final[Mapping[MetricName, Callable[[ScoredOutcome], float]]] = {
    "tog-em": _contained,
    "hits@1": lambda outcome: first_is_right(texts_of(outcome), outcome.record.golds, _named(outcome)),
    "f1": lambda outcome: set_f1(texts_of(outcome), outcome.record.golds, _named(outcome)),
    "set": lambda outcome: set_f1(texts_of(outcome), outcome.record.golds, _named(outcome)) >= SET_RIGHT,
    "exact": _exact,
    "rouge-l": _rouge,
}

METRICS: Final[tuple[MetricName, ...]] = tuple(_SCORES)


def _asked(measure: Callable[[ScoredOutcome], float]) -> Measure:
    return lambda outcome: None if outcome.skipped else float(measure(outcome))


def _first_from(*sources: str) -> Measure:
    return _asked(lambda outcome: bool(texts_of(outcome)) and outcome.answers[0].source in sources)


def _unanswerable(outcome: ScoredOutcome) -> float | None:
    return None if outcome.skipped or outcome.record.answerable else float(not texts_of(outcome))


MEASURES: Final[Mapping[str, Measure]] = {
    "answered from the graph": _first_from("graph"),
    "answered by computing": _first_from("computed"),
    "answered from the model": _first_from("model"),
    "with evidence": _asked(lambda outcome: any(each.facts for each in outcome.answers)),
    "abstained": _asked(lambda outcome: not texts_of(outcome)),
    "right on unanswerable": _unanswerable,
    "model calls": _asked(lambda outcome: outcome.usage.calls),
    "tool calls": _asked(lambda outcome: outcome.tool_calls),
    "prompt tokens": _asked(lambda outcome: outcome.usage.prompt_tokens),
    "reply tokens": _asked(lambda outcome: outcome.usage.completion_tokens),
    "unreadable replies": _asked(lambda outcome: sum(outcome.unreadable.values())),
    "seconds": _asked(lambda outcome: outcome.seconds),
    "cost": _asked(lambda outcome: outcome.usage.cost),
}
"""What is told beside every accuracy, of each question that was asked."""

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
    """Return the mean of values with its interval; None where there is no value.

    Of values that are right or wrong, 1 or 0, it is Wilson's score interval: drawn from twenty right of twenty, every
    mean would be 1.
    """
    if values and set(values) <= {0.0, 1.0}:
        return _share(values)
    return _resampled(values, seed, resamples)


def _share(values: Sequence[float]) -> Figure:
    number, share = len(values), float(np.mean(values))
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    middle = (share + z * z / (2 * number)) / (1 + z * z / number)
    half = z * sqrt(share * (1 - share) / number + (z / (2 * number)) ** 2) / (1 + z * z / number)
    return Figure(share, min(share, middle - half), max(share, middle + half), number)


def _resampled(values: Sequence[float], seed: int, resamples: int) -> Figure | None:
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
    return _resampled([value - theirs[id_] for id_, value in ours.items() if id_ in theirs], seed, resamples)


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


async def judge(outcome: ScoredOutcome, llm: Llm) -> JudgeVerdict:
    """Have a model say whether an outcome is right; where there is no answer, or no right one, it is not asked.

    Raises:
        RunEnded: The model fails.
    """
    if not (answered := bool(texts_of(outcome))) or not outcome.record.golds:
        return "no" if answered or outcome.record.answerable else "yes"
    prompt = VerdictPrompt(question=outcome.record.question, prediction=outcome.prediction, gold=_joined(outcome))
    task = Task("verdict", whole(prompt, "the question and its answers"), _REPLY_TOKENS, TEMPERATURE, TOP_P)
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
        measures: What is reported beside accuracy, by name.
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
    outcomes: Sequence[ScoredOutcome],
    verdicts: Verdicts | None = None,
    *,
    official: bool = False,
    seed: int = 0,
) -> Summary:
    """Return the figures of a run.

    Args:
        outcomes: What came of each question.
        verdicts: What judges said of them.
        official: Whether the published script's variant of the exact match is reported as well.
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
    outcomes: Sequence[ScoredOutcome], verdicts: Verdicts, *, official: bool = False
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
