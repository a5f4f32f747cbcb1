"""How answers about sets compare, and graphs as every engine reads them."""

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import cast

from kg_adapters.algebra import Hop
from kg_adapters.set_requests import Computed
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.queries import writing
from kg_adapters.terms import Attribute, Fact, Iri


def written(facts: Iterable[Fact]) -> str:
    """Return facts as N-Triples."""
    standard = DIALECTS["standard"]
    return "".join(
        f"{writing.node(fact.head, standard)} {writing.iri(fact.relation)} {_tail(fact)} .\n" for fact in facts
    )


def agree(found: Computed, wanted: Computed) -> bool:
    """Say whether two answers are the same, but for witnesses and for how engines round."""
    value = found.value
    if isinstance(value, float) and isinstance(wanted.value, float) and math.isclose(value, wanted.value):
        value = wanted.value
    return replace(found, value=value, witnesses=()) == replace(wanted, witnesses=())


def walks_through_values(question: object, facts: Collection[Fact]) -> bool:
    """Say whether steps repeated in both directions meet values, from which SPARQL walks back and others do not."""
    valued = {fact.relation for fact in facts if isinstance(fact, Attribute)}
    return any(
        hop.repeated and len({step.direction for step in hop.steps or ()}) > 1 and _relations(hop) & valued
        for hop in _hops(question)
    )


def _relations(hop: Hop) -> set[Iri]:
    return {step.relation for step in hop.steps or ()}


def _hops(part: object) -> Iterator[Hop]:
    if isinstance(part, Hop):
        yield part
    elif isinstance(part, tuple):
        for each in cast("tuple[object, ...]", part):
            yield from _hops(each)
    elif is_dataclass(part):
        for each in fields(part):
            yield from _hops(getattr(part, each.name))


def _tail(fact: Fact) -> str:
    return writing.literal(fact.tail) if isinstance(fact, Attribute) else writing.node(fact.tail, DIALECTS["standard"])
