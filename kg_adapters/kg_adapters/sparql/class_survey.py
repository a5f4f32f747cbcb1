"""The largest classes of a graph behind an endpoint, and how many instances they have."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kg_adapters.sparql.bounded_asking import BoundedAsker
from kg_adapters.sparql.queries.profiles import Looked, ProfileQueries
from kg_adapters.sparql.rows import Row
from kg_adapters.terms import Node, node_key


@dataclass(frozen=True, slots=True)
class SurveyedClass:
    """A class.

    Args:
        iri: Its IRI.
        below: The classes at or below it that instances are said to be of.
        direct: How many are stated to be of this class itself.
        instances: How many instances it has.
        at_least: Whether it may have more.
        broader: The classes that it is said to be a subclass of.
    """

    iri: Node
    below: tuple[Node, ...]
    direct: int
    instances: int
    at_least: bool
    broader: tuple[Node, ...]

    def looked_at(self, place: int, most: int) -> Looked:
        """Return that at most so many of its instances are looked at."""
        return Looked(place, self.below, most if self.at_least or self.instances > most else None)


@dataclass(frozen=True, slots=True)
class SurveyedClasses:
    """Classes, the largest first; `complete` if the graph has no others with instances."""

    classes: tuple[SurveyedClass, ...] = ()
    complete: bool = False


async def survey_classes(asker: BoundedAsker, queries: ProfileQueries) -> SurveyedClasses:
    """Return the largest classes, each with the instances of its subclasses as far as these are known.

    Raises:
        BackendUnavailable: The endpoint cannot be reached.
        Enough: It answers nothing.
    """
    limits = asker.limits
    direct, every = await _direct(asker, queries)
    broader = await asker.ask(queries.broader(None)) if limits.whole else None
    known = broader is not None and broader.whole
    largest = sorted(direct, key=lambda node: (-direct[node], node_key(node)))
    if not known and largest:
        broader = await asker.ask(queries.broader(largest[: limits.classes]))
    above = _above(() if broader is None else broader.rows)
    below = _below(direct, above if known else {})
    most = {owner: sum(direct[each] for each in under) for owner, under in below.items()}
    owners = sorted(most, key=lambda node: (-most[node], node_key(node)))
    chosen = [Looked(place, below[owner]) for place, owner in enumerate(owners[: limits.classes])]
    sizes = await _sizes(asker, queries, chosen, direct if every else {})
    return SurveyedClasses(
        tuple(
            SurveyedClass(
                owner,
                looked.classes,
                direct.get(owner, 0),
                sizes.get(looked.place, max(direct[each] for each in looked.classes)),
                at_least=not known or looked.place not in sizes,
                broader=above.get(owner, ()),
            )
            for looked, owner in zip(chosen, owners, strict=False)
        ),
        complete=every and known and len(chosen) == len(owners),
    )


async def _direct(asker: BoundedAsker, queries: ProfileQueries) -> tuple[dict[Node, int], bool]:
    """Return how many instances classes are said to have, and whether these are all of both."""
    for query, every in queries.classes(asker.limits.sampled):
        found = await asker.ask(query)
        sizes = {row.node("c"): row.number("n") or 0 for row in (() if found is None else found.rows)}
        direct = {node: number for node, number in sizes.items() if node is not None and asker.can_name(node)}
        if found is not None and direct:
            return direct, every and found.whole and len(direct) == len(sizes)
    return {}, False


async def _sizes(
    asker: BoundedAsker, queries: ProfileQueries, looked: Sequence[Looked], direct: Mapping[Node, int]
) -> dict[int, int]:
    """Return the sizes of classes by place, asking for those that do not follow from what is known."""
    sizes = {
        each.place: direct[each.classes[0]] for each in looked if len(each.classes) == 1 and each.classes[0] in direct
    }
    missing = [each for each in looked if each.place not in sizes]
    found = await asker.ask(queries.sizes(missing)) if missing else None
    return sizes | {row.number("k") or 0: row.number("n") or 0 for row in (() if found is None else found.rows)}


def _above(found: Iterable[Row]) -> dict[Node, tuple[Node, ...]]:
    above: defaultdict[Node, set[Node]] = defaultdict(set)
    for row in found:
        narrow, wide = row.node("c"), row.node("d")
        if narrow is not None and wide is not None:
            above[narrow].add(wide)
    return {narrow: tuple(sorted(wide, key=node_key)) for narrow, wide in above.items()}


def _below(direct: Mapping[Node, int], above: Mapping[Node, Sequence[Node]]) -> dict[Node, tuple[Node, ...]]:
    below: defaultdict[Node, list[Node]] = defaultdict(list)
    for node in direct:
        for owner in _reached(node, above):
            below[owner].append(node)
    return {owner: tuple(under) for owner, under in below.items()}


def _reached(node: Node, above: Mapping[Node, Sequence[Node]]) -> Iterator[Node]:
    reached, ahead = {node}, [node]
    while ahead:
        current = ahead.pop()
        yield current
        fresh = set(above.get(current, ())) - reached
        reached |= fresh
        ahead.extend(fresh)
