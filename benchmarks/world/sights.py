"""What a prompt of ODA shows, read as a person would: facts by number, candidates, and what was done."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

_DATA: Final = re.compile(r"<data>\n(.*?)\n</data>", re.DOTALL)
_LINE: Final = re.compile(r"^\[(?P<numbers>[\d, -]+)\] (?P<told>.+?)(?: \((?P<some>\d+) of (?P<all>\d+) shown\))?$")
_CANDIDATE: Final = re.compile(r"^c\d+ (?P<name>.+)$")
_DONE: Final = re.compile(r"^(?P<action>\w+)\[(?P<about>.*?)\](?:: | \(failed: )(?P<found>.*?)\)?$")


@dataclass(frozen=True, slots=True)
class Sight:
    """A fact.

    Args:
        number: The number that it is shown under.
        head: What it is about: a name, or a mark for an entry without one.
        relation: The relation.
        tail: What it leads to.
        new: Whether the memory does not hold it yet.
    """

    number: int
    head: str
    relation: str
    tail: str
    new: bool


@dataclass(frozen=True, slots=True)
class Done:
    """An action that was taken, and what came of it."""

    action: str
    about: str
    found: str


class Sights:
    """What one prompt shows.

    Args:
        prompt: The prompt.
        relations: What relations are called, so that they can be told from what follows them in a description.
    """

    def __init__(self, prompt: str, relations: Collection[str]) -> None:
        self._relations = sorted(relations, key=len, reverse=True)
        _, memory, new, candidates, history = _DATA.findall(prompt)[-5:]
        self.partial: set[tuple[str, str]] = set()
        self.facts = (*self._read(memory, new=False), *self._read(new, new=True))
        self.candidates = tuple(found["name"] for found in map(_CANDIDATE.match, candidates.splitlines()) if found)
        matches = (each for each in map(_DONE.match, history.splitlines()) if each)
        self.done = tuple(Done(each["action"], each["about"], each["found"]) for each in matches)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Everything that has a name here, the candidates first."""
        ends = (end for fact in self.facts for end in (fact.head, fact.tail))
        return tuple(dict.fromkeys((*self.candidates, *ends)))

    def _read(self, text: str, *, new: bool) -> Iterator[Sight]:
        for found in filter(None, map(_LINE.match, text.splitlines())):
            numbers = _numbers(found["numbers"])
            told = found["told"]
            parts = told.split(" | ")
            if len(parts) == 3:
                heads, tails = parts[0].split("; "), parts[2].split("; ")
                if found["all"]:
                    self.partial |= {(end, parts[1]) for end in (heads if len(heads) == 1 else tails)}
                pairs = [(head, tail) for head in heads for tail in tails]
                for number, (head, tail) in zip(numbers, pairs, strict=False):
                    yield Sight(number, head, parts[1], tail, new)
            elif told.startswith("("):
                yield from self._entry(numbers, told[1:-1].split("; "), new=new)

    def _entry(self, numbers: Sequence[int], parts: Sequence[str], *, new: bool) -> Iterator[Sight]:
        mark = f"entry {numbers[0]}"
        for number, part in zip(numbers, parts, strict=False):
            relation = next((each for each in self._relations if part.startswith(f"{each} ")), "")
            if not relation:
                continue
            end = part.removeprefix(relation).strip()
            if end.startswith("of "):
                yield Sight(number, end.removeprefix("of "), relation, mark, new)
            else:
                yield Sight(number, mark, relation, end, new)


def _numbers(written: str) -> list[int]:
    runs = (part.partition("-") for part in written.split(", "))
    return [number for first, _, last in runs for number in range(int(first), int(last or first) + 1)]
