"""The agent ODA, and the variant that only shows the facts nearest to the question because no model is set."""

from collections.abc import Sequence
from typing import Final

from kg_agents.evidence.answers import AgentAnswer, OnStep, ignore_step
from kg_agents.evidence.values import Triple
from kg_agents.llm import Completion, Llm, LlmError, LlmRequest
from kg_agents.llm.dialogue import Dialogue, FailedReply, RunEnded
from kg_agents.papers.oda.paper import PaperRounds, parts_of
from kg_agents.papers.oda.replies import Action
from kg_agents.papers.oda.run import OdaMeans, OdaRun
from kg_agents.papers.oda.turns import Turns
from kg_agents.parameters import OdaSettings
from kg_agents.tools.client import ToolError
from kg_agents.tools.knowledge import KnowledgeGraph

ENDINGS: Final = {
    "iterations": "No answer was chosen within the iterations; it answers from what it has.",
    "unreadable": "The model's replies could not be read; it answers from what it has.",
    "graph": "The graph refused or failed several times in a row; it answers from what it has.",
    "entities": "There is no entity to begin with. Name one that the question is about (--entity).",
}


class ODA:
    """The method of ODA (section 2; figure 3).

    Args:
        llm: The model that acts, reflects and answers.
        graph: The graph, through its tools.
        reflector: The model that reflects in the paper's manner; by default the same.
        settings: Parameters and limits.
        graph_name: What the graph calls itself; examples for it are used where there are some.
        on_step: Called with every step.
    """

    def __init__(
        self,
        llm: Llm,
        graph: KnowledgeGraph,
        *,
        reflector: Llm | None = None,
        settings: OdaSettings | None = None,
        graph_name: str = "",
        on_step: OnStep = ignore_step,
    ) -> None:
        self._llm = llm
        self._graph = graph
        self._settings = settings or OdaSettings()
        self._on_step = on_step
        means = OdaMeans(self._settings, graph_name, reflector)
        self._rounds = PaperRounds(means, parts_of(means)) if self._settings.in_paper else Turns(means)

    async def answer(self, question: str, entities: Sequence[str], *, talk: Dialogue | None = None) -> AgentAnswer:
        """Return the answers to a question about some entities, with their evidence and why the run ended.

        Args:
            question: The question.
            entities: The ids of the entities that it names.
            talk: The dialogue that this is part of, with what it has used; a new one by default.
        """
        talk = talk or Dialogue(self._llm, self._settings.limits)
        starts = tuple(dict.fromkeys(entities))[: self._settings.entities]
        run = OdaRun(question, starts, self._graph.within(talk), talk, self._on_step)
        return AgentAnswer.of(
            question,
            talk,
            await self._ending(run),
            closed_book=self._settings.own_answers,
            answers=run.answers,
            own=run.own,
            parts=run.parts,
            labels=run.labels,
            steps=run.steps,
            facts=run.facts,
        )

    async def _ending(self, run: OdaRun) -> tuple[str, str]:
        """Explore and answer, and return why the run ended, in a word and in a sentence."""
        if not run.entities:
            return "entities", ENDINGS["entities"]
        try:
            ending = await self._rounds.explore(run)
            if not run.concluded:
                await self._rounds.conclude(run)
        except RunEnded as end:
            return end.limit, str(end)
        except FailedReply as failure:
            return "unreadable", f"The model's answer could not be read: {failure}"
        if run.missing is not None and ending == "answered":
            return "not_in_graph", run.missing
        return ending, ENDINGS.get(ending, "")


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
        on_step: Called with every step.
    """

    def __init__(
        self, graph: KnowledgeGraph, *, settings: OdaSettings | None = None, on_step: OnStep = ignore_step
    ) -> None:
        self._graph = graph
        self._settings = settings or OdaSettings()
        self._on_step = on_step

    async def answer(self, question: str, entities: Sequence[str], *, talk: Dialogue | None = None) -> AgentAnswer:
        """Return the facts around some entities that are most like a question, as facts and not as answers."""
        chosen = self._settings
        talk = talk or Dialogue(NoModel(), chosen.limits)
        starts = tuple(dict.fromkeys(entities))[: chosen.entities]
        run = OdaRun(question, starts, self._graph.within(talk), talk, self._on_step)
        scores: dict[Triple, float] = {}
        reason, why = ("no_model", NO_MODEL) if run.entities else ("entities", ENDINGS["entities"])
        try:
            for entity in run.entities:
                await self._look_around(run, entity, scores)
        except RunEnded as end:
            reason, why = end.limit, str(end)
        if run.steps and run.failures == len(run.steps):
            reason, why = "graph", run.steps[-1].found
        ranked = sorted(scores, key=lambda fact: (-scores[fact], fact))
        return AgentAnswer.of(
            question,
            talk,
            (reason, why),
            closed_book=chosen.own_answers,
            labels=run.labels,
            steps=run.steps,
            facts=tuple(ranked[: chosen.kept]),
        )

    async def _look_around(self, run: OdaRun, entity: str, scores: dict[Triple, float]) -> None:
        """Score the facts around an entity by their likeness to the question."""
        chosen, most, action = self._settings, self._settings.action_tokens, Action("GetNeighbor", (entity,))
        try:
            near = await run.graph.observe(run.question, [entity], hops=1, top_n=_NEAR, max_tokens=most)
            found = await run.graph.neighbors(entity, limit=chosen.found, max_tokens=most)
        except ToolError as error:
            run.fail(str(error), action)
            return
        run.ledger.learn(near.labels)
        run.ledger.learn(found.labels)
        facts = tuple(dict.fromkeys((*found.facts, *near.triples)))
        scores.update(dict.fromkeys(facts, 0.0) | near.scores(facts))
        run.note(action, f"{len(found.facts)} triples")
