"""What every method is given, and what it gives back."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from kg_agents.evidence.answers import GivenAnswer, Status
from kg_agents.evidence.ledger import Ledger
from kg_agents.evidence.values import IdLabels, Shown, Triple
from kg_agents.experience import Learned
from kg_agents.llm import Models
from kg_agents.llm.dialogue import Dialogue, Limits, Task, whole
from kg_agents.tools.client import Toolbox
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_eval.metrics.matching import said
from kg_prompts import Prompt

_BRACED: Final = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the entities that it is about as the graph calls them: id and label."""

    question: str
    entities: tuple[tuple[str, str], ...] = ()
    graph_name: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        """The entities by id."""
        return tuple(entity for entity, _ in self.entities)


@dataclass(frozen=True, slots=True)
class Means:
    """What a question is answered with.

    Args:
        models: The models.
        tools: The tools of the graph.
        seed: What dice begin with.
        graphs: The graphs of the server, where it serves several.
        unreadable: How many replies could not be read, even when asked again, by what they were for.
    """

    models: Models
    tools: Toolbox
    seed: int = 0
    graphs: tuple[str, ...] = ()
    unreadable: Counter[str] = field(default_factory=Counter[str])

    def talk(self, limits: Limits | None = None) -> Dialogue:
        """Return a new dialogue with the model."""
        return Dialogue(self.models.llm, limits or Limits(), unreadable=self.unreadable)

    @property
    def graph(self) -> KnowledgeGraph:
        """The tools as typed calls."""
        return KnowledgeGraph(self.tools, graphs=self.graphs)


@dataclass(frozen=True, slots=True)
class MethodAnswer:
    """What a method answers.

    Args:
        prediction: What published scripts read: its last reply, or the answers joined by commas.
        answers: The answers, each with its source.
        status: What came of the question.
        stop_reason: Why it ended, in a word.
        explanation: The same in a sentence, where it did not end with an answer.
        model_answer: What the model said by itself, which does not count.
        learned: What other questions can learn from it; None where that is nothing.
    """

    prediction: str
    answers: tuple[GivenAnswer, ...]
    status: Status
    stop_reason: str = "answered"
    explanation: str = ""
    model_answer: tuple[str, ...] = ()
    learned: Learned | None = None


class Method(Protocol):
    """Answers questions."""

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """Return the answer to a question.

        Raises:
            RunEnded: A limit is reached, or the model fails.
            ToolError: The graph does not answer.
        """
        ...


def task(prompt: Prompt, purpose: str, reply_tokens: int, temperature: float) -> Task:
    """Return what a model is asked by a prompt that cannot be shortened."""
    return Task(purpose, whole(prompt, "what the method puts there"), reply_tokens, temperature)


async def reply_to(talk: Dialogue, asked: Task) -> str:
    """Return a reply as it is, whatever it says."""
    return await talk.ask(asked, str)


def answer_of(
    reply: str, facts: Sequence[Triple] = (), starts: Iterable[str] = (), labels: IdLabels | None = None
) -> MethodAnswer:
    """Return what a reply answers: what stands in braces, or all of it where there are none.

    Args:
        reply: The reply.
        facts: What the method found in the graph; what one of them names is an answer from the graph.
        starts: What the question is about, by id.
        labels: What ids are called.
    """
    texts = said(_BRACED.findall(reply) or [reply])
    ledger = Ledger()
    ledger.add(Shown(tuple(facts), labels=labels or IdLabels()))
    answers = ledger.as_shown(texts, "", tuple(starts))
    return MethodAnswer(reply, answers, "answered" if answers else "not_in_graph")
