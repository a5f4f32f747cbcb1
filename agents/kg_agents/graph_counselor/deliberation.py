"""From the steps so far to the next action: three agents in turn, or one reply."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from pydantic import BaseModel

from kg_agents.dialogue import Task, Unreadable, Writer, task_of
from kg_agents.evidence import ALL as ALL_LISTED
from kg_agents.evidence import Cited
from kg_agents.graph_counselor.calls import FOUR
from kg_agents.graph_counselor.prompting import ShortWording, Wording
from kg_agents.graph_counselor.replies import (
    ALL,
    Action,
    Finish,
    Role,
    StepForm,
    prose_beside,
    read_action,
    read_prose,
    read_single_action,
    step_form,
)
from kg_agents.graph_counselor.run import Run
from kg_agents.parameters import CounselorSettings


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
