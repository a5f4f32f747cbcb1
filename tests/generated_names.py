"""Names as people write and miswrite them, made from those of a graph by a seed, and the right verdict on each.

A slip leaves out, doubles, replaces or exchanges a letter inside a word of four letters or more. Two slips are in two
words of a long name, or both in one word, which nobody can be sure to read. A turned name begins with its last word and
a comma. Names that are not in the graph are put together from the words of several names, or from syllables, or are
another one with another number.
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal as Choice

import numpy as np

from kg_adapters.folding import fold
from kg_adapters.index.graph_index import GraphIndex, Longs, bare_relations
from kg_adapters.index.storage import IndexStorage
from kg_adapters.labels import Vocabulary
from kg_adapters.local.names.search import name_nodes
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node, node_from_key
from kg_server.naming.entities import Identity, identify
from kg_server.naming.misspelling import SMALL_WORDS

SEED = 12
Way = Choice[
    "exact",
    "alias",
    "one slip",
    "two slips",
    "two slips in a word",
    "a word missing",
    "absent",
    "turned",
    "another number",
]
SHARES: Mapping[Way, int] = {
    "exact": 18,
    "alias": 16,
    "one slip": 20,
    "two slips": 8,
    "two slips in a word": 8,
    "a word missing": 12,
    "absent": 18,
    "turned": 6,
    "another number": 4,
}
"""How many there are of a hundred and ten."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A text, how it was made, and who bears the name that it was made from."""

    text: str
    way: Way
    meant: frozenset[Node]

    def is_right(self, found: Identity) -> bool:
        """Say whether a verdict is right, and about the right entities."""
        named = frozenset(found.nodes)
        if self.way in {"absent", "another number"}:
            return found.match in {"loose", "none"} and not named
        if self.way in {"exact", "alias"}:
            return found.match == "exact" and self.meant <= named
        if self.way in {"one slip", "two slips", "turned"}:
            return found.match == "close" and self.meant == named
        return found.match == "loose" and not self.meant.isdisjoint(each.entity for each in found.near)


def generated_names(index: GraphIndex, size: int, seed: int = SEED) -> list[Asked]:
    """Return `size` texts or a few less, the same every time."""
    return _Names(index, random.Random(seed)).texts(size)  # noqa: S311 - the same choice every time is the point


async def mistaken(graph: KGAdapter, asked: Sequence[Asked]) -> list[tuple[Asked, Identity]]:
    """Return the texts for which a graph's verdict is wrong, with that verdict."""
    found = await identify(graph, [each.text for each in asked])
    return [(each, verdict) for each, verdict in zip(asked, found, strict=True) if not each.is_right(verdict)]


