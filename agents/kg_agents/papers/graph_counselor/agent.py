"""The agent Graph Counselor (Gao et al., 2025): attempts of steps, judged and reflected on."""

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import anyio.to_thread
from pydantic import BaseModel

from kg_agents.evidence.answers import Step as ShownStep
from kg_agents.evidence.ledger import ALL as ALL_LISTED
from kg_agents.evidence.ledger import Cited
from kg_agents.evidence.values import Shown
from kg_agents.llm import Llm
from kg_agents.llm.dialogue import Dialogue, FailedReply, RunEnded, Task, Unreadable, Writer, task_of
from kg_agents.llm.texts import without_hints
from kg_agents.papers.graph_counselor.calls import FOUR
from kg_agents.papers.graph_counselor.prompting import ShortWording, Wording
from kg_agents.papers.graph_counselor.replies import (
    ALL,
    Action,
    Finish,
    Judgement,
    Query,
    Role,
    StepForm,
    prose_beside,
    read_action,
    read_judgement,
    read_prose,
    read_reflection,
    read_single_action,
    step_form,
)
from kg_agents.papers.graph_counselor.run import CounselorAnswer, Run, Step, answer_of, shown
from kg_agents.parameters import CounselorSettings, Manner
from kg_agents.tools.client import ToolError, ToolRefusal
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_boundary.regular_files import read_regular
from kg_prompts import examples_for


