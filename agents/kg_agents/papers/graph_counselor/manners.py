"""What Graph Counselor does in its two manners: its prompts, how a step is chosen, and what is observed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Final, TypeAlias

from kg_agents.evidence.ledger import ALL as ALL_LISTED
from kg_agents.evidence.ledger import Cited
from kg_agents.evidence.values import IdLabels, Shown
from kg_agents.llm.dialogue import RunEnded, Unreadable, Writer, fitting
from kg_agents.llm.texts import without_hints
from kg_agents.papers.graph_counselor.calls import FOUR
from kg_agents.papers.graph_counselor.replies import (
    ALL,
    Action,
    Finish,
    Query,
    Role,
    StepForm,
    prose_beside,
    read_action,
    read_prose,
    read_single_action,
)
from kg_agents.papers.graph_counselor.run import Attempt, AttemptStep, CounselorRun, shortenings, written
from kg_agents.parameters import CounselorSettings
from kg_agents.tools.client import ToolError, ToolRefusal
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_agents.tools.several import about_graphs
from kg_prompts import Prompt, examples_for, render
from kg_prompts.graph_counselor import (
    CheckPrompt,
    CounselorActionPrompt,
    CounselorReflectionPrompt,
    JudgePrompt,
    LessonPrompt,
    PlanPrompt,
    StepPrompt,
    TaskPrompt,
    ThoughtPrompt,
)

TASK: Final = "graph_counselor/task.md"
"""The file with examples of whole attempts beside those of a graph."""

DEFINITION: Final = "graph_counselor/definition.md"
"""The file with the definition of a graph beside its examples."""

LONG: Final = 8_000
"""How long an answer may be where a usual one leaves results out."""

LONG_TEXT: Final = 16_000
"""How many characters of it the model may be shown."""

_NEAR: Final = 2
"""How far around the entities of a question is looked before the first step."""

_HINT: Final = 500
_PLANS: Final = re.compile(r"^Plan \d+: .*\n", re.MULTILINE)
_NOTHING_LIKE: Final = "No class, relation or feature matches"
_UNKNOWN: Final = re.compile(r"No (?:relation|feature) of this graph is called '(?P<name>[^'\n]{1,80})'")
_TASKS: Final[Mapping[Role, type[TaskPrompt]]] = {
    "plan": PlanPrompt,
    "thought": ThoughtPrompt,
    "action": CounselorActionPrompt,
}


@dataclass(frozen=True, slots=True)
class PublishedManner:
    """The paper's manner: three agents, the graph's whole definition, and every action performed.

    Args:
        settings: Parameters.
        graph_name: The name of the graph, which selects its examples; empty for none.
    """

    settings: CounselorSettings
    graph_name: str = ""

    @property
    def _compound(self) -> bool:
        """Whether functions may stand inside each other and side by side."""
        return self.settings.ablation != "single-functions"

    @property
    def _planned(self) -> bool:
        """Whether each step begins with a plan."""
        return self.settings.ablation != "no-planning"

    @property
    def shipped_definition(self) -> str:
        """The definition of the graph that comes with examples; empty for none."""
        return examples_for(self.graph_name, DEFINITION, self.settings.examples_folder)

    async def define(self, run: CounselorRun) -> Shown:
        """Return the whole definition of the graph.

        Raises:
            RunEnded: The graph gives none.
        """
        return await _definition_of(run.graph, self.settings)

    async def deliberate(self, run: CounselorRun) -> Action:
        """Have one agent plan, one think and one act (section 2.2 of the paper), and note what they say.

        Raises:
            FailedReply: What the model said cannot be read.
        """
        if self._planned:
            run.note(plan=await self._prose(run, "plan"))
        run.note(thought=await self._prose(run, "thought"))
        functions = ALL if self.settings.with_sets else FOUR
        read = partial(read_action if self._compound else read_single_action, step=len(run.steps), functions=functions)
        action: Action = await run.talk.ask(self.settings.task("action", self._task("action", run)), read)
        run.note(action=action.written)
        if isinstance(action, Finish) and any(each.numbers for each in action.cited):
            # The paper's agents cite nothing: what looks like it is part of the answer.
            return replace(action, cited=(Cited(action.answer, separable=True),))
        return action

    async def observe(self, run: CounselorRun, query: Query) -> Shown:
        """Perform functions on the graph.

        Raises:
            RunEnded: The graph does not answer.
        """
        return await perform(run.graph, query, run.labels)

    def judgement(self, run: CounselorRun, attempt: Attempt, answer: str) -> Writer:
        """Return what writes the prompt of the judge."""
        prompt = JudgePrompt(
            question=run.topic,
            definition=run.definition,
            answer=answer,
            compound=self._compound,
            sets=self.settings.with_sets,
            examples=self._examples(JudgePrompt),
        )
        return fitted(prompt, attempt.steps)

    def reflection(self, run: CounselorRun, attempt: Attempt) -> Writer:
        """Return what writes the prompt of the model that reflects on an attempt."""
        prompt = CounselorReflectionPrompt(
            question=run.topic,
            definition=run.definition,
            outcome=attempt.failure,
            most_steps=self.settings.steps,
            compound=self._compound,
            sets=self.settings.with_sets,
            examples=self._examples(CounselorReflectionPrompt),
        )
        return fitted(prompt, attempt.steps)

    def stops(self, run: CounselorRun) -> bool:
        """Return whether attempts end after the last one, unjudged: they do not."""
        del run
        return False

    async def _prose(self, run: CounselorRun, role: Role) -> str:
        """Have the planning agent say how to go on, or the thought agent what to find out next."""
        task = self.settings.task(role, self._task(role, run))
        return await run.talk.ask(task, partial(read_prose, role=role, step=len(run.steps)))

    def _task(self, role: Role, run: CounselorRun) -> Writer:
        """Return what writes the prompt of one of the three agents of a step."""
        kind = _TASKS[role]
        prompt = kind(
            question=run.topic,
            definition=run.definition,
            reflections=run.lessons(self.settings.learnt),
            step=len(run.steps),
            compound=self._compound,
            planned=self._planned,
            sets=self.settings.with_sets,
            examples=self._examples(kind),
        )
        return fitted(prompt, run.steps)

    def _examples(self, kind: type[Prompt]) -> str:
        """Return the examples for a prompt; planning, thinking and acting share those of whole attempts."""
        folder = self.settings.examples_folder
        if not folder and not self._compound:
            # Those shipped show functions inside each other and side by side.
            return ""
        found = examples_for(self.graph_name, kind.template, folder) or examples_for(self.graph_name, TASK, folder)
        return found if self._planned else _PLANS.sub("", found)


@dataclass(frozen=True, slots=True)
class Grounded:
    """This project's manner: one reply a step, what the question touches, and no action performed twice.

    Args:
        settings: Parameters.
        graph_name: The name of the graph, which selects its examples; empty for none.
    """

    settings: CounselorSettings
    graph_name: str = ""

    @property
    def shipped_definition(self) -> str:
        """See `PublishedManner`."""
        return examples_for("", DEFINITION, self.settings.examples_folder)

    async def define(self, run: CounselorRun) -> Shown:
        """Return what lies around the entities and is like the question, and what relations they have.

        Raises:
            RunEnded: The graph does not say.
        """
        if not run.entities:
            return await _definition_of(run.graph, self.settings)
        most = self.settings.defined_tokens
        try:
            near = await run.graph.observe(run.question, run.entities, hops=_NEAR, max_tokens=most)
        except ToolError as error:
            raise RunEnded("graph", f"The graph cannot be observed: {error}") from error
        return replace(near.shown, text=without_hints(near.shown.text.partition("\n")[2]), ahead=True)

    async def deliberate(self, run: CounselorRun) -> Action:
        """Have the model plan, think and act in one reply, and note what it says.

        Raises:
            FailedReply: It cannot be read.
        """
        prompt = StepPrompt(
            question=run.topic,
            definition=run.definition,
            tried="\n".join(f"{call}: {gist}" for call, gist in run.tried.items()),
            lessons=run.lessons(self.settings.learnt),
            step=len(run.steps),
            sets=self.settings.with_sets,
            examples=examples_for(self.graph_name, StepPrompt.template, self.settings.examples_folder),
        )
        task = self.settings.task("step", fitted(prompt, run.steps), StepForm)
        functions = ALL if self.settings.with_sets else FOUR
        run.steps[-1], action = await run.talk.ask(task, partial(_read_step, run=run, functions=functions))
        return action

    async def observe(self, run: CounselorRun, query: Query) -> Shown:
        """Perform functions; ask for a list that is cut with more room, and show what is like an unknown name.

        Raises:
            RunEnded: The graph does not answer.
        """
        if before := run.asked_before(query):
            return _repeated(before)
        observation = await perform(run.graph, query, run.labels, to_the_end=True)
        unknown = _UNKNOWN.search(observation.text) if not observation.facts else None
        if unknown is None:
            return observation
        try:
            like = await run.graph.schema(about=unknown["name"], max_tokens=_HINT)
        except ToolError:
            # It is a hint: without it, what was observed stands.
            return observation
        found = not like.text.startswith(_NOTHING_LIKE)
        return replace(observation, text=f"{observation.text}\n{like.text}") if found else observation

    def judgement(self, run: CounselorRun, attempt: Attempt, answer: str) -> Writer:
        """Return what writes the prompt of the judge, who sees what lies around the question if the answer cites it."""
        cited = {number for each in attempt.cited for number in each.numbers}
        around = run.definition if run.surroundings in cited or (run.entities and not cited) else ""
        return fitted(CheckPrompt(question=run.topic, around=around, answer=answer), attempt.steps)

    def reflection(self, run: CounselorRun, attempt: Attempt) -> Writer:
        """See `PublishedManner`."""
        prompt = LessonPrompt(
            question=run.topic,
            definition=run.definition,
            outcome=attempt.failure,
            most_steps=self.settings.steps,
            sets=self.settings.with_sets,
        )
        return fitted(prompt, attempt.steps)

    def stops(self, run: CounselorRun) -> bool:
        """Return whether attempts end after the last one, unjudged: where it brought nothing new."""
        return run.repeats()


Manner: TypeAlias = PublishedManner | Grounded
MANNERS: Final[Mapping[str, type[Manner]]] = {"paper": PublishedManner, "sextant": Grounded}


def fitted(prompt: Prompt, steps: Sequence[AttemptStep]) -> Writer:
    """Return what writes a prompt around steps, with as little of them shortened as possible.

    Args:
        prompt: The prompt without the steps.
        steps: The steps of the attempt.
    """
    names = {field.name for field in fields(prompt)}

    def shorter() -> Iterator[str]:
        for each in shortenings(steps):
            slots = {"scratchpad": written(each), "steps": written(each), "shortened": each is not steps}
            yield render(replace(prompt, **{name: slot for name, slot in slots.items() if name in names}))

    return fitting(shorter, "the question, the graph's definition and the steps")


async def _definition_of(graph: KnowledgeGraph, settings: CounselorSettings) -> Shown:
    """Return the definition of a graph.

    Raises:
        RunEnded: The graph gives none.
    """
    try:
        return replace(await graph.schema(max_tokens=settings.defined_tokens), ahead=True)
    except ToolError as error:
        raise RunEnded("graph", f"The definition of the graph cannot be had: {error}") from error


async def perform(
    graph: KnowledgeGraph, query: Query, labels: IdLabels | None = None, *, to_the_end: bool = False
) -> Shown:
    """Perform functions on a graph; what it refuses is observed in its own words.

    Args:
        graph: The graph.
        query: The functions.
        labels: What was shown, by which the graphs that the functions are about are known.
        to_the_end: Whether they are performed again with more room where a list is cut that has an end.

    Raises:
        RunEnded: The graph does not answer, or in no form that is known.
    """
    try:
        written, of = about_graphs(query.written, labels or IdLabels(), graph.graphs)
        composed = await graph.compose(written, graph=of)
        if to_the_end and not composed.whole:
            long = await graph.compose(written, max_tokens=LONG, graph=of)
            composed = long if long.whole and len(long.text) <= LONG_TEXT else composed
    except ToolRefusal as refusal:
        # For instance, an expression is wrong.
        return Shown(text=without_hints(str(refusal)))
    except ToolError as error:
        raise RunEnded("graph", str(error)) from error
    return replace(composed, text=without_hints(composed.text))


def _repeated(steps: Sequence[AttemptStep]) -> Shown:
    """Return what is observed of an action that earlier steps have performed: nothing new."""
    numbers = " and ".join(str(step.number) for step in steps)
    again = "\n".join(step.observation or "" for step in steps)
    return Shown(
        text=f"This was performed in step {numbers} already and is not performed again. Answer, or ask for something "
        f"else. It gave:\n{again}"
    )


def _read_step(reply: str, run: CounselorRun, functions: tuple[str, ...]) -> tuple[AttemptStep, Action] | Unreadable:
    """Return the step that a reply describes, without what is observed, and its action; or why it cannot be read."""
    form, step = StepForm.of(reply, "expression", "answers", "not_in_graph"), len(run.steps)
    if form is None:
        action = read_action(reply, step, functions)
    else:
        action = read_action(form.expression, step, functions) if form.expression.strip() else form.finish
    if isinstance(action, Unreadable):
        return action
    said = action.written
    if isinstance(action, Finish) and isinstance(action := _listing(action, run), Unreadable):
        return action
    plan, thought = (prose_beside(reply, "plan"), prose_beside(reply, "thought"))
    if form is not None:
        plan, thought = form.plan or None, form.thought or None
    return AttemptStep(step, plan, thought, said), action


def _listing(finish: Finish, run: CounselorRun) -> Finish | Unreadable:
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
