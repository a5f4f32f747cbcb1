"""Turns of ODA that go the ways of the gold queries, also where no facts can be worked out by rules."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from benchmarks.world.walks import Way
from kg_eval.metrics.values import fold

_DATA: Final = re.compile(r"<data>\n(.*?)\n</data>", re.DOTALL)
_PARTS: Final = 5
_LINE: Final = re.compile(r"^\[(?P<numbers>[\d, -]+)\] (?P<told>.*)$", re.MULTILINE)
_CANDIDATE: Final = re.compile(r"^c(\d+) (.*)$", re.MULTILINE)
_NOTHING: Final = "(nothing)"
_LAST: Final = "Action: Answer; this is the last turn"


@dataclass(frozen=True, slots=True)
class Shown:
    """What the prompt of a turn shows.

    Args:
        lines: The facts of the memory and the new ones, each line with its numbers.
        fresh: The new ones.
        candidates: The candidates, each with its number.
        done: What was done.
    """

    lines: tuple[tuple[str, str], ...]
    fresh: tuple[tuple[str, str], ...]
    candidates: tuple[tuple[str, str], ...]
    done: tuple[str, ...]

    @classmethod
    def of(cls, prompt: str) -> Self:
        """Read a prompt."""
        _, memory, facts, candidates, history = _DATA.findall(prompt)[-_PARTS:]
        kept, fresh = (
            tuple((each["numbers"], each["told"]) for each in _LINE.finditer(text)) for text in (memory, facts)
        )
        done = tuple(line for line in history.splitlines() if line != _NOTHING)
        return cls((*kept, *fresh), fresh, tuple(_CANDIDATE.findall(candidates)), done)

    @property
    def text(self) -> str:
        """All facts."""
        return "\n".join(told for _, told in self.lines)


def turn(
    prompt: str, ways: Sequence[Way], answers: int, says: Callable[[str], Sequence[str]], *, computed: bool
) -> str:
    """Return a turn.

    Args:
        prompt: The prompt.
        ways: The steps of the query.
        answers: How many right answers there are.
        says: Returns those that a text shows.
        computed: Whether they are worked out, so that no fact names them.
    """
    shown = Shown.of(prompt)
    gone = sum(not line.startswith("Search") for line in shown.done)
    last, left = ways[max(gone - 1, 0) : gone], ways[gone:]
    kept = [numbers for numbers, told in shown.fresh if _follows(told, ways) or (says(told) and not computed)]
    kept += [numbers for numbers, told in shown.lines[: -len(shown.fresh) or None] if _follows(told, last)]
    found = says(shown.text)
    over = not left or _LAST in prompt or (not computed and 0 < answers == len(found))
    thought = f"Thought: I follow the query.\nKeep: {', '.join(kept) or 'none'}\nAction: "
    if not over:
        return thought + _walk(shown, left[0])
    behind = [numbers for numbers, told in shown.lines if _follows(told, ways)]
    lines = [f"{text} [{', '.join((not computed and _naming(text, shown, says)) or behind)}]" for text in found]
    return thought + "\n".join(("Answer", "Answer:", *(lines or ["Not in the graph: what is asked for"])))


def _naming(text: str, shown: Shown, says: Callable[[str], Sequence[str]]) -> list[str]:
    """Return the numbers of the lines that show an answer."""
    return [numbers for numbers, told in shown.lines if text in says(told)]


def _follows(told: str, ways: Sequence[Way]) -> bool:
    """Say whether a line tells of one of the relations; of a node without a name all is told in one line."""
    relations = {way.plain for way in ways if way.relation}
    return any(f" | {each} | " in told or (told.startswith("(") and each in told) for each in relations)


def _walk(shown: Shown, way: Way) -> str:
    """Return the action that goes a step."""
    if not way.start:
        return f"Look[{way.plain}]"
    named = [number for number, name in shown.candidates if _is(way.start, name)]
    if way.end:
        ends = [number for number, name in shown.candidates if _is(way.end, name)]
        return f"GetPath[c{(*named, '1')[0]}, c{(*ends, '2')[0]}]"
    if not named and not any(line.startswith(f"Search[{way.start}]") for line in shown.done):
        return f"Search[{way.start}]"
    return f"GetNeighbor[c{named[0] if named else 1}, {way.plain}]"


def _is(name: str, candidate: str) -> bool:
    return fold(name) in {fold(candidate), fold(candidate.rpartition(" (")[0])}
