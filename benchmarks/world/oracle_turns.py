"""The ways of the gold queries, which the oracle goes with ODA in turns and with Graph-CoT, step by step."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

from benchmarks.world.one_call import Calls
from kg_eval.metrics.values import fold

MOST_AGAIN: Final = 6
"""How often a relation is walked that leads on and on."""

_DATA: Final = re.compile(r"<data>\n(.*?)\n</data>", re.DOTALL)
_PARTS: Final = 5
_WORD: Final = re.compile(
    r'Type\[(?P<type>[^\[\]]*)\]|(?P<sign>[=<>]+\s*)?(?:"(?P<name>[^"]*)"|(?P<word>[^\[\],"=<>]+)(?P<function>\[)?)'
)
_EDGE: Final = re.compile(r'@"(?P<name>[^"]*)" @"(?P<relation>[^"]*)"(?P<again>\+)?')
_BETWEEN: Final = re.compile(r'@"(?P<name>[^"]*)" \?x @"(?P<end>[^"]*)"')
_ID: Final = re.compile(r"\((w:E\d+)\)")
_TYPE: Final = "rdf:type"
_LINE: Final = re.compile(r"^\[(?P<numbers>[\d, -]+)\] (?P<told>.*)$", re.MULTILINE)
_CANDIDATE: Final = re.compile(r"^c(\d+) (.*)$", re.MULTILINE)
_NOTHING: Final = "(nothing)"
_LAST: Final = "Action: Answer; this is the last turn"


@dataclass(frozen=True, slots=True)
class Way:
    """One step of a query: over a relation, from an entity or from all that was reached.

    Args:
        relation: The relation by name; empty where the step is to whatever links two entities.
        start: The entity by name; empty where the step goes on from what was reached.
        end: The other entity, where there is no relation.
    """

    relation: str
    start: str = ""
    end: str = ""


def ways_of(calls: Calls) -> tuple[Way, ...]:
    """Return the steps of the call that answers a question, in the order in which it is worked out."""
    if calls.compose is not None:
        return tuple(dict.fromkeys(_ways(calls.compose)))
    if (between := _BETWEEN.search(calls.sparql)) is not None:
        return (Way("", between["name"], between["end"]),)
    edge = _EDGE.search(calls.sparql)
    assert edge is not None, calls.sparql
    return (Way(edge["relation"], edge["name"]), *[Way(edge["relation"])] * (MOST_AGAIN if edge["again"] else 0))


def _ways(expression: str) -> Iterator[Way]:
    """Yield the steps of an expression, whose innermost part stands first."""
    starts: list[str] = []
    named = '"' in expression
    for found in _WORD.finditer(expression):
        if found["sign"] or found["function"]:
            continue
        if found["type"] is not None and not named:
            yield Way(_TYPE, found["type"])
        if found["name"] is not None:
            starts.append(found["name"])
            continue
        for step in (found["word"] or "").split("/"):
            relation = step.strip().removeprefix("-")
            if relation and not relation.isdigit():
                yield from (Way(relation, start) for start in starts or [""])
                starts = []
    if starts:
        yield Way("", starts[0], starts[-1])


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
    relations = {way.relation for way in ways if way.relation}
    return any(f" | {each} | " in told or (told.startswith("(") and each in told) for each in relations)


def next_function(ways: Sequence[Way], observed: Sequence[str]) -> str | None:
    """Return the function of Graph-CoT that goes on, from one node at a time; None where the way is over.

    Args:
        ways: The steps of the query.
        observed: What the functions so far gave, which were those that this returned.
    """
    left, reached = list(observed), list[str]()
    for way in ways:
        starts = [f'"{way.start}"'] if way.start else reached
        found: list[str] = []
        for start in starts:
            if not left:
                return f"Neighbor[{start}, {way.relation}]" if way.relation else f"Neighbor[{start}]"
            found += _ID.findall(left.pop(0))
        reached = [*dict.fromkeys(found)] or reached
    return None


def _walk(shown: Shown, way: Way) -> str:
    """Return the action that goes a step."""
    if not way.start:
        return f"Look[{way.relation}]"
    named = [number for number, name in shown.candidates if _is(way.start, name)]
    if way.end:
        ends = [number for number, name in shown.candidates if _is(way.end, name)]
        return f"GetPath[c{(*named, '1')[0]}, c{(*ends, '2')[0]}]"
    if not named and not any(line.startswith(f"Search[{way.start}]") for line in shown.done):
        return f"Search[{way.start}]"
    return f"GetNeighbor[c{named[0] if named else 1}, {way.relation}]"


def _is(name: str, candidate: str) -> bool:
    return fold(name) in {fold(candidate), fold(candidate.rpartition(" (")[0])}
