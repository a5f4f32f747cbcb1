"""Which groups of facts an answer writes out, how many far ends of each, and in which order."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from kg_adapters.terms import Fact, Literal, Node
from kg_server.inverses import InverseOf, no_inverse, one_way
from kg_server.observation.groups import Group, Key

SHARE: Final = 0.6
"""From what part of the best score on groups count as like the question: further down scores are flat."""
FAR_GROUPS: Final = 10
"""How many groups that are no seed's are written out at most."""
NAMED: Final = (10, 4, 2)
"""How many far ends of a seed's group are named: of the first lines, of others like the question, and of all others."""
NAMED_AWAY: Final = (4, 2)
"""How many of other groups: of the first lines, and of all others."""
FIRST: Final = 3


def written_out(found: Sequence[Group], inverse_of: InverseOf = no_inverse, *, cut: bool) -> list[Group]:
    """Return the groups to write out, with the far ends to name, each fact once.

    All groups of the seeds are among them; of the others those that are like the question, and what led to them, which
    comes before them.

    Args:
        found: All groups, the best first.
        inverse_of: Gives the relation that says the same backwards, or None.
        cut: Whether to leave out groups that are not like the question; the paper keeps them.
    """
    groups = _once(found, inverse_of)
    if not groups:
        return []
    least = groups[0].score * SHARE
    away = [group for group in groups if group.hop > 1]
    if cut:
        away = [group for group in away if group.score >= least][:FAR_GROUPS]
    leading = _leading(groups)
    rank = {group.key: group.score for group in groups if group.hop == 1}
    for group in sorted(away, key=lambda each: -each.hop):
        below: Group | None = group
        score = group.score
        while below is not None:
            rank[below.key] = score = max(score, rank.get(below.key, below.score))
            below = leading.get(below.near) if below.hop > 1 else None
    ordered = sorted((group for group in groups if group.key in rank), key=lambda each: (-rank[each.key], each.hop))
    return _named(ordered, least, inverse_of)


def _once(groups: Sequence[Group], inverse_of: InverseOf) -> list[Group]:
    """Return groups of which none repeats over the inverse relation what one before it says of the same entity.

    Args:
        groups: The groups, the best first.
        inverse_of: Gives the relation that says the same backwards, or None.
    """
    kept: dict[Key, Group] = {}
    for group in groups:
        inverse = inverse_of(group.relation)
        other = None if inverse is None else kept.get((group.near, inverse, not group.inverse))
        if other is None:
            kept[group.key] = group
            continue
        more = tuple(far for far in group.far if far not in other.far)
        # Of large groups only the best far ends are known: those of one may all be among the others of the other.
        seen_whole = other.count == len(other.far)
        if more and (seen_whole or len(more) == len(group.far) or group.count > other.count):
            kept[group.key] = replace(group, far=more, count=group.count - len(group.far) + len(more))
    return list(kept.values())


def _leading(groups: Iterable[Group]) -> dict[Node, Group]:
    """Return for each far end the group that led there first."""
    leading: dict[Node, Group] = {}
    for group in sorted(groups, key=lambda each: each.hop):
        for far in group.far:
            if not isinstance(far, Literal):
                leading.setdefault(far, group)
    return leading


def _named(ordered: Sequence[Group], least: float, inverse_of: InverseOf) -> list[Group]:
    """Return groups with the far ends to name: first those that lead on, and none whose facts all stand already."""
    nears = {group.near for group in ordered}
    said: set[Fact] = set()
    named: list[Group] = []
    for group in ordered:
        most = _most(group, len(named) < FIRST, group.score >= least)
        on = [far for far in group.far if far in nears]
        far = tuple(dict.fromkeys((*on, *group.far)))[: max(most, len(on))]
        short = replace(group, far=far)
        facts = {one_way(fact, inverse_of) for fact in short.facts()}
        if group.count > len(far) or not facts <= said:
            named.append(short)
            said |= facts
    return named


def _most(group: Group, first: bool, alike: bool) -> int:
    """Return how many far ends of a group are named, if no more of them lead on."""
    if group.hop > 1:
        return NAMED_AWAY[0 if first else 1]
    return NAMED[0 if first else 1 if alike else 2]
