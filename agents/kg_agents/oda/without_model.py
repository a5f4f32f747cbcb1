"""Without a model: the facts around the entities of a question that are most like it, which are no answer."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from kg_agents.answers import AgentAnswer, Step, outcome_of
from kg_agents.dialogue import Dialogue, RunEnded
from kg_agents.graph_values import Labels, Triple
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.llm import Completion, LlmError, LlmRequest
from kg_agents.oda.agent import ENDINGS, ignore_step
from kg_agents.oda.prompting import OnStep
from kg_agents.parameters import OdaSettings
from kg_agents.tool_calls import ToolError

NO_MODEL: Final = "No model is set: these are the facts most like the question, and nobody has judged them."

_NEAR: Final = 200
"""How many triples are compared with the question."""


class NoModel:
    """Stands where a model would, and is never asked."""

    name = "none"

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`.

        Raises:
            LlmError: Always.
        """
        raise LlmError(f"There is no model to ask for {request.purpose!r}.")


class OdaWithoutModel:
    """Looks around the entities of a question, and shows what is most like it.

    It is for trying out, and a baseline. It answers nothing: whether a fact is what was asked for, only a model can
    judge.

    Args:
        graph: The graph, through its tools.
        settings: Parameters and limits.
        on_step: Told of every step.
        clock: Seconds, from any beginning.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        *,
        settings: OdaSettings | None = None,
        on_step: OnStep = ignore_step,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._graph = graph
        self._settings = settings or OdaSettings()
        self._on_step = on_step
        self._clock = clock

    async def answer(self, question: str, entities: Sequence[str], *, talk: Dialogue | None = None) -> AgentAnswer:
        """Return the facts around some entities that are most like a question, as facts and not as answers."""
        chosen = self._settings
        talk = talk or Dialogue(NoModel(), chosen.limits, self._clock)
        seen = _Seen(question)
        reason, why = "no_model", NO_MODEL
        try:
            for entity in tuple(dict.fromkeys(entities))[: chosen.entities]:
                await talk.within(partial(self._look_around, entity, seen))
                self._on_step(seen.steps[-1])
        except RunEnded as end:
            reason, why = end.limit, str(end)
        if not seen.steps and reason == "no_model":
            reason, why = "entities", ENDINGS["entities"]
        elif seen.all_failed:
            reason, why = "graph", seen.steps[-1].found
        found = outcome_of((), chosen.own_answers, reason, why)
        return AgentAnswer(
            question=question,
            answers=(),
            status=found.status,
            labels=seen.labels,
            stop_reason=reason,
            explanation=found.reason,
            steps=tuple(seen.steps),
            usage=talk.usage,
            seconds=talk.seconds,
            facts=seen.ranked[: chosen.kept],
        )

    async def _look_around(self, entity: str, seen: "_Seen") -> None:
        """Rank the facts around an entity by their likeness to the question."""
        chosen = self._settings
        action = f"GetNeighbor[{entity}]"
        try:
            near = await self._graph.observe(
                seen.question, [entity], hops=1, top_n=_NEAR, max_tokens=chosen.action_tokens
            )
            found = await self._graph.neighbors(entity, limit=chosen.found, max_tokens=chosen.action_tokens)
        except ToolError as error:
            seen.steps.append(Step(len(seen.steps) + 1, "", action, f"failed: {error}"))
            return
        seen.labels = seen.labels.merged(near.labels).merged(found.labels)
        facts = tuple(dict.fromkeys((*found.facts, *near.triples)))
        seen.scores.update(dict.fromkeys(facts, 0.0) | near.scores(facts))
        seen.steps.append(Step(len(seen.steps) + 1, "", action, f"{len(found.facts)} triples"))


class _Seen:
    """What was seen of a graph: facts by their likeness to a question."""

    def __init__(self, question: str) -> None:
        self.question = question
        self.labels = Labels()
        self.scores: dict[Triple, float] = {}
        self.steps: list[Step] = []

    @property
    def ranked(self) -> tuple[Triple, ...]:
        """The facts, the most like the question first."""
        return tuple(sorted(self.scores, key=lambda fact: (-self.scores[fact], fact)))

    @property
    def all_failed(self) -> bool:
        """Whether every step failed, and there was one."""
        return bool(self.steps) and all(step.found.startswith("failed: ") for step in self.steps)
