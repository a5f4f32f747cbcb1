"""What the agents, the judge and the reflecting agent are asked, around the context of a run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

from kg_agents.dialogue import Writer, fitting
from kg_agents.graph_counselor.attempts import Attempt
from kg_agents.graph_counselor.run import Run
from kg_agents.graph_counselor.scratchpad import Step, shortenings, written
from kg_agents.graph_counselor.sections import Role
from kg_agents.graph_counselor.settings import CounselorSettings
from kg_prompts import examples_for, render
from kg_prompts.graph_counselor import (
    ActionPrompt,
    JudgePrompt,
    PlanPrompt,
    ReflectionPrompt,
    TaskPrompt,
    ThoughtPrompt,
)

_TASKS: Final[Mapping[Role, type[TaskPrompt]]] = {"plan": PlanPrompt, "thought": ThoughtPrompt, "action": ActionPrompt}


@dataclass(frozen=True, slots=True)
class Wording:
    """How prompts are written for one way of working.

    Args:
        compound: Whether functions may stand inside each other and side by side.
        planned: Whether each step begins with a plan.
        sets: Whether there are functions that work with sets and values.
        paper: Whether the prompts say what those of the paper say: nobody may abstain.
        learnt: Which reflections on earlier attempts a prompt holds.
        graph: What the graph calls itself, for examples of its own; empty for none.
        folder: Where examples of the user's own are; empty for none.
    """

    compound: bool = True
    planned: bool = True
    sets: bool = True
    paper: bool = False
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
            True,
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
                    abstain=not self.paper,
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
                    abstain=not self.paper,
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
        # They show functions inside each other, and those of sets, which this way of working may not know.
        if self.folder:
            return examples_for(self.graph, template, self.folder)
        return examples_for(self.graph, template) if self.compound and self.sets else ""


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
