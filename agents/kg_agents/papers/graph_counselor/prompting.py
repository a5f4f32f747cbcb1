"""The prompts of Graph Counselor, as in its paper and short."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

from kg_agents.llm.dialogue import Writer, fitting
from kg_agents.papers.graph_counselor.replies import Role
from kg_agents.papers.graph_counselor.run import Attempt, Run, Step, shortenings, written
from kg_agents.parameters import CounselorSettings
from kg_prompts import examples_for, render
from kg_prompts.graph_counselor import (
    ActionPrompt,
    CheckPrompt,
    JudgePrompt,
    LessonPrompt,
    PlanPrompt,
    ReflectionPrompt,
    StepPrompt,
    TaskPrompt,
    ThoughtPrompt,
)

TASK: Final = "graph_counselor/task.md"
"""The file with examples of whole attempts beside those of a graph."""
_PLANS: Final = re.compile(r"^Plan \d+: .*\n", re.MULTILINE)

_TASKS: Final[Mapping[Role, type[TaskPrompt]]] = {"plan": PlanPrompt, "thought": ThoughtPrompt, "action": ActionPrompt}


@dataclass(frozen=True, slots=True)
class Wording:
    """Writes the prompts of the paper, in which the model may not answer that the graph does not hold it.

    Args:
        compound: Whether functions may stand inside each other and side by side.
        planned: Whether each step begins with a plan.
        sets: Whether there are functions that work with sets and values.
        learnt: Which reflections on earlier attempts a prompt holds.
        graph: What the graph calls itself, for examples of its own; empty for none.
        folder: Where examples of the user's own are; empty for none.
    """

    compound: bool = True
    planned: bool = True
    sets: bool = True
    learnt: Literal["all", "latest"] = "all"
    graph: str = ""
    folder: str = ""

    @classmethod
    def of(cls, settings: CounselorSettings, graph: str) -> Self:
        """Return the wording that settings ask for."""
        without = settings.ablation
        return cls(
            without != "single-functions",
            without != "no-planning",
            settings.with_sets,
            settings.learnt,
            graph,
            settings.examples_folder,
        )

    def task(self, role: Role, run: Run) -> Writer:
        """Return what writes the prompt of one of the three agents of a step."""
        kind = _TASKS[role]

        def write(scratchpad: str, shortened: bool) -> str:
            return render(
                kind(
                    question=run.topic,
                    definition=run.definition,
                    scratchpad=scratchpad,
                    reflections=numbered(run.reflections[-1:] if self.learnt == "latest" else run.reflections),
                    step=len(run.steps),
                    compound=self.compound,
                    planned=self.planned,
                    sets=self.sets,
                    shortened=shortened,
                    examples=self._examples(kind.template),
                )
            )

        return _fitting(write, run.steps)

    def judgement(self, run: Run, attempt: Attempt, answer: str) -> Writer:
        """Return what writes the prompt of the judge."""

        def write(scratchpad: str, shortened: bool) -> str:
            return render(
                JudgePrompt(
                    question=run.topic,
                    definition=run.definition,
                    scratchpad=scratchpad,
                    answer=answer,
                    compound=self.compound,
                    sets=self.sets,
                    shortened=shortened,
                    examples=self._examples(JudgePrompt.template),
                )
            )

        return _fitting(write, attempt.steps)

    def reflection(self, run: Run, attempt: Attempt, most_steps: int) -> Writer:
        """Return what writes the prompt of the agent that reflects on an attempt."""

        def write(scratchpad: str, shortened: bool) -> str:
            return render(
                ReflectionPrompt(
                    question=run.topic,
                    definition=run.definition,
                    scratchpad=scratchpad,
                    outcome=outcome_of(attempt),
                    most_steps=most_steps,
                    compound=self.compound,
                    sets=self.sets,
                    shortened=shortened,
                    examples=self._examples(ReflectionPrompt.template),
                )
            )

        return _fitting(write, attempt.steps)

    def _examples(self, template: str) -> str:
        """Return the examples for a prompt; planning, thinking and acting share those of whole attempts."""
        if self.folder:
            found = examples_for(self.graph, template, self.folder) or examples_for(self.graph, TASK, self.folder)
        elif not self.compound:
            # They show functions inside each other and side by side.
            return ""
        else:
            found = examples_for(self.graph, template) or examples_for(self.graph, TASK)
        return found if self.planned else _PLANS.sub("", found)


def _fitting(write: Callable[[str, bool], str], steps: Sequence[Step]) -> Writer:
    """Return what writes a prompt around steps, with as little of them shortened as possible.

    Args:
        write: Writes the prompt around a scratchpad, and says in it whether observations there are shortened.
        steps: The steps of the attempt.
    """
    return fitting(
        lambda: (write(written(shorter), shorter is not steps) for shorter in shortenings(steps)),
        "the question, the graph's definition and the steps",
    )


def outcome_of(attempt: Attempt) -> str:
    """Return how an attempt failed, in sentences."""
    match attempt.end:
        case "finished":
            said = f" The judge said: {attempt.judgement.explanation}" if attempt.judgement else ""
            return f"The answer {attempt.claim!r} was not judged to be right.{said}"
        case "steps":
            return f"There was no answer after {len(attempt.steps)} steps, which is the most there may be."
        case _:
            return f"It was given up after {len(attempt.steps)} steps: several replies in a row could not be read."


def numbered(reflections: tuple[str, ...]) -> str:
    """Return reflections under their numbers."""
    return "\n\n".join(f"Reflection {number}:\n{text}" for number, text in enumerate(reflections, start=1))


@dataclass(frozen=True, slots=True)
class ShortWording:
    """How prompts are written where each step is one reply.

    Args:
        settings: Which functions there are, and which reflections are shown.
        graph: What the graph calls itself, for examples of its own; empty for none.
    """

    settings: CounselorSettings
    graph: str = ""

    def step(self, run: Run) -> Writer:
        """Return what writes the prompt of a step: plan, thought and action."""
        lessons = run.reflections[-1:] if self.settings.learnt == "latest" else run.reflections

        def write(steps: str, _: bool) -> str:
            return render(
                StepPrompt(
                    question=run.topic,
                    definition=run.definition,
                    steps=steps,
                    tried="\n".join(f"{call}: {gist}" for call, gist in run.tried.items()),
                    lessons=numbered(lessons),
                    step=len(run.steps),
                    sets=self.settings.with_sets,
                    examples=examples_for(self.graph, StepPrompt.template, self.settings.examples_folder),
                )
            )

        return _fitting(write, run.steps)

    def judgement(self, run: Run, attempt: Attempt, answer: str) -> Writer:
        """Return what writes the prompt of the judge, who sees what lies around the question if the answer cites it."""
        cited = {number for each in attempt.cited for number in each.numbers}
        around = run.definition if run.surroundings in cited or (run.entities and not cited) else ""
        return _fitting(
            lambda steps, _: render(CheckPrompt(question=run.topic, around=around, steps=steps, answer=answer)),
            attempt.steps,
        )

    def reflection(self, run: Run, attempt: Attempt, most_steps: int) -> Writer:
        """Return what writes the prompt of the model that reflects on an attempt."""

        def write(steps: str, _: bool) -> str:
            outcome = outcome_of(attempt)
            return render(
                LessonPrompt(
                    question=run.topic,
                    definition=run.definition,
                    steps=steps,
                    outcome=outcome,
                    most_steps=most_steps,
                    sets=self.settings.with_sets,
                )
            )

        return _fitting(write, attempt.steps)
