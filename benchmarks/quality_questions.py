"""How often `observe` shows what a question asks for."""

import json
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import BaseModel, ConfigDict

from kg_adapters.protocol import KGAdapter
from kg_adapters.surroundings import Longs, Surroundings
from kg_server.budget import token_count
from kg_server.observation.answer import observation
from kg_server.observation.reach import Reach
from kg_server.observation.result import ObserveResult
from kg_server.observation.scoring import Floats, Scorer
from kg_server.observation.wording import Inquiry

QUESTIONS: Final = Path(__file__).parents[2] / "shared" / "data" / "simplequestions-dev.jsonl"
ANSWER_TOKENS: Final = 2_000
GROUP: Final = 6
"""How many columns a group has before its far ends."""
_FIRST: Final = (1, 5, 10)


class Question(BaseModel):
    """A question about a topic; every edge over the relation in the direction is a right answer."""

    model_config = ConfigDict(frozen=True)

    question: str
    topic: str
    relation: str
    direction: str
    answer: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """At what place the first right group stands, from 1, or None; whether it names a far end; the answer's tokens."""

    place: int | None
    answered: bool
    tokens: int


@dataclass(frozen=True, slots=True)
class Quality:
    """The outcomes of one scorer over all questions."""

    outcomes: tuple[Outcome, ...]

    @property
    def reciprocal_rank(self) -> float:
        """The mean of one over the place; 0 where nothing right was found."""
        return self._mean(lambda each: 0.0 if each.place is None else 1 / each.place)

    @property
    def answered(self) -> float:
        """The share of the questions whose default answer shows a right fact."""
        return self._mean(lambda each: float(each.answered))

    def first(self, most: int) -> float:
        """Return the share of the questions with a right group among the first ones."""
        return self._mean(lambda each: float(each.place is not None and each.place <= most))

    def figures(self) -> dict[str, float]:
        """Return every figure under its name."""
        shares = {"first" if most == 1 else f"first {most}": self.first(most) for most in _FIRST}
        tokens = statistics.median(each.tokens for each in self.outcomes) if self.outcomes else 0
        return {"MRR": self.reciprocal_rank, **shares, "in the answer": self.answered, "median tokens": tokens}

    def _mean(self, value: Callable[[Outcome], float]) -> float:
        return sum(value(each) for each in self.outcomes) / max(1, len(self.outcomes))


class RandomScorer:
    """Orders by dice, the same in every run: what is reached without looking."""

    name = "dice"

    def __init__(self) -> None:
        self._dice = random.Random(7)  # noqa: S311 - the same order every time is the point

    async def score(self, asked: Inquiry, around: Surroundings, edges: Longs) -> Floats:
        """See `Scorer`."""
        del asked, around
        return np.array([self._dice.random() for _ in edges], dtype=np.float32)


def read_questions(path: Path = QUESTIONS) -> list[Question]:
    """Read the questions, one JSON object a line."""
    with path.open(encoding="utf-8") as lines:
        return [Question.model_validate(json.loads(line)) for line in lines]


async def ask_all(
    graph: KGAdapter, scorer: Scorer, questions: Sequence[Question], *, hops: int, told: Callable[[], None]
) -> Quality:
    """Observe the topic of each question.

    Args:
        graph: Where the answers are.
        scorer: What is measured.
        questions: What to ask.
        hops: How far to look.
        told: Called after each question.
    """
    outcomes: list[Outcome] = []
    for question in questions:
        outcomes.append(await outcome(graph, scorer, question, hops))
        told()
    return Quality(tuple(outcomes))


async def outcome(graph: KGAdapter, scorer: Scorer, question: Question, hops: int) -> Outcome:
    """Observe the topic of one question."""
    answer = await observation(
        graph,
        scorer,
        question=question.question,
        entities=[question.topic],
        reach=Reach(hops=hops, timeout_s=600),
        max_tokens=ANSWER_TOKENS,
        on_hop=_not_told,
    )
    assert isinstance(answer.result, ObserveResult)
    groups = answer.result.groups
    places = [place for place, row in enumerate(groups, 1) if _is_right(question, row)]
    right = [place for place in places if len(groups[place - 1]) > GROUP]
    return Outcome(min(places, default=None), bool(right), token_count(answer.text))


def _is_right(question: Question, row: Sequence[str]) -> bool:
    """Say whether a group is of the question's topic, relation and direction, seen from either end."""
    entity, relation, direction, *_ = row
    if relation != question.relation:
        return False
    return entity == question.topic if direction == question.direction else question.topic in row[GROUP:]


async def _not_told(hop: int) -> None:
    del hop
