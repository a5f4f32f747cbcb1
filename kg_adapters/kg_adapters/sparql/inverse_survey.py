"""Which relations of a graph behind an endpoint are inverse, told by a bounded part of their pairs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kg_adapters.profile import InverseRelations, PairCounts, choose_inverses, relation_meant
from kg_adapters.sparql.bounded_asking import BoundedAsker, Enough, ProfileLimits
from kg_adapters.sparql.queries.profiles import ProfileQueries
from kg_adapters.sparql.rows import Row
from kg_adapters.terms import Iri


@dataclass(frozen=True, slots=True)
class SurveyedInverses:
    """Pairs of inverse relations; `complete` if they were counted over all that the graph has."""

    pairs: tuple[InverseRelations, ...] = ()
    complete: bool = False


async def survey_inverses(asker: BoundedAsker, queries: ProfileQueries, edges: Mapping[Iri, int]) -> SurveyedInverses:
    """Return the inverse relations: those that are declared, and those of which pairs are stored both ways.

    Args:
        asker: What asks.
        queries: What writes the queries.
        edges: How many edges relations have, at least; those with most come first.

    Raises:
        BackendUnavailable: The endpoint cannot be reached.
        Enough: Too much was asked before.
    """
    limits = asker.limits
    declared = await asker.ask(queries.declared_inverses())
    relations, counted = list(edges)[: limits.relations], _Counted()
    whole = len(relations) == len(edges) and declared is not None and declared.whole
    try:
        for part, most in _parts(relations, edges, limits):
            back = await asker.ask(queries.pairs(part, back=True, most=most))
            along = await asker.ask(queries.pairs(part, back=False, most=most))
            if back is None or along is None:
                whole = False
                continue
            whole = whole and most is None and back.whole and along.whole
            counted.take(back.rows, along.rows)
    except Enough:
        whole = False
    said = [] if declared is None else [pair for pair in _declared(declared.rows) if counted.stored.keys() >= set(pair)]
    return SurveyedInverses(choose_inverses(PairCounts(counted.stored, counted.back, counted.along), said), whole)


@dataclass(frozen=True, slots=True)
class _Counted:
    stored: dict[Iri, int] = field(default_factory=dict[Iri, int])
    back: dict[tuple[Iri, Iri], int] = field(default_factory=dict[tuple[Iri, Iri], int])
    along: dict[tuple[Iri, Iri], int] = field(default_factory=dict[tuple[Iri, Iri], int])

    def take(self, back: Iterable[Row], along: Iterable[Row]) -> None:
        self.back.update(_by_relations(back))
        for (one, other), number in _by_relations(along):
            if one == other:
                self.stored[one] = number
            else:
                self.along[one, other] = number


def _by_relations(found: Iterable[Row]) -> Iterator[tuple[tuple[Iri, Iri], int]]:
    for row in found:
        one, other = row.iri("p"), row.iri("q")
        if one is not None and other is not None:
            yield (one, other), row.number("n") or 0


def _declared(found: Iterable[Row]) -> Iterator[tuple[Iri, Iri]]:
    for row in found:
        one, other = row.node("p"), row.node("q")
        if isinstance(one, Iri) and isinstance(other, Iri):
            yield relation_meant(one), relation_meant(other)


def _parts(
    relations: Sequence[Iri], edges: Mapping[Iri, int], limits: ProfileLimits
) -> Iterator[tuple[list[Iri], int | None]]:
    """Yield relations in groups that are looked at by one query, and how many pairs of each; None for all."""
    large = [each for each in relations if edges[each] > limits.pairs or not limits.whole]
    for start in range(0, len(large), together := max(1, limits.together // limits.pairs)):
        yield large[start : start + together], limits.pairs
    part, size = list[Iri](), 0
    for relation in (each for each in relations if each not in large):
        if part and size + edges[relation] > limits.together:
            yield part, None
            part, size = [], 0
        part.append(relation)
        size += edges[relation]
    if part:
        yield part, None
