"""The score of one outcome in each metric, and what else is measured of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from kg_agents.evidence.matching import fold
from kg_eval.metrics import tog_em
from kg_eval.metrics.matching import SET_RIGHT, first_is_right, is_right, one_by_one, rouge_l, said, set_f1
from kg_eval.outcomes import Outcome
from kg_eval.questions import BenchmarkName

MetricName: TypeAlias = Literal["tog-em", "hits@1", "f1", "set", "exact", "rouge-l"]

Measure: TypeAlias = Callable[[Outcome], float | None]
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


def texts_of(outcome: Outcome) -> tuple[str, ...]:
    """Return the answers of an outcome, each once; what only says that there is none is no answer."""
    return said(each.text for each in outcome.answers)


def score(outcome: Outcome, metric: MetricName) -> float | None:
    """Return the score of an outcome, from 0 to 1; None where it was not asked, or nothing tells right from wrong.

    Of a question that the graph cannot answer it is right to abstain, in every metric.
    """
    if outcome.skipped or not outcome.record.scored:
        return None
    if not outcome.record.answerable:
        return float(not texts_of(outcome))
    return float(_SCORES[metric](outcome))


def published_tog_em(outcomes: Iterable[Outcome]) -> dict[str, float]:
    """Return the scores of the published script of the Think-on-Graph line, by the id of the question.

    Its denominator is all records, so that what was skipped is wrong; a question that is asked twice takes the first
    answers for right both times.
    """
    golds: dict[str, tuple[str, ...]] = {}
    found: dict[str, float] = {}
    for outcome in outcomes:
        record = outcome.record
        right = golds.setdefault(record.question, record.published or tuple(each.text for each in record.golds))
        found[record.id] = float(not outcome.skipped and tog_em.published(outcome.prediction, right) == "right")
    return found


def _named(outcome: Outcome) -> Mapping[str, Sequence[str]]:
    return {each.text: each.entities for each in outcome.answers}


def _contained(outcome: Outcome) -> bool:
    """Return whether the prediction and a right answer contain each other, or an answer says one in other words."""
    golds, named = outcome.record.golds, _named(outcome)
    each = one_by_one(texts_of(outcome), golds, 0, named)
    return tog_em.mended(outcome.prediction, golds) or any(is_right(t, gold, 0, named) for t in each for gold in golds)


def _exact(outcome: Outcome) -> bool:
    names = (name for gold in outcome.record.golds for name in gold.names)
    return fold(tog_em.in_braces(outcome.prediction)) in {*map(fold, names), fold(_joined(outcome))}


def _rouge(outcome: Outcome) -> float:
    """Return ROUGE-L, with what says a right answer in other words, as a date in another style, in its words."""
    golds, named, right = outcome.record.golds, _named(outcome), _joined(outcome)
    each = one_by_one(texts_of(outcome), golds, 0, named)
    meant = (next((gold.text for gold in golds if is_right(text, gold, 0, named)), text) for text in each)
    return max(rouge_l(tog_em.in_braces(outcome.prediction), right), rouge_l(", ".join(meant), right))


def _joined(outcome: Outcome) -> str:
    return ", ".join(each.text for each in outcome.record.golds)


_SCORES: Final[Mapping[MetricName, Callable[[Outcome], float]]] = {
    "tog-em": _contained,
    "hits@1": lambda outcome: first_is_right(texts_of(outcome), outcome.record.golds, _named(outcome)),
    "f1": lambda outcome: set_f1(texts_of(outcome), outcome.record.golds, _named(outcome)),
    "set": lambda outcome: set_f1(texts_of(outcome), outcome.record.golds, _named(outcome)) >= SET_RIGHT,
    "exact": _exact,
    "rouge-l": _rouge,
}
METRICS: Final[tuple[MetricName, ...]] = tuple(_SCORES)


def _asked(measure: Callable[[Outcome], float]) -> Measure:
    return lambda outcome: None if outcome.skipped else float(measure(outcome))


def _first_from(*sources: str) -> Measure:
    return _asked(lambda outcome: bool(texts_of(outcome)) and outcome.answers[0].source in sources)


def _unanswerable(outcome: Outcome) -> float | None:
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
