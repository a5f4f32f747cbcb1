"""The agent ODA, and the variant that only shows the facts nearest to the question because no model is set."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from kg_agents.evidence.answers import CUT, AgentAnswer, Step, outcome_of, part_answered
from kg_agents.evidence.values import Labels, Triple
from kg_agents.llm import Completion, Llm, LlmError, LlmRequest
from kg_agents.llm.dialogue import Dialogue, FailedReply, RunEnded
from kg_agents.papers.oda.paper import LookAhead, PaperRounds, Parts, parts_of
from kg_agents.papers.oda.run import Means, OnStep, Rounds, Run, Wording
from kg_agents.papers.oda.turns import Turns
from kg_agents.parameters import Manner, OdaSettings
from kg_agents.tools.client import ToolError
from kg_agents.tools.knowledge import KnowledgeGraph

ENDINGS: Final = {
    "iterations": "No answer was chosen within the iterations; it answers from what it has.",
    "unreadable": "The model's replies could not be read; it answers from what it has.",
    "graph": "The graph refused or failed several times in a row; it answers from what it has.",
    "entities": "There is no entity to begin with. Name one that the question is about (--entity).",
}


def ignore_step(step: Step) -> None:
    """Take no note."""
    del step


_MANNERS: Final[Mapping[Manner, Callable[[Means], Rounds]]] = {
    "paper": lambda means: PaperRounds(means, parts_of(means)),
    "sextant": lambda means: Turns(means, LookAhead(means)),
}


class ODA:
    """The method of ODA (section 2; figure 3).

    Args:
        llm: The model that acts, reflects and answers.
        graph: The graph, through its tools.
        reflector: The model that reflects in the paper's manner; by default the same.
        settings: Parameters and limits.
        graph_name: What the graph calls itself; examples for it are used where there are some.
        parts: What the paper's rounds are put together from; by default what the settings ask for.
        on_step: Told of every step.
        clock: Seconds, from any beginning.
    """

    def __init__(
        self,
        llm: Llm,
        graph: KnowledgeGraph,
        *,
        reflector: Llm | None = None,
        settings: OdaSettings | None = None,
        graph_name: str = "",
        parts: Parts | None = None,
        on_step: OnStep = ignore_step,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._llm = llm
        self._settings = settings or OdaSettings()
        self._means = Means(graph, self._settings, Wording(graph_name, self._settings.examples_folder), reflector)
        self._rounds = PaperRounds(self._means, parts) if parts else _MANNERS[self._settings.manner](self._means)
        self._on_step = on_step
        self._clock = clock

    async def answer(self, question: str, entities: Sequence[str], *, talk: Dialogue | None = None) -> AgentAnswer:
        """Return the answers to a question about some entities, with their evidence and why the run ended.

        Args:
            question: The question.
            entities: The ids of the entities that it names.
            talk: The dialogue that this is part of, with what it has used; a new one by default.
        """
        talk = talk or Dialogue(self._llm, self._settings.limits, self._clock)
        named = tuple(dict.fromkeys(entities))[: self._settings.entities]
        run = Run(question, named, talk, named)
        try:
            ending = await self._rounds(run, self._on_step) if named else "entities"
            if named and not run.concluded:
                await self._rounds.conclude(run)
        except RunEnded as end:
            return self._answer_of(run, end.limit, str(end))
        except FailedReply as failure:
            return self._answer_of(run, "unreadable", f"The model's answer could not be read: {failure}")
        if ending == "answered" and (part := part_answered(run.answers, run.parts, run.labels)):
            return self._answer_of(run, CUT, str(part))
        if run.missing is not None and ending == "answered":
            return self._answer_of(run, "not_in_graph", run.missing)
        return self._answer_of(run, ending, ENDINGS.get(ending, ""))

    def _answer_of(self, run: Run, stop_reason: str, explanation: str) -> AgentAnswer:
        found = outcome_of(run.answers, self._settings.own_answers, stop_reason, explanation, run.own)
        return AgentAnswer(
            question=run.question,
            answers=found.answers,
            status=found.status,
            labels=run.labels,
            stop_reason=stop_reason,
            explanation=found.reason,
            steps=tuple(run.steps),
            usage=run.talk.usage,
            seconds=run.talk.seconds,
            model_answer=found.model_answer,
            facts=run.facts,
        )


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
