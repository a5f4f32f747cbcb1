"""What a model is asked where each step is one reply, with as little around it as it needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kg_agents.dialogue import Writer, fitting
from kg_agents.graph_counselor.attempts import Attempt
from kg_agents.graph_counselor.prompting import numbered, outcome_of
from kg_agents.graph_counselor.run import Run
from kg_agents.graph_counselor.scratchpad import Step, shortenings, written
from kg_agents.graph_counselor.settings import CounselorSettings
from kg_prompts import examples_for, render
from kg_prompts.graph_counselor import CheckPrompt, LessonPrompt, StepPrompt


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

        def write(steps: str) -> str:
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
        """Return what writes the prompt of the judge."""
        return _fitting(
            lambda steps: render(CheckPrompt(question=run.topic, steps=steps, answer=answer)), attempt.steps
        )

    def reflection(self, run: Run, attempt: Attempt, most_steps: int) -> Writer:
        """Return what writes the prompt of the model that reflects on an attempt."""

        def write(steps: str) -> str:
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


def _fitting(write: Callable[[str], str], steps: Sequence[Step]) -> Writer:
    """Return what writes a prompt around steps, with as little of them shortened as possible."""
    return fitting(
        lambda: (write(written(shorter)) for shorter in shortenings(steps)),
        "the question, what the graph holds around it and the steps",
    )
