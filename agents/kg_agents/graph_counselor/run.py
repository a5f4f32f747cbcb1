"""The state of one run: the context that grows step by step, and the attempts that are over."""

from dataclasses import dataclass, field, replace
from typing import Final

from kg_agents.dialogue import Dialogue
from kg_agents.graph_counselor.actions import Finish, Query
from kg_agents.graph_counselor.attempts import Attempt, End
from kg_agents.graph_counselor.observations import Observation
from kg_agents.graph_counselor.scratchpad import Step
from kg_agents.graph_values import Labels
from kg_agents.grounding import shown
from kg_agents.support import Read
from kg_agents.texts import clipped

MAX_GIST: Final = 160
"""How much of what a call gave the next attempt is told."""


@dataclass
class Run:
    """One question on its way to an answer.

    Args:
        question: The question.
        entities: Ids that it is about, where they are known.
        talk: The calls of models.
        definition: The definition of the graph.
        attempts: The attempts that are over.
        steps: The steps of the attempt that is open.
        open: Whether one is.
        failures: How many of its last steps failed in a row.
        labels: What all ids that were read are called.
    """

    question: str
    entities: tuple[str, ...]
    talk: Dialogue
    definition: str = ""
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    steps: list[Step] = field(default_factory=list[Step])
    open: bool = False
    failures: int = 0
    labels: Labels = field(default_factory=Labels)
    _read: list[Read] = field(default_factory=list[Read])
    _asked: dict[str, int] = field(default_factory=dict[str, int])
    _listed: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    @property
    def topic(self) -> str:
        """The question, and what it is about where that is known."""
        names = ", ".join(map(self.labels.node, self.entities))
        return f"{self.question}\nIt is about: {names}" if self.entities else self.question

    @property
    def tried(self) -> dict[str, str]:
        """The actions of attempts that are over, with the beginning of what they gave."""
        steps = (step for attempt in self.attempts for step in attempt.steps)
        return {step.action: _gist(step.action, step.observation or "") for step in steps if step.action}

    def repeats(self) -> bool:
        """Say whether the last attempt brought nothing new: no call, and no answer, that an earlier one had not.

        What was thought of the same answer then is thought of it now.
        """
        *earlier, last = self.attempts
        known = {step.action for attempt in earlier for step in attempt.steps}
        same = next((attempt for attempt in reversed(earlier) if attempt.claim == last.claim), None)
        if same is None or any(step.action not in known for step in last.steps if step.action):
            return False
        self.amend(replace(last, judgement=same.judgement))
        return True

    @property
    def reflections(self) -> tuple[str, ...]:
        """What was learnt from earlier attempts, the first first."""
        return tuple(attempt.reflection for attempt in self.attempts if attempt.reflection)

    @property
    def last_step(self) -> Step:
        """The latest step of this attempt, or of the last one where none is open."""
        return self.steps[-1] if self.open else self.attempts[-1].steps[-1]

    @property
    def ending(self) -> str:
        """Why a run ends after its last attempt, in a word."""
        last = self.attempts[-1]
        if last.end != "finished":
            return last.end
        if last.not_in_graph:
            return "not_in_graph"
        return "answered" if last.accepted or last.judgement is None else "reflections"

    def begin_attempt(self) -> None:
        """Begin with an empty context: what was learnt from earlier attempts is all that stays."""
        self.open, self.failures = True, 0
        self.steps, self._read, self._asked, self._listed = [], [], {}, []

    def begin_step(self) -> None:
        """Begin the next step."""
        self.steps.append(Step(len(self.steps) + 1))

    def note(self, *, plan: str | None = None, thought: str | None = None, action: str | None = None) -> None:
        """Keep what one of the agents said."""
        step = self.steps[-1]
        self.steps[-1] = replace(
            step, plan=plan or step.plan, thought=thought or step.thought, action=action or step.action
        )

    def listed(self, step: int) -> tuple[str, ...]:
        """Return the names of all that the observation of a step lists; nothing where it is no list, or is cut."""
        found = self._listed[step - 1] if 1 <= step <= len(self._listed) else ()
        return tuple(dict.fromkeys(shown(each, self.labels) for each in found))

    def asked_before(self, query: Query) -> tuple[Step, ...]:
        """Return the steps of this attempt that performed all that a query asks; none where some of it is new."""
        numbers = {self._asked.get(call, 0) for call in query.asked}
        return () if 0 in numbers else tuple(self.steps[number - 1] for number in sorted(numbers))

    def observe(self, observation: Observation, query: Query) -> None:
        """End the step with what it observed.

        Args:
            observation: What was observed.
            query: What was performed for it.
        """
        self._end_step(observation)
        self.failures = 0
        for call in query.asked:
            self._asked.setdefault(call, len(self.steps))

    def finish(self, finish: Finish) -> None:
        """End the step and the attempt with an answer."""
        told = finish.answer if finish.all_of is None else f"all {len(finish.quoted)} of observation {finish.all_of}"
        self._end_step(Observation(f"Answer is {told}"))
        self.end_attempt("finished", finish)

    def fail(self, reason: str, most: int) -> None:
        """End the step with the reason why it failed, and the attempt where so many steps in a row have."""
        self._end_step(Observation(f"Nothing was performed, since a reply could not be used twice: {reason}"))
        self.failures += 1
        if self.failures >= most:
            self.end_attempt("unreadable")

    def end_attempt(self, end: End, finish: Finish | None = None) -> None:
        """Put the attempt aside, if one is open."""
        if self.open:
            answer = finish.answer if finish and finish.missing is None else None
            missing = finish.missing if finish else None
            quoted = finish.quoted if finish else ()
            self.attempts.append(Attempt(tuple(self.steps), tuple(self._read), end, answer, missing, quoted=quoted))
        self.open = False

    def amend(self, attempt: Attempt) -> None:
        """Replace the last attempt."""
        self.attempts[-1] = attempt

    def _end_step(self, observation: Observation) -> None:
        self.steps[-1] = replace(self.steps[-1], observation=observation.text)
        self._read.append(observation.read)
        self._listed.append(observation.listed)
        self.labels = self.labels.merged(observation.labels)


def _gist(action: str, observation: str) -> str:
    """Return the beginning of an observation on one line, without the action that it repeats."""
    return clipped(" ".join(observation.removeprefix(f"{action}:").split()), MAX_GIST)
