"""How often `Retrieve` finds who is meant by a name, as people write and miswrite it."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.index import GraphIndex, Longs
from kg_adapters.terms import node_from_key
from kg_server.meaning import Meaning
from kg_server.results import CandidatesResult
from kg_server.retrieval import retrieval
from kg_server.settings import Settings

TARGETS: Final[Mapping[str, float]] = {
    "exact label": 0.99,
    "alias": 0.97,
    "one typo": 0.90,
    "a word missing": 0.85,
    "words in another order": 0.95,
}
_SHOWN: Final = 5
_FEWEST_LETTERS: Final = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """A text, and the ids of all who are called that, or what it was made from."""

    text: str
    meant: frozenset[str]


@dataclass(frozen=True, slots=True)
class Found:
    """The shares of the texts for which who is meant came first, and among the first five."""

    first: float
    first_five: float


def choose_names(index: GraphIndex, adapter: LocalAdapter, size: int) -> dict[str, list[Asked]]:
    """Return up to `size` texts for each way of writing a name; the same in every run."""
    dice = random.Random(11)  # noqa: S311 - the same choice every time is the point
    vocabulary = adapter.vocabulary
    labels = _bearers(index, adapter, _rows(index, vocabulary, labels=True))
    aliases = _bearers(index, adapter, _rows(index, vocabulary, labels=False))
    called = {
        name: labels.get(name, frozenset[str]()) | aliases.get(name, frozenset[str]()) for name in labels | aliases
    }
    ways: dict[str, tuple[Mapping[str, frozenset[str]], Callable[[str], str | None]]] = {
        "exact label": (labels, lambda name: name),
        "alias": (aliases, lambda name: name),
        "one typo": (labels, lambda name: _mistyped(dice, name)),
        "a word missing": (labels, lambda name: _shortened(dice, name)),
        "words in another order": (labels, lambda name: _reordered(dice, name)),
    }
    return {way: _asked(dice, names, called, change, size) for way, (names, change) in ways.items()}


async def find_names(adapter: LocalAdapter, asked: Sequence[Asked], told: Callable[[], None]) -> Found:
    """Ask `Retrieve` for each text, by name alone."""
    names_alone = Meaning(adapter, Settings(embedder="lexical"))
    places: list[int] = []
    for each in asked:
        answer = await retrieval(adapter, names_alone, text=each.text, limit=_SHOWN, type=None, max_tokens=100_000)
        assert isinstance(answer.result, CandidatesResult)
        ids = [row[0] for row in answer.result.candidates]
        places.append(next((place for place, found in enumerate(ids) if found in each.meant), _SHOWN))
        told()
    total = max(1, len(places))
    return Found(sum(place == 0 for place in places) / total, sum(place < _SHOWN for place in places) / total)


def _asked(
    dice: random.Random,
    names: Mapping[str, frozenset[str]],
    called: Mapping[str, frozenset[str]],
    change: Callable[[str], str | None],
    size: int,
) -> list[Asked]:
    asked: list[Asked] = []
    for name in dice.sample(sorted(names), len(names)):
        text = change(name)
        if text is not None:
            # What is left of one name may be the whole of another.
            asked.append(Asked(text, names[name] | called.get(text, frozenset())))
        if len(asked) == size:
            break
    return asked


def _rows(index: GraphIndex, vocabulary: Vocabulary, *, labels: bool) -> Longs:
    relations = vocabulary.labels if labels else vocabulary.aliases
    ids = [number for each in relations if (number := index.relations.find(each.value)) is not None]
    return np.flatnonzero(np.isin(index.features.relations, ids))


def _bearers(index: GraphIndex, adapter: LocalAdapter, rows: Longs) -> dict[str, frozenset[str]]:
    """Return the ids of the entities by name, relations left out."""
    owners = np.searchsorted(index.features.starts, rows, side="right") - 1
    relations = set(index.relation_nodes.tolist())
    found: dict[str, set[str]] = defaultdict(set)
    for row, owner in zip(rows.tolist(), owners.tolist(), strict=True):
        if owner not in relations:
            found[index.features.values[row]].add(adapter.prefixes.shorten(node_from_key(index.nodes[owner])))
    return {name: frozenset(ids) for name, ids in found.items()}


def _mistyped(dice: random.Random, name: str) -> str | None:
    """Return a name with one letter left out, doubled, changed, or exchanged with the next."""
    if len(name) < _FEWEST_LETTERS:
        return None
    place = dice.randrange(1, len(name) - 1)
    before, letter, after = name[:place], name[place], name[place + 1 :]
    return dice.choice(
        (
            before + after,
            before + letter + letter + after,
            before + dice.choice("aeinorst") + after,
            before + after[:1] + letter + after[1:],
        )
    )


def _shortened(dice: random.Random, name: str) -> str | None:
    """Return a name of three words or more without one of them."""
    words = name.split()
    if len(words) < 3:
        return None
    left_out = dice.randrange(len(words))
    return " ".join(word for place, word in enumerate(words) if place != left_out)


def _reordered(dice: random.Random, name: str) -> str | None:
    """Return the words of a name in another order."""
    words = name.split()
    orders: Iterator[list[str]] = (dice.sample(words, len(words)) for _ in range(10))
    return None if len(set(words)) < 2 else next((" ".join(order) for order in orders if order != words), None)
