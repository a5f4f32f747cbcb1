"""The agent Graph Counselor (Gao et al., 2025): attempts of steps, judged and reflected on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import anyio.to_thread

from kg_agents.evidence.answers import AgentAnswer, GivenAnswer, OnStep, RunStep, ignore_step, parts_in
from kg_agents.linking import resolver
from kg_agents.llm import Llm
from kg_agents.llm.dialogue import Dialogue, FailedReply, RunEnded
from kg_agents.papers.graph_counselor.manners import MANNERS, Manner
from kg_agents.papers.graph_counselor.replies import Finish, Judgement, read_judgement, read_reflection
from kg_agents.papers.graph_counselor.run import Attempt, CounselorRun
from kg_agents.parameters import CounselorSettings
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_boundary.regular_files import read_regular

REJECTED: Final = "No attempt was judged to be right; this is the last answer."

_VERDICT: Final = re.compile(r"\[not in (?:the )?graph\]\W*$", re.IGNORECASE)
_ENDINGS: Final = {
    "steps": "No answer was given within the steps of an attempt.",
    "unreadable": "Several replies in a row could not be read.",
}


@dataclass(frozen=True, slots=True)
class CounselorAnswer(AgentAnswer):
    """The answers, with the attempts that led to them.

    Args:
        attempts: Every attempt, the first first.
        accepted: Whether the answer was judged to be right.
    """

    attempts: tuple[Attempt, ...] = ()
    accepted: bool = False


class GraphCounselor:
    """The method of Graph Counselor (section 2; algorithm 1 in appendix A).

    An inner loop takes up to T steps of plan, thought, action and observation, until it finishes with an answer. An
    outer loop has the answer judged and, up to N times, reflects on an attempt that failed and starts again.

    Args:
        llm: The model that plans, thinks and acts.
        graph: The graph, through its tools.
        judge: The model that judges answers; by default the same.
        reflector: The model that reflects on attempts that failed; by default the same.
        settings: Parameters and limits.
        graph_name: What the graph calls itself; examples and a definition for it are used where there are some.
        on_step: Called with every step, judgement and reflection.
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
    ) -> None:
        self._llm = llm
        self._graph = graph
        self._judge_llm = judge or llm
        self._reflector = reflector or llm
        self._settings = settings or CounselorSettings()
        self._manner: Manner = MANNERS[self._settings.manner](self._settings, graph_name)
        self._on_step = on_step

    async def answer(
        self, question: str, entities: Sequence[str] = (), *, talk: Dialogue | None = None
    ) -> CounselorAnswer:
        """Return the answer to a question, with its evidence, its attempts and why the run ended.

        Args:
            question: The question.
            entities: Ids that it is about, where they are known.
            talk: The dialogue that this is part of, with what it has used; a new one by default.
        """
        talk = talk or Dialogue(self._llm, self._settings.limits)
        run = CounselorRun(question, tuple(entities), self._graph.within(talk), talk)
        try:
            await self._define(run)
            await self._counsel(run)
            ended = (run.ending, _ENDINGS.get(run.ending, ""))
        except RunEnded as end:
            run.end_attempt("stopped")
            ended = (end.limit, str(end))
        return await self._answer_of(run, ended)

    async def _define(self, run: CounselorRun) -> None:
        """Read what the graph holds: from the user's file, from the examples, or from the graph.

        Raises:
            RunEnded: The graph gives none, or the file cannot be read.
        """
        if file := self._settings.definition_file:
            try:
                run.definition = (await anyio.to_thread.run_sync(read_regular, Path(file))).decode()
            except (OSError, UnicodeDecodeError) as error:
                raise RunEnded("graph", f"The definition in {file!r} cannot be read: {error}") from error
        elif shipped := self._manner.shipped_definition:
            run.definition = shipped
        else:
            near = await self._manner.define(run)
            run.definition, run.surroundings = near.text, run.ledger.add(near)

    async def _counsel(self, run: CounselorRun) -> None:
        """Explore and judge; reflect and start again."""
        for reflections_left in reversed(range(self._settings.reflections + 1)):
            await self._explore(run)
            if self._settings.ablation == "no-reflection" or self._manner.stops(run):
                return
            await self._judge(run)
            if run.attempts[-1].settled:
                return
            if reflections_left:
                await self._reflect(run)

    async def _explore(self, run: CounselorRun) -> None:
        """Plan, think, act and observe, until an action finishes."""
        run.begin_attempt()
        while run.open and len(run.steps) < self._settings.steps:
            run.begin_step()
            try:
                action = await self._manner.deliberate(run)
                if isinstance(action, Finish):
                    run.finish(action)
                else:
                    run.observe(await self._manner.observe(run, action), action)
            except FailedReply as failure:
                run.fail(str(failure), self._settings.failures)
            self._on_step(run.last_step.shown)
        run.end_attempt("steps")

    async def _judge(self, run: CounselorRun) -> None:
        """Have the answer of the last attempt judged, if it has one; what cannot be read is not yes."""
        attempt = run.attempts[-1]
        if (claim := attempt.claim) is None:
            return
        task = self._settings.task("judge", self._manner.judgement(run, attempt, claim))
        try:
            judgement = await run.talk.ask(task, read_judgement, self._judge_llm)
        except FailedReply as failure:
            judgement = Judgement("unreadable", str(failure))
        if self._settings.judge_unreadable == "yes" and judgement.verdict != "missing":
            judgement = replace(judgement, verdict="yes")
        run.amend(replace(attempt, judgement=judgement))
        self._on_step(RunStep(len(attempt.steps), judgement.explanation, "Judge", judgement.verdict))

    async def _reflect(self, run: CounselorRun) -> None:
        """Have the last attempt reflected on, so that the next one begins with what was learnt."""
        attempt = run.attempts[-1]
        task = self._settings.task("reflection", self._manner.reflection(run, attempt))
        read = partial(read_reflection, most=self._settings.reflection_characters)
        try:
            reflection = await run.talk.ask(task, read, self._reflector)
        except FailedReply:
            return
        run.amend(replace(attempt, reflection=reflection))
        self._on_step(RunStep(len(attempt.steps), reflection, "Reflect", ""))

    async def _answer_of(self, run: CounselorRun, ended: tuple[str, str]) -> CounselorAnswer:
        """Return what a run has found: the last answer that was given, with what yields it."""
        last = run.attempts[-1] if run.attempts else Attempt()
        answered = [each for each in run.attempts if each.answer is not None]
        earlier = not last.not_in_graph and self._settings.earlier_answer and answered
        attempt = answered[-1] if earlier else last
        steps = (step.shown for each in run.attempts for step in each.steps)
        answer = CounselorAnswer.of(
            run.question,
            run.talk,
            (ended[0], " ".join(filter(None, (ended[1], _remark(attempt))))),
            closed_book=self._settings.own_answers,
            answers=await self._answers(run, attempt),
            parts=parts_in(run.ledger.cited(attempt.numbers)),
            labels=run.labels,
            steps=(replace(step, number=number) for number, step in enumerate(steps, start=1)),
            facts=run.ledger.facts,
        )
        return replace(answer, attempts=tuple(run.attempts), accepted=attempt.accepted)

    async def _answers(self, run: CounselorRun, attempt: Attempt) -> tuple[GivenAnswer, ...]:
        """Return the answers of an attempt; those of one whose answer is not in the graph are the model's own."""
        if attempt.not_in_graph:
            return tuple(GivenAnswer(each.text, "model") for each in attempt.cited)
        return await run.ledger.answers(
            attempt.cited,
            run.topic,
            run.entities,
            resolver(run.graph),
            confirmed=None if attempt.judgement is None else attempt.accepted,
            as_given=self._settings.in_paper,
        )


def _remark(attempt: Attempt) -> str:
    """Return the explanation of an answer that was not confirmed, or is not in the graph."""
    judgement = attempt.judgement
    if attempt.not_in_graph:
        return attempt.missing or (_VERDICT.sub("", judgement.explanation).strip() if judgement else "")
    return REJECTED if judgement is not None and not attempt.accepted and attempt.answer is not None else ""
