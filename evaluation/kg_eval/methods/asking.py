"""Methods without a graph: a question as it is, with steps in words, and the majority of many replies."""

from collections import Counter
from dataclasses import dataclass

from kg_agents.dialogue import Dialogue
from kg_eval.methods.method import Asked, Means, MethodAnswer, answer_of, reply_to, task
from kg_eval.metrics.values import fold
from kg_prompts.evaluation import QuestionPrompt


@dataclass(frozen=True, slots=True)
class DirectSettings:
    """How a model is asked.

    Args:
        examples: Whether six examples are shown.
        temperature: How freely it chooses its words.
        reply_tokens: How long its reply may be.
    """

    examples: bool = True
    temperature: float = 0.0
    reply_tokens: int = 256


@dataclass(frozen=True, slots=True)
class ConsistencySettings:
    """How a model is asked many times.

    Args:
        samples: How often.
        examples: Whether six examples are shown.
        temperature: How freely it chooses its words.
        reply_tokens: How long its reply may be.
    """

    samples: int = 10
    examples: bool = True
    temperature: float = 0.7
    reply_tokens: int = 256


@dataclass(frozen=True, slots=True)
class Direct:
    """The question, and nothing else."""

    settings: DirectSettings

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """See `Method`."""
        return answer_of(await _reply(asked, means.talk(), self.settings, thinking=False))


@dataclass(frozen=True, slots=True)
class ChainOfThought:
    """The question, with the steps in words before the answer."""

    settings: DirectSettings

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """See `Method`."""
        return answer_of(await _reply(asked, means.talk(), self.settings, thinking=True))


@dataclass(frozen=True, slots=True)
class SelfConsistency:
    """Chains of thought, of which the majority is taken; of as many the first."""

    settings: ConsistencySettings

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """See `Method`."""
        talk = means.talk()
        replies = [await _reply(asked, talk, self.settings, thinking=True) for _ in range(self.settings.samples)]
        answers = [answer_of(reply) for reply in replies]
        votes = Counter(_vote(answer) for answer in answers)
        most = max(votes.values())
        return next(answer for answer in answers if votes[_vote(answer)] == most)


def _vote(answer: MethodAnswer) -> frozenset[str]:
    return frozenset(fold(each.text) for each in answer.answers)


async def _reply(
    asked: Asked, talk: Dialogue, settings: DirectSettings | ConsistencySettings, *, thinking: bool
) -> str:
    prompt = QuestionPrompt(question=asked.question, thinking=thinking, examples=settings.examples)
    return await reply_to(talk, task(prompt, "answer", settings.reply_tokens, settings.temperature))
