"""What an attempt has written so far, and how it is shortened to fit into a prompt."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

OLDER_OBSERVATION: Final = 300
"""To how many characters an older observation is shortened first."""

LAST_OBSERVATION: Final = (3_000, 1_000, 300)
"""To how many characters the newest one is shortened, step by step, once all others are short."""

OLDER_PROSE: Final = 120
"""To how many characters the plans and thoughts of older steps are shortened in the end."""


@dataclass(frozen=True, slots=True)
class Step:
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

    def written(self) -> str:
        """Return the step as the model reads it, one heading for each thing that is known."""
        parts = (
            ("Plan", self.plan),
            ("Thought", self.thought),
            ("Action", self.action),
            ("Observation", self.observation),
        )
        return "\n".join(f"{name} {self.number}: {text}" for name, text in parts if text is not None)


def written(steps: Sequence[Step]) -> str:
    """Return steps as the model reads them."""
    return "\n".join(step.written() for step in steps)


def shortened(text: str, most: int) -> str:
    """Return the first characters of a text, and how many there were, unless that is no shorter."""
    short = f"{text[:most].rstrip()} [shortened to save room: {most:,} of {len(text):,} characters are here]"
    return short if len(short) < len(text) else text


def shortenings(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
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


def _observing(step: Step, most: int) -> Step:
    return step if step.observation is None else replace(step, observation=shortened(step.observation, most))


def _outline(step: Step) -> Step:
    return replace(
        _observing(step, OLDER_PROSE),
        plan=step.plan and shortened(step.plan, OLDER_PROSE),
        thought=step.thought and shortened(step.thought, OLDER_PROSE),
    )
