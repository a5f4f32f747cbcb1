"""One run of Graph Counselor: its steps and its attempts."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_agents.evidence.answers import RunStep as ShownStep
from kg_agents.evidence.answers import whole
from kg_agents.evidence.ledger import Cited, Ledger
from kg_agents.evidence.values import IdLabels, Shown, plain_value
from kg_agents.llm.dialogue import Dialogue
from kg_agents.llm.texts import clipped
from kg_agents.papers.graph_counselor.calls import FINISH
from kg_agents.papers.graph_counselor.replies import NOT_IN_GRAPH, Finish, Judgement, Query
from kg_agents.tools.knowledge import KnowledgeGraph

OLDER_OBSERVATION: Final = 300
"""To how many characters an older observation is shortened first."""

LAST_OBSERVATION: Final = (3_000, 1_000, 300)
"""To how many characters the newest one is shortened, step by step, once all others are short."""

OLDER_PROSE: Final = 120
"""To how many characters the plans and thoughts of older steps are shortened in the end."""


@dataclass(frozen=True, slots=True)
class AttemptStep:
    """One step of an attempt; what is not written yet is None.

    Args:
        number: Its number, from 1.
        plan: How to go on, by the planning agent.
        thought: What to find out next, by the thought agent.
        action: What was to be performed, by the execution agent.
        observation: What came of it.
    """

    number: int
    plan: str | None = None
    thought: str | None = None
    action: str | None = None
    observation: str | None = None

    @property
    def shown(self) -> ShownStep:
        """The step as people see it."""
        thought = "\n".join(text for text in (self.plan, self.thought) if text)
        return ShownStep(self.number, thought, self.action or "", self.observation or "")

    def written(self) -> str:
        """Return the step as the model reads it, one heading for each thing that is known."""
        parts = (
            ("Plan", self.plan),
            ("Thought", self.thought),
            ("Action", self.action),
            ("Observation", self.observation),
        )
        return "\n".join(f"{name} {self.number}: {text}" for name, text in parts if text is not None)


def written(steps: Sequence[AttemptStep]) -> str:
    """Return steps as the model reads them."""
    return "\n".join(step.written() for step in steps)


def shortened(text: str, most: int) -> str:
    """Return the first characters of a text, and how many there were, unless that is no shorter."""
    short = f"{text[:most].rstrip()} [shortened to save room: {most:,} of {len(text):,} characters are here]"
    return short if len(short) < len(text) else text


def shortenings(steps: Sequence[AttemptStep]) -> Iterator[Sequence[AttemptStep]]:
    """Yield steps as they are, and then with more and more of them shortened.

    The oldest observation is shortened first, the newest last; then older plans and thoughts. Each says so itself.

    Args:
        steps: The steps of an attempt, the oldest first.
    """
    yield steps
    observed = [place for place, step in enumerate(steps) if step.observation is not None]
    if not observed:
        return
    now, newest = list(steps), observed[-1]
    for place in observed[:-1]:
        now[place] = _observing(steps[place], OLDER_OBSERVATION)
        yield tuple(now)
    for most in LAST_OBSERVATION:
        now[newest] = _observing(steps[newest], most)
        yield tuple(now)
    for place in observed[:-1]:
        now[place] = _outline(steps[place])
        yield tuple(now)


def _observing(step: AttemptStep, most: int) -> AttemptStep:
    return step if step.observation is None else replace(step, observation=shortened(step.observation, most))


def _outline(step: AttemptStep) -> AttemptStep:
    return replace(
        _observing(step, OLDER_PROSE),
        plan=step.plan and shortened(step.plan, OLDER_PROSE),
        thought=step.thought and shortened(step.thought, OLDER_PROSE),
    )


End: TypeAlias = Choice["finished", "steps", "unreadable", "stopped"]
"""How an attempt ended: with an answer, at the limit of steps, with replies that could not be read, or with the run."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One pass of the inner loop.

    Args:
        steps: Its steps.
        numbers: What its steps observed, by the numbers of the ledger.
        end: How it ended.
        answer: The answer; None where it gave none.
        cited: The answers one by one, each with what it cites, by the numbers of the ledger.
        missing: Why the graph does not hold the answer; None where the attempt did not find that.
        judgement: What the judge said; None where it was not asked.
        reflection: What was learnt from it for the next attempt; empty where there is none.
    """

    steps: tuple[AttemptStep, ...] = ()
    numbers: tuple[int, ...] = ()
    end: End = "stopped"
    answer: str | None = None
    missing: str | None = None
    judgement: Judgement | None = None
    reflection: str = ""
    cited: tuple[Cited, ...] = ()

    @property
    def failure(self) -> str:
        """How it failed, in sentences."""
        match self.end:
            case "finished":
                said = f" The judge said: {self.judgement.explanation}" if self.judgement else ""
                return f"The answer {self.claim!r} was not judged to be right.{said}"
            case "steps":
                return f"There was no answer after {len(self.steps)} steps, which is the most there may be."
            case _:
                return f"It was given up after {len(self.steps)} steps: several replies in a row could not be read."

    @property
    def claim(self) -> str | None:
        """What is judged: the answer, or that there is none in the graph."""
        return self.answer if self.missing is None else f"{NOT_IN_GRAPH}: {self.missing}"

    @property
    def not_in_graph(self) -> bool:
        """Whether the graph does not hold the answer: as the judge says, or as the attempt says and nobody denies."""
        if self.judgement is None:
            return self.missing is not None
        return self.judgement.verdict == "missing" or (self.missing is not None and self.accepted)

    @property
    def settled(self) -> bool:
        """Whether there is nothing to try again."""
        return self.accepted or self.not_in_graph

    @property
    def accepted(self) -> bool:
        """Whether the judge holds the answer to be right."""
        return self.judgement is not None and self.judgement.verdict == "yes"


MAX_GIST: Final = 160
"""How much of what a call gave the next attempt is told."""


@dataclass
class CounselorRun:
    """One question on its way to an answer.

    Args:
        question: The question.
        entities: Ids that it is about, where they are known.
        graph: The graph, through its tools.
        talk: The calls of models.
        definition: The definition of the graph, or what lies around the question.
        attempts: The attempts that are over.
        steps: The steps of the attempt that is open.
        open: Whether one is.
        failures: How many of its last steps failed in a row.
        ledger: What the model was shown of the graph.
        surroundings: The number in the ledger of what the graph holds around the question, which prompts call 0.
    """

    question: str
    entities: tuple[str, ...]
    graph: KnowledgeGraph
    talk: Dialogue
    definition: str = ""
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    steps: list[AttemptStep] = field(default_factory=list[AttemptStep])
    open: bool = False
    failures: int = 0
    ledger: Ledger = field(default_factory=Ledger)
    surroundings: int | None = None
    _asked: dict[str, int] = field(default_factory=dict[str, int])
    _observed: list[int] = field(default_factory=list[int])

    @property
    def labels(self) -> IdLabels:
        """What all ids that were shown are called."""
        return self.ledger.labels

    @property
    def topic(self) -> str:
        """The question, and what it is about where that is known."""
        names = ", ".join(map(self.labels.node, self.entities))
        return f"{self.question}\nIt is about: {names}" if self.entities else self.question

    @property
    def tried(self) -> dict[str, str]:
        """The calls of attempts that are over, with the beginning of what they gave; answers may be given again."""
        steps = (step for attempt in self.attempts for step in attempt.steps)
        calls = ((step.action, step) for step in steps if step.action and not step.action.startswith(FINISH))
        return {call: _gist(call, step.observation or "") for call, step in calls}

    def repeats(self) -> bool:
        """Return whether the last attempt brought nothing new: no call, and no answer, that an earlier one had not.

        What was thought of the same answer then is thought of it now.
        """
        *earlier, last = self.attempts
        known = {step.action for attempt in earlier for step in attempt.steps}
        same = next((attempt for attempt in reversed(earlier) if attempt.claim == last.claim), None)
        if same is None or any(step.action not in known for step in last.steps if step.action):
            return False
        self.amend(replace(last, judgement=same.judgement))
        return True

    def lessons(self, learnt: Choice["all", "latest"]) -> str:
        """Return what was learnt from earlier attempts, or from the latest that taught something, by number."""
        taught = [attempt.reflection for attempt in self.attempts if attempt.reflection]
        shown = taught[-1:] if learnt == "latest" else taught
        return "\n\n".join(f"Reflection {number}:\n{text}" for number, text in enumerate(shown, start=1))

    @property
    def last_step(self) -> AttemptStep:
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
        self.steps, self._asked, self._observed = [], {}, []

    def begin_step(self) -> None:
        """Begin the next step."""
        self.steps.append(AttemptStep(len(self.steps) + 1))

    def note(self, *, plan: str | None = None, thought: str | None = None, action: str | None = None) -> None:
        """Keep what one of the agents said."""
        step = self.steps[-1]
        self.steps[-1] = replace(
            step, plan=plan or step.plan, thought=thought or step.thought, action=action or step.action
        )

    def numbers(self, observations: Iterable[int]) -> tuple[int, ...]:
        """Return the numbers in the ledger of observations; 0 is what the graph holds around the question."""
        places = [self.surroundings, *self._observed]
        found = (places[each] for each in observations if 0 <= each < len(places))
        return tuple(number for number in found if number is not None)

    def listed(self, observations: Iterable[int]) -> tuple[str, ...]:
        """Return the names of all that observations list; nothing where one of them is no list, or is cut."""
        numbers = self.numbers(observations)
        if not whole(self.ledger.cited(numbers)):
            return ()
        names = (plain_value(self.labels.nodes.get(each, each)) for each in self.ledger.listed(numbers))
        return tuple(dict.fromkeys(names))

    def asked_before(self, query: Query) -> tuple[AttemptStep, ...]:
        """Return the steps of this attempt that performed all that a query asks; none where some of it is new."""
        numbers = {self._asked.get(call, 0) for call in query.asked}
        return () if 0 in numbers else tuple(self.steps[number - 1] for number in sorted(numbers))

    def observe(self, observation: Shown, query: Query) -> None:
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
        self._end_step(Shown(text=f"Answer is {finish.answer}"))
        self.end_attempt("finished", finish)

    def fail(self, reason: str, most: int) -> None:
        """End the step with the reason why it failed, and the attempt where so many steps in a row have."""
        self._end_step(Shown(text=f"Nothing was performed, since a reply could not be used twice: {reason}"))
        self.failures += 1
        if self.failures >= most:
            self.end_attempt("unreadable")

    def end_attempt(self, end: End, finish: Finish | None = None) -> None:
        """Put the attempt aside, if one is open."""
        if self.open:
            answer = finish.answer if finish and finish.missing is None else None
            missing = finish.missing if finish else None
            given = finish.cited if finish else ()
            cited = tuple(replace(each, numbers=self.numbers(each.numbers)) for each in given)
            self.attempts.append(Attempt(tuple(self.steps), tuple(self._observed), end, answer, missing, cited=cited))
        self.open = False

    def amend(self, attempt: Attempt) -> None:
        """Replace the last attempt."""
        self.attempts[-1] = attempt

    def _end_step(self, observation: Shown) -> None:
        self.steps[-1] = replace(self.steps[-1], observation=observation.text)
        self._observed.append(self.ledger.add(observation))


def _gist(action: str, observation: str) -> str:
    """Return the beginning of an observation on one line, without the action that it repeats."""
    return clipped(" ".join(observation.removeprefix(f"{action}:").split()), MAX_GIST)
