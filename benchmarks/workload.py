"""What is asked: entities, pairs and names, chosen by degree and the same in every run."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Final, TypeAlias

import numpy as np

from kg_adapters.local.index import GraphIndex, Longs

Pair: TypeAlias = tuple[str, str]

LOW_DEGREE: Final = 20
HUB_DEGREE: Final = 5_000
_FEWEST_HUBS: Final = 4
_MOST_HUBS: Final = 20
_MADE_UP: Final = "Wikidata item "


@dataclass(frozen=True, slots=True)
class Workload:
    """The questions for one graph; entities are IRIs.

    Args:
        low: Entities with 1 to 20 neighbours.
        hubs: Entities with 5,000 neighbours or more, or the four largest of a small graph; the largest first.
        random_pairs: Two of any entities that have neighbours.
        hub_adjacent: Two low-degree neighbours of one hub.
        hub_pairs: Two hubs.
        names: Labels of entities, but none of the made-up ones.
        typos: The same with two neighbouring letters exchanged.
        alike: Made-up labels with such a typo; most labels of the benchmark graph differ only in their digits.
    """

    low: tuple[str, ...]
    hubs: tuple[str, ...]
    random_pairs: tuple[Pair, ...]
    hub_adjacent: tuple[Pair, ...]
    hub_pairs: tuple[Pair, ...]
    names: tuple[str, ...]
    typos: tuple[str, ...]
    alike: tuple[str, ...]


def choose_workload(index: GraphIndex, size: int) -> Workload:
    """Choose up to `size` questions of each kind."""
    dice = random.Random(20)  # noqa: S311 - the same choice every time is the point
    degrees: Longs = np.diff(index.links.starts)
    low = _pick(dice, np.flatnonzero((degrees > 0) & (degrees <= LOW_DEGREE)), size)
    hubs = _hubs(degrees)
    linked = np.flatnonzero(degrees > 0)
    pairs = list(zip(_pick(dice, linked, size), _pick(dice, linked, size), strict=True))
    hub_pairs = [(hubs[a], hubs[b]) for a, b in combinations(range(len(hubs)), 2)]
    labelled = _pick(dice, np.flatnonzero(index.labels >= 0), len(index.nodes))
    names = _names(index, labelled, size, made_up=False)
    return Workload(
        low=tuple(index.nodes[node] for node in low),
        hubs=tuple(index.nodes[node] for node in hubs),
        random_pairs=_keys(index, [(a, b) for a, b in pairs if a != b]),
        hub_adjacent=_keys(index, _around_hubs(dice, index, degrees, hubs, size)),
        hub_pairs=_keys(index, dice.sample(hub_pairs, min(size, len(hub_pairs)))),
        names=tuple(names),
        typos=tuple(_mistyped(dice, name) for name in names),
        alike=tuple(_mistyped(dice, name) for name in _names(index, labelled, size, made_up=True)),
    )


def _hubs(degrees: Longs) -> list[int]:
    order: list[int] = np.argsort(-degrees, kind="stable")[:_MOST_HUBS].tolist()
    return [node for rank, node in enumerate(order) if rank < _FEWEST_HUBS or degrees[node] >= HUB_DEGREE]


def _around_hubs(
    dice: random.Random, index: GraphIndex, degrees: Longs, hubs: Sequence[int], size: int
) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for turn in range(size):
        hub = hubs[turn % len(hubs)]
        around = index.links.neighbors[index.links.starts[hub] : index.links.starts[hub + 1]]
        first, second = dice.sample(around[degrees[around] <= LOW_DEGREE].tolist(), 2)
        pairs.append((first, second))
    return pairs


def _names(index: GraphIndex, nodes: Sequence[int], size: int, *, made_up: bool) -> list[str]:
    found = (index.features.values[int(index.labels[node])] for node in nodes)
    return list(islice((name for name in found if len(name) >= 6 and name.startswith(_MADE_UP) == made_up), size))


def _mistyped(dice: random.Random, name: str) -> str:
    place = dice.randrange(1, len(name) - 2)
    return name[:place] + name[place + 1] + name[place] + name[place + 2 :]


def _pick(dice: random.Random, nodes: Longs, size: int) -> list[int]:
    choices: list[int] = nodes.tolist()
    return dice.sample(choices, min(size, len(choices)))


def _keys(index: GraphIndex, pairs: Sequence[tuple[int, int]]) -> tuple[Pair, ...]:
    return tuple((index.nodes[a], index.nodes[b]) for a, b in pairs)
