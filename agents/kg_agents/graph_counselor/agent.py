"""Graph Counselor: agents that plan, think and act on a graph, and a judge who has them try again."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from kg_agents.answers import Step as ShownStep
from kg_agents.dialogue import Dialogue, FailedReply, RunEnded
from kg_agents.graph_counselor.actions import Finish, Query
from kg_agents.graph_counselor.answer import CounselorAnswer, answer_of, shown
from kg_agents.graph_counselor.deliberation import Deliberate, OneReply, ThreeAgents, counselor_task
from kg_agents.graph_counselor.observations import (
    Observation,
    definition_in,
    definition_of,
    perform,
    perform_to_the_end,
    repeated,
    surroundings_of,
)
from kg_agents.graph_counselor.prompting import Wording
from kg_agents.graph_counselor.run import Run
from kg_agents.graph_counselor.sections import read_reflection
from kg_agents.graph_counselor.settings import CounselorSettings
from kg_agents.graph_counselor.short_prompting import ShortWording
from kg_agents.graph_counselor.verdicts import Judgement, read_judgement
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.llm import Llm
from kg_prompts import examples_for

DEFINITION: Final = "graph_counselor/definition.md"
"""The file with the definition of a graph beside its examples."""

OnStep: TypeAlias = Callable[[ShownStep], None]


def ignore_step(step: ShownStep) -> None:
    """Take no note."""
    del step


class GraphCounselor:
    """The method of Graph Counselor (section 2; algorithm 1 in appendix A).

    An inner loop takes up to T steps of plan, thought, action and observation, until it finishes with an answer. An
    outer loop has the answer judged and, up to N times, reflects on an attempt that failed and begins anew.

    Args:
        llm: The model that plans, thinks and acts.
        graph: The graph, through its tools.
        judge: The model that judges answers; by default the same.
        reflector: The model that reflects on attempts that failed; by default the same.
        settings: Parameters and limits.
        graph_name: What the graph calls itself; examples and a definition for it are used where there are some.
        on_step: Told of every step, judgement and reflection.
        clock: Seconds, from any beginning.
    """

    def __init__(
        self,
        llm: Llm,
        graph: KnowledgeGraph,
        *,
        judge: Llm | None = None,
        reflector: Llm | None = None,
        settings: CounselorSettings | None = None,
        graph_name: str = "",
        on_step: OnStep = ignore_step,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._llm = llm
        self._graph = graph
        self._judge_llm = judge or llm
        self._reflector = reflector or llm
        self._settings = settings or CounselorSettings()
        self._defined = examples_for(graph_name, DEFINITION, self._settings.examples_folder)
        self._judged = self._settings.ablation != "no-reflection"
        self._wording: Wording | ShortWording
        self._deliberate: Deliberate
        if self._settings.as_in_paper:
            self._wording = paper = Wording.of(self._settings, graph_name)
            self._deliberate = ThreeAgents(self._settings, paper)
        else:
            self._wording = short = ShortWording(self._settings, graph_name)
            self._deliberate = OneReply(self._settings, short)
        self._on_step = on_step
        self._clock = clock

    async def answer(
        self, question: str, entities: Sequence[str] = (), *, talk: Dialogue | None = None
    ) -> CounselorAnswer:
        """Return the answer to a question, with its evidence, its attempts and why the run ended.

        Args:
            question: The question.
            entities: Ids that it is about, where they are known.
            talk: The dialogue that this is part of, with what it has used; a new one by default.
        """
        talk = talk or Dialogue(self._llm, self._settings.limits, self._clock)
        run = Run(question, tuple(entities), talk)
        try:
            await run.talk.within(partial(self._define, run))
            return answer_of(run, self._settings, await self._counsel(run))
        except RunEnded as end:
            run.end_attempt("stopped")
            return answer_of(run, self._settings, end.limit, str(end))

    async def _define(self, run: Run) -> None:
        """Read what the graph holds: all of its definition in the paper, what the question touches otherwise.

        Raises:
            RunEnded: The graph gives none.
        """
        if own := self._settings.definition_file:
            run.definition = await definition_in(own)
        elif self._defined and (self._settings.as_in_paper or self._settings.examples_folder):
            run.definition = self._defined
        elif self._settings.as_in_paper or not run.entities:
            run.definition = await definition_of(self._graph, self._settings.defined_tokens)
        else:
            near = await surroundings_of(self._graph, run.question, run.entities, self._settings.defined_tokens)
            run.definition, run.labels = near.text, near.labels

    async def _counsel(self, run: Run) -> str:
        """Explore and judge; reflect and begin anew. Return why the loop ended."""
        if not self._judged:
            await self._explore(run)
            return run.ending
        for reflections_left in reversed(range(self._settings.reflections + 1)):
            await self._explore(run)
            if not self._settings.as_in_paper and run.repeats():
                break
            await self._judge(run)
            if run.attempts[-1].settled:
                break
            if reflections_left:
                await self._reflect(run)
        return run.ending

    async def _explore(self, run: Run) -> None:
        """Plan, think, act and observe, until an action finishes."""
        run.begin_attempt()
        while run.open and len(run.steps) < self._settings.steps:
            run.begin_step()
            try:
                action = await self._deliberate(run)
                if isinstance(action, Finish):
                    run.finish(action)
                else:
                    run.observe(await self._observe(run, action), action)
            except FailedReply as failure:
                run.fail(str(failure), self._settings.failures)
            self._on_step(shown(run.last_step))
        run.end_attempt("steps")

    async def _observe(self, run: Run, query: Query) -> Observation:
        """Perform functions on the graph, unless this attempt has done so before."""
        if before := run.asked_before(query):
            return repeated(before)
        looking = perform if self._settings.as_in_paper else perform_to_the_end
        return await run.talk.within(partial(looking, self._graph, query))

    async def _judge(self, run: Run) -> None:
        """Have the answer of the last attempt judged, if it has one; what cannot be read is not yes."""
        attempt = run.attempts[-1]
        if (claim := attempt.claim) is None:
            return
        task = counselor_task(self._settings, "judge", self._wording.judgement(run, attempt, claim))
        try:
            judgement = await run.talk.ask(task, read_judgement, self._judge_llm)
        except FailedReply as failure:
            judgement = Judgement("unreadable", str(failure))
        if self._settings.judge_unreadable == "yes" and judgement.verdict != "missing":
            judgement = replace(judgement, verdict="yes")
        run.amend(replace(attempt, judgement=judgement))
        self._on_step(ShownStep(len(attempt.steps), judgement.explanation, "Judge", judgement.verdict))

    async def _reflect(self, run: Run) -> None:
        """Have the last attempt reflected on, so that the next one begins with what was learnt."""
        attempt = run.attempts[-1]
        task = counselor_task(
            self._settings, "reflection", self._wording.reflection(run, attempt, self._settings.steps)
        )
        most = self._settings.reflection_characters
        try:
            reflection = await run.talk.ask(task, lambda reply: read_reflection(reply, most), self._reflector)
        except FailedReply:
            return
        run.amend(replace(attempt, reflection=reflection))
        self._on_step(ShownStep(len(attempt.steps), reflection, "Reflect", ""))