class _Names:
    def __init__(self, index: GraphIndex, dice: random.Random) -> None:
        self._dice = dice
        self._labels = _bearers(index, Vocabulary().labels)
        self._aliases = _bearers(index, Vocabulary().aliases)
        table = name_nodes(index, Vocabulary(), IndexStorage()).names
        self._taken = frozenset(table[number] for number in range(len(table)))
        self._called: defaultdict[str, frozenset[Node]] = defaultdict(frozenset)
        for name, bearers in (*self._labels.items(), *self._aliases.items()):
            self._called[fold(name)] |= bearers

    def texts(self, size: int) -> list[Asked]:
        ways: Mapping[Way, Callable[[str], str | None]] = {
            "exact": self._restyled,
            "alias": self._restyled,
            "one slip": lambda name: self._slipped(name, 1),
            "two slips": lambda name: self._slipped(name, 2),
            "two slips in a word": self._slipped_twice,
            "a word missing": self._shortened,
            "turned": _turned,
            "another number": _renumbered,
        }
        found: list[Asked] = []
        for way, share in SHARES.items():
            count = size * share // sum(SHARES.values())
            if way == "absent":
                found.extend(Asked(text, way, frozenset()) for text in self._absent(count))
            else:
                found.extend(self._made(way, ways[way], count))
        return found

    def _made(self, way: Way, change: Callable[[str], str | None], count: int) -> list[Asked]:
        names = self._aliases if way == "alias" else self._labels
        made: list[Asked] = []
        for name in self._dice.sample(sorted(names), len(names)):
            text = change(name) if len(fold(name)) > 3 else None
            if text is not None and (way in {"exact", "alias"} or fold(text) not in self._taken):
                made.append(Asked(text, way, self._called[fold(name)]))
            if len(made) == count:
                break
        return made

    def _restyled(self, name: str) -> str:
        return self._dice.choice((name, name.upper(), name.lower(), f" {name} "))

    def _slipped(self, name: str, count: int) -> str | None:
        words = name.split()
        long = [place for place, word in enumerate(words) if _can_slip(word)]
        fewest = 12 if count > 1 else 5
        if len(long) < count or sum(map(len, words)) < fewest:
            return None
        for place in self._dice.sample(long, count):
            words[place] = self._slip(words[place])
        return " ".join(words)

    def _slipped_twice(self, name: str) -> str | None:
        words = name.split()
        long = [place for place, word in enumerate(words) if _can_slip(word) and len(word) > 8]
        if not long:
            return None
        place = self._dice.choice(long)
        half = len(words[place]) // 2
        words[place] = self._slip(words[place][:half]) + self._slip(words[place][half:])
        return " ".join(words)

    def _slip(self, word: str) -> str:
        """Return a word with one letter left out, doubled, replaced, or exchanged with the next; never the first."""
        while True:
            place = self._dice.randrange(1, len(word) - 1)
            before, letter, after = word[:place], word[place], word[place + 1 :]
            slipped = self._dice.choice(
                (
                    before + after,
                    before + letter + letter + after,
                    before + self._dice.choice("aeinorst") + after,
                    before + after[:1] + letter + after[1:],
                )
            )
            if fold(slipped) != fold(word):
                return slipped

    def _shortened(self, name: str) -> str | None:
        words = name.split()
        if len(words) < 3:
            return None
        left_out = self._dice.randrange(len(words))
        left = [word for place, word in enumerate(words) if place != left_out]
        return " ".join(left) if sum(word.lower() not in SMALL_WORDS for word in left) > 1 else None

    def _absent(self, count: int) -> list[str]:
        """Return names that nothing bears."""
        names = [name.split() for name in sorted(self._labels) if len(name.split()) > 1 and name.isprintable()]
        found: list[str] = []
        while len(found) < count:
            first, second = self._dice.sample(names, 2)
            text = " ".join((*first[:-1], second[-1]) if self._dice.random() < 0.7 else self._invented(first))
            if fold(text) not in self._taken:
                found.append(text)
        return found

    def _invented(self, words: Sequence[str]) -> list[str]:
        return [word if len(word) < 5 and place else self._word() for place, word in enumerate(words)]

    def _word(self) -> str:
        parts = [
            self._dice.choice("bdfgklmnprstvz") + self._dice.choice("aeiou") for _ in range(self._dice.randrange(3, 5))
        ]
        return "".join(parts).capitalize() + self._dice.choice(("", "n", "rt", "stad"))


def _turned(name: str) -> str | None:
    before, _, last = name.rpartition(" ")
    return f"{last}, {before}" if before and name.replace(" ", "").isalpha() else None


def _renumbered(name: str) -> str | None:
    changed = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), name, count=1)
    return None if changed == name else changed


def _can_slip(word: str) -> bool:
    return len(word) >= 4 and word.isalpha() and not word.isupper() and word.isascii() == fold(word).isascii()


def _bearers(index: GraphIndex, relations: Sequence[object]) -> dict[str, frozenset[Node]]:
    """Return the entities by name, relations left out."""
    ids = [number for each in relations if (number := index.relations.find(str(each))) is not None]
    rows: Longs = np.flatnonzero(np.isin(index.features.relations, ids))
    owners = np.searchsorted(index.features.starts, rows, side="right") - 1
    bare = bare_relations(index)
    found: defaultdict[str, set[Node]] = defaultdict(set)
    for row, owner in zip(rows.tolist(), owners.tolist(), strict=True):
        if not bare[owner]:
            found[index.features.values[row]].add(node_from_key(index.nodes[owner]))
    return {name: frozenset(nodes) for name, nodes in found.items()}
