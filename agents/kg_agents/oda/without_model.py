"""ODA without a model: it acts, reflects and answers by what is most like the question."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from kg_agents.graph_values import Observed, Triple
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.llm import Completion, LlmError, Message
from kg_agents.oda.ablations import OdaBySimilarReflection
from kg_agents.oda.agent import OnStep, ignore_step
from kg_agents.oda.replies import Action
from kg_agents.oda.run import NOTHING_OBSERVED, Run
from kg_agents.oda.settings import OdaSettings

MOST_ANSWERS: Final = 5


class NoModel:
    """Stands where a model would, and is never asked."""

    name = "none"

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        purpose: str,
        temperature: float,
        max_tokens: int,
        top_p: float | None = None,
    ) -> Completion:
        """See `Llm`.

        Raises:
            LlmError: Always.
        """
        del messages, temperature, max_tokens, top_p
        raise LlmError(f"There is no model to ask for {purpose!r}.")


class OdaWithoutModel(OdaBySimilarReflection):
    """Explores the entities of the question, keeps what is most like it, and answers with the far ends of the best.

    It is for trying out, and a baseline. It takes one hop: what lies further, only a model can judge.

    Args:
        graph: The graph, through its tools.
        settings: Parameters and limits.
        on_step: Told of every step.
        clock: See `ODA`.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        *,
        settings: OdaSettings | None = None,
        on_step: OnStep = ignore_step,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(NoModel(), graph, settings=settings, on_step=on_step, clock=clock)

    async def _observe(self, run: Run) -> Observed:
        # Once everything was looked at, there is nothing left to choose by what lies near.
        return await super()._observe(run) if run.waiting else NOTHING_OBSERVED

    async def _act(self, run: Run, observation: Observed) -> Action:
        del observation
        if run.waiting:
            return Action("GetNeighbor", run.waiting[:1], "It is named in the question and was not looked at yet.")
        return Action("Answer", (), "Everything that the question names was looked at.")

    async def _conclude(self, run: Run) -> tuple[str, ...]:
        ranked = sorted(run.facts, key=lambda fact: (-run.scores.get(fact, 0.0), fact))
        run.facts = tuple(ranked)
        ends = dict.fromkeys(_far_end(fact, run.asked) for fact in ranked)
        return tuple(run.labels.nodes.get(end, end) for end in ends)[:MOST_ANSWERS]


def _far_end(fact: Triple, near: Sequence[str]) -> str:
    head, _, tail = fact
    return head if tail in near and head not in near else tail
