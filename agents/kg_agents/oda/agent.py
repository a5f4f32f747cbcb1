"""ODA: an agent that observes, acts and reflects."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias, TypeVar

from kg_agents.answers import AgentAnswer, Answer, Step, outcome_of
from kg_agents.dialogue import Dialogue, FailedReply, RunEnded
from kg_agents.graph_values import Found, Observed, Triple
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.llm import Llm
from kg_agents.oda.ablations import Parts, parts_of
from kg_agents.oda.conclusions import grounded, read_conclusion
from kg_agents.oda.means import Means
from kg_agents.oda.prompting import Wording
from kg_agents.oda.replies import Action
from kg_agents.oda.run import Run
from kg_agents.oda.settings import OdaSettings
from kg_agents.tool_calls import ToolError

OnStep: TypeAlias = Callable[[Step], None]

T = TypeVar("T")

ENDINGS: Final = {
    "iterations": "No answer was chosen within the iterations; it answers from what it has.",
    "unreadable": "The model's replies could not be read; it answers from what it has.",
    "graph": "The graph refused or failed several times in a row; it answers from what it has.",
    "entities": "There is no entity to begin with. Name one that the question is about (--entity).",
}


def ignore_step(step: Step) -> None:
    """Take no note."""
    del step


class ODA:
    """The method of ODA (section 2; figure 3).

    Args:
        llm: The model that acts, reflects and answers.
        graph: The graph, through its tools.
        settings: Parameters and limits.
        graph_name: What the graph calls itself; examples for it are used where there are some.
        parts: What it is put together from; by default what the settings ask for.
        on_step: Told of every step.
        clock: Seconds, from any beginning.
    """

    def __init__(
        self,
        llm: Llm,
        graph: KnowledgeGraph,
        *,
        settings: OdaSettings | None = None,
        graph_name: str = "",
        parts: Parts | None = None,
        on_step: OnStep = ignore_step,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._llm = llm
        self._graph = graph
        self._settings = settings or OdaSettings()
        self._means = Means(graph, self._settings, Wording(graph_name))
        self._parts = parts or parts_of(self._means)
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
            ending = await self._iterate(run)
            if run.entities:
                run.answers = await self._conclude(run)
        except RunEnded as end:
            return self._answer_of(run, end.limit, str(end))
        except FailedReply as failure:
            return self._answer_of(run, "unreadable", f"The model's answer could not be read: {failure}")
        if run.missing is not None and ending == "answered":
            return self._answer_of(run, "not_in_graph", run.missing)
        return self._answer_of(run, ending, ENDINGS.get(ending, ""))

    async def _iterate(self, run: Run) -> str:
        """Observe, act and reflect until the model wants to answer; return why the loop ended."""
        if not run.entities:
            return "entities"
        for _ in range(self._settings.iterations):
            observation = await self._parts.observe(run)
            ending = await self._take_step(run, observation)
            self._on_step(run.steps[-1])
            if ending == "answered" or run.failures >= self._settings.failures:
                return ending
        return "iterations"

    async def _take_step(self, run: Run, observation: Observed) -> str:
        """Act, and reflect on what that found; return how the loop ends if it ends here."""
        action: Action | None = None
        try:
            action = await self._parts.act(run, observation)
            if action.name == "Answer":
                run.note(action, "")
                return "answered"
            found = await self._perform(run, action)
            reflected = await self._parts.reflect(run, observation, action, found)
            await self._remember(run, reflected.kept)
            run.note(action, _what(found, run.passed_over), reflected.kept)
            edges = [each for each in reflected.leading if each not in found.values]
            run.entities = self._parts.choose(run, action, edges) or run.entities
        except FailedReply as failure:
            run.fail(str(failure))
            return "unreadable"
        except ToolError as refusal:
            run.fail(str(refusal), action)
            return "graph"
        return ""

    async def _perform(self, run: Run, action: Action) -> Found:
        """Explore the neighbours of an entity, or discover the paths between two (section 2.2).

        Raises:
            ToolError: The graph refused.
        """
        chosen = self._settings
        if action.name == "GetPath":
            source, target = action.entities
            call = partial(
                self._graph.paths,
                source,
                target,
                max_hops=chosen.path_hops,
                limit=chosen.paths,
                question=run.question,
                max_tokens=chosen.action_tokens,
            )
        else:
            (entity,) = action.entities
            call = partial(self._graph.neighbors, entity, limit=chosen.found, max_tokens=chosen.action_tokens)
        found = await run.talk.within(call)
        run.learn(found.labels)
        return found

    async def _remember(self, run: Run, selected: Sequence[Triple]) -> None:
        """Append triples to the memory (section 2.3).

        Raises:
            ToolError: The graph refused all of them.
        """
        if not selected:
            return
        kept = selected[: self._settings.kept]
        appended = await run.talk.within(partial(self._graph.remember, run.memory, kept))
        run.keep(await run.talk.within(partial(self._graph.recall, appended.memory)))

    async def _conclude(self, run: Run) -> tuple[Answer, ...]:
        """Have the model answer from the memory (table 7), and say where each answer comes from.

        Raises:
            FailedReply: It gave no answer.
        """
        wording, chosen = self._means.wording, self._settings
        own = chosen.closed_book != "never"
        write = wording.paper_answer(run) if chosen.as_in_paper else wording.answer(run, own=own)
        conclusion = await self._means.ask(run, write, "answer", read_conclusion)
        run.missing, run.own = conclusion.missing, conclusion.own
        return grounded(conclusion, run.facts, run.asked, run.labels)

    def _answer_of(self, run: Run, stop_reason: str, explanation: str) -> AgentAnswer:
        found = outcome_of(run.answers, self._settings.closed_book, stop_reason, explanation, run.own)
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


def _what(found: Found, passed_over: int) -> str:
    left = f", {passed_over} of them not reflected on" if passed_over else ""
    return f"{len(found.facts)} triples{left}"