class Deliberate(Protocol):
    """Has the model choose what to do in a step."""

    async def __call__(self, run: Run, /) -> Action:
        """Return the action, and note what was said on the way to it.

        Raises:
            FailedReply: What the model said cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class ThreeAgents:
    """One plans, one thinks, one acts (section 2.2 of the paper)."""

    settings: CounselorSettings
    wording: Wording

    async def __call__(self, run: Run, /) -> Action:
        """See `Deliberate`."""
        if self.wording.planned:
            run.note(plan=await self._prose(run, "plan"))
        run.note(thought=await self._prose(run, "thought"))
        task = counselor_task(self.settings, "action", self.wording.task("action", run))
        action: Action = await run.talk.ask(task, lambda reply: self._read(reply, len(run.steps)))
        run.note(action=action.written)
        if isinstance(action, Finish) and any(each.numbers for each in action.cited):
            # The paper's agents cite nothing: what looks like it is part of the answer.
            return replace(action, cited=(Cited(action.answer, separable=True),))
        return action

    async def _prose(self, run: Run, role: Role) -> str:
        """Have the planning agent say how to go on, or the thought agent what to find out next."""
        task = counselor_task(self.settings, role, self.wording.task(role, run))
        return await run.talk.ask(task, lambda reply: read_prose(reply, role, len(run.steps)))

    def _read(self, reply: str, step: int) -> Action | Unreadable:
        functions = ALL if self.settings.with_sets else FOUR
        reading = read_action if self.wording.compound else read_single_action
        return reading(reply, step, functions)


@dataclass(frozen=True, slots=True)
class OneReply:
    """Plan, thought and action in one reply."""

    settings: CounselorSettings
    wording: ShortWording

    async def __call__(self, run: Run, /) -> Action:
        """See `Deliberate`."""
        functions = ALL if self.settings.with_sets else FOUR
        reading = partial(_with_prose, run=run, functions=functions)
        task = counselor_task(self.settings, "step", self.wording.step(run), StepForm)
        said = await run.talk.ask(task, reading)
        run.note(plan=said.plan, thought=said.thought, action=said.written)
        return said.action


@dataclass(frozen=True, slots=True)
class _Said:
    plan: str | None
    thought: str | None
    action: Action
    written: str


def _with_prose(reply: str, run: Run, functions: tuple[str, ...]) -> _Said | Unreadable:
    form, step = step_form(reply), len(run.steps)
    if form is None:
        action = read_action(reply, step, functions)
    else:
        action = read_action(form.expression, step, functions) if form.expression.strip() else form.finish
    if isinstance(action, Unreadable):
        return action
    written = action.written
    if isinstance(action, Finish) and isinstance(action := _listing(action, run), Unreadable):
        return action
    if form is not None:
        return _Said(form.plan, form.thought, action, written)
    return _Said(prose_beside(reply, "plan"), prose_beside(reply, "thought"), action, written)


def _listing(finish: Finish, run: Run) -> Finish | Unreadable:
    """Return a finish with the answers that the observations list which it names, where it names some."""
    listed = [each for each in finish.cited if ALL_LISTED.fullmatch(each.text)]
    for each in listed:
        named = " and ".join(map(str, each.numbers))
        if not (names := run.listed(each.numbers)):
            return Unreadable(
                f"Observation {named} is not a list, or not all of it is shown. Write the answers out, "
                "or narrow the expression first."
            )
        others = [other for other in finish.cited if other not in listed]
        cited = (*others, *(Cited(name, each.numbers) for name in names))
        finish = replace(finish, answer=f"all {len(names)} of observation {named}", cited=cited)
    return finish


def counselor_task(
    settings: CounselorSettings, purpose: str, write: Writer, form: type[BaseModel] | None = None
) -> Task:
    """Return what a model is asked for a purpose; a reflection may be longer than other replies."""
    most = settings.reflection_tokens if purpose == "reflection" else None
    return task_of(settings, purpose, write, form, max_tokens=most, top_p=settings.top_p)


_NEAR: Final = 2
"""How far around the entities of a question is looked before the first step."""

_HINT: Final = 500
LONG: Final = 8_000
"""How long an answer may be where a usual one leaves results out."""
LONG_TEXT: Final = 16_000
"""How many characters of it the model may be shown."""
_NOTHING_LIKE: Final = "No class or relation matches"
_UNKNOWN: Final = re.compile(r"No (?:relation|feature) of this graph is called '(?P<name>[^'\n]{1,80})'")


async def definition_of(graph: KnowledgeGraph, max_tokens: int) -> Shown:
    """Return the definition of a graph.

    Raises:
        RunEnded: The graph gives none.
    """
    try:
        return replace(await graph.schema(max_tokens=max_tokens), ahead=True)
    except ToolError as error:
        raise RunEnded("graph", f"The definition of the graph cannot be had: {error}") from error


async def definition_in(file: str) -> str:
    """Return the definition of a graph that a file holds.

    Raises:
        RunEnded: It cannot be read.
    """
    try:
        return (await anyio.to_thread.run_sync(read_regular, Path(file))).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise RunEnded("graph", f"The definition in {file!r} cannot be read: {error}") from error


async def surroundings_of(graph: KnowledgeGraph, question: str, entities: Sequence[str], max_tokens: int) -> Shown:
    """Return what lies around entities and is like a question, and what relations they have.

    Raises:
        RunEnded: The graph cannot be observed.
    """
    try:
        near = await graph.observe(question, entities, hops=_NEAR, max_tokens=max_tokens)
    except ToolError as error:
        raise RunEnded("graph", f"The graph cannot be observed: {error}") from error
    return replace(near.shown, text=without_hints(near.text.partition("\n")[2]), ahead=True)


async def perform_to_the_end(graph: KnowledgeGraph, query: Query) -> Shown:
    """Perform functions on a graph, and again with more room where a list is cut that has an end.

    Where the graph knows no relation of a name, what is like it is observed as well.

    Raises:
        RunEnded: The graph does not answer, or in no form that is known.
    """
    observation = await _performed(graph, query, longer=True)
    unknown = _UNKNOWN.search(observation.text) if not observation.facts else None
    if unknown is None:
        return observation
    try:
        like = await graph.schema(about=unknown["name"], max_tokens=_HINT)
    except ToolError:
        # It is a hint: without it, what was observed stands.
        return observation
    found = not like.text.startswith(_NOTHING_LIKE)
    return replace(observation, text=f"{observation.text}\n{like.text}") if found else observation


async def perform(graph: KnowledgeGraph, query: Query) -> Shown:
    """Perform functions on a graph; what it refuses is observed in its own words.

    Raises:
        RunEnded: The graph does not answer, or in no form that is known.
    """
    return await _performed(graph, query)


async def _performed(graph: KnowledgeGraph, query: Query, *, longer: bool = False) -> Shown:
    try:
        composed = await graph.compose(query.written)
        if longer and not composed.whole:
            long = await graph.compose(query.written, max_tokens=LONG)
            composed = long if long.whole and len(long.text) <= LONG_TEXT else composed
    except ToolRefusal as refusal:
        # For instance, an expression is wrong.
        return Shown(text=without_hints(str(refusal)))
    except ToolError as error:
        raise RunEnded("graph", str(error)) from error
    return replace(composed, text=without_hints(composed.text))


def repeated(steps: Sequence[Step]) -> Shown:
    """Return what is observed of an action that earlier steps have performed: nothing new."""
    numbers = " and ".join(str(step.number) for step in steps)
    again = "\n".join(step.observation or "" for step in steps)
    return Shown(
        text=f"This was performed in step {numbers} already and is not performed again. Answer, or ask for something "
        f"else. It gave:\n{again}"
    )


DEFINITION: Final = "graph_counselor/definition.md"
"""The file with the definition of a graph beside its examples."""

OnStep: TypeAlias = Callable[[ShownStep], None]


@dataclass(frozen=True, slots=True)
class Parts:
    """What Graph Counselor is put together from.

    Args:
        deliberate: Chooses what to do in a step.
        wording: Writes the prompts for a judgement and a reflection.
        definition: A definition of the graph that comes with the examples; empty for none.
        define: Reads a definition from the graph otherwise.
        observe: Performs functions on the graph.
        stops: Whether attempts end after the last one, unjudged.
    """

    deliberate: Deliberate
    wording: Wording | ShortWording
    definition: str
    define: Callable[[KnowledgeGraph, Run, int], Awaitable[Shown]]
    observe: Callable[[KnowledgeGraph, Run, Query], Awaitable[Shown]]
    stops: Callable[[Run], bool]


def _as_published(settings: CounselorSettings, graph_name: str) -> Parts:
    """Return the parts of the paper: three agents, the whole definition, and every action performed."""
    wording = Wording.of(settings, graph_name)
    return Parts(
        ThreeAgents(settings, wording),
        wording,
        examples_for(graph_name, DEFINITION, settings.examples_folder),
        lambda graph, _, most: definition_of(graph, most),
        lambda graph, _, query: perform(graph, query),
        lambda _: False,
    )


def _grounded(settings: CounselorSettings, graph_name: str) -> Parts:
    """Return the parts of this project: one reply a step, what the question touches, and no action performed twice."""
    wording = ShortWording(settings, graph_name)
    return Parts(
        OneReply(settings, wording),
        wording,
        examples_for("", DEFINITION, settings.examples_folder),
        _around,
        _observe_once,
        Run.repeats,
    )


async def _around(graph: KnowledgeGraph, run: Run, max_tokens: int) -> Shown:
    if run.entities:
        return await surroundings_of(graph, run.question, run.entities, max_tokens)
    return await definition_of(graph, max_tokens)


async def _observe_once(graph: KnowledgeGraph, run: Run, query: Query) -> Shown:
    before = run.asked_before(query)
    return repeated(before) if before else await perform_to_the_end(graph, query)


_MANNERS: Final[Mapping[Manner, Callable[[CounselorSettings, str], Parts]]] = {
    "paper": _as_published,
    "sextant": _grounded,
}


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
        self._judged = self._settings.ablation != "no-reflection"
        self._parts = _MANNERS[self._settings.manner](self._settings, graph_name)
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
            return await answer_of(run, self._settings, self._graph, await self._counsel(run))
        except RunEnded as end:
            run.end_attempt("stopped")
            return await answer_of(run, self._settings, self._graph, end.limit, str(end))

    async def _define(self, run: Run) -> None:
        """Read what the graph holds: from the user's file, from the examples, or from the graph.

        Raises:
            RunEnded: The graph gives none.
        """
        if own := self._settings.definition_file:
            run.definition = await definition_in(own)
        elif self._parts.definition:
            run.definition = self._parts.definition
        else:
            near = await self._parts.define(self._graph, run, self._settings.defined_tokens)
            run.definition, run.surroundings = near.text, run.ledger.add(near)

    async def _counsel(self, run: Run) -> str:
        """Explore and judge; reflect and begin anew. Return why the loop ended."""
        if not self._judged:
            await self._explore(run)
            return run.ending
        for reflections_left in reversed(range(self._settings.reflections + 1)):
            await self._explore(run)
            if self._parts.stops(run):
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
                action = await self._parts.deliberate(run)
                if isinstance(action, Finish):
                    run.finish(action)
                else:
                    observed = partial(self._parts.observe, self._graph, run, action)
                    run.observe(await run.talk.within(observed), action)
            except FailedReply as failure:
                run.fail(str(failure), self._settings.failures)
            self._on_step(shown(run.last_step))
        run.end_attempt("steps")

    async def _judge(self, run: Run) -> None:
        """Have the answer of the last attempt judged, if it has one; what cannot be read is not yes."""
        attempt = run.attempts[-1]
        if (claim := attempt.claim) is None:
            return
        task = counselor_task(self._settings, "judge", self._parts.wording.judgement(run, attempt, claim))
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
            self._settings, "reflection", self._parts.wording.reflection(run, attempt, self._settings.steps)
        )
        most = self._settings.reflection_characters
        try:
            reflection = await run.talk.ask(task, lambda reply: read_reflection(reply, most), self._reflector)
        except FailedReply:
            return
        run.amend(replace(attempt, reflection=reflection))
        self._on_step(ShownStep(len(attempt.steps), reflection, "Reflect", ""))
