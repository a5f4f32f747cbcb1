"""What the answers to profile queries say, put together class by class."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kg_adapters.models import EdgeDirection
from kg_adapters.profile import (
    MAX_TARGETS,
    VALUE_KINDS,
    PropertyProfile,
    ValueCount,
    ValueKind,
    ValueRange,
    compared_by,
    is_unit,
    kind_of,
    unit_in,
)
from kg_adapters.sparql.rows import Bindings
from kg_adapters.terms import RDF_LANG_STRING, XSD, Iri, Literal, Node, node_key
from kg_adapters.values import order_of

Place: TypeAlias = int | None
"""The number of a class in its queries; None for all entities."""

_YEAR: Final = Iri(f"{XSD}gYear")


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of one datatype: their number, the least and the greatest."""

    number: int
    least: Literal | None
    greatest: Literal | None


@dataclass(slots=True)
class _Property:
    """What is known of one relation of one class."""

    instances: int = 0
    facts: int = 0
    targets: Counter[Node] = field(default_factory=Counter[Node])
    values: dict[Iri, _Values] = field(default_factory=dict[Iri, _Values])

    def range(self, unit: str | None) -> ValueRange | None:
        if not self.values:
            return None
        datatypes = tuple(sorted(self.values, key=lambda iri: (-self.values[iri].number, iri)))
        by = compared_by(datatypes)
        units = [each for each in by if isinstance(each, Iri) and self.values[each].least is not None]
        compared = [self.values[each] for each in units[:1] or datatypes if units or kind_of(each) in by]
        least = [each.least for each in compared if each.least is not None]
        greatest = [each.greatest for each in compared if each.greatest is not None]
        if not compared or not len(least) == len(greatest) == len(compared):
            return ValueRange(datatypes, unit=unit)
        return ValueRange(datatypes, min(least, key=_order), max(greatest, key=_order), unit)


class ProfileRows:
    """Takes in rows, and makes them properties of classes.

    Attributes:
        whole: Whether no answer was cut.
    """

    def __init__(self) -> None:
        self.whole = True
        self._found: dict[Place, dict[tuple[EdgeDirection, Iri], _Property]] = {}

    def take_facts(self, rows: Iterable[Bindings], direction: EdgeDirection) -> None:
        """Take in answers to `ProfileQueries.facts`."""
        for known, row in self._about(rows, direction):
            known.instances, known.facts = row.number("i") or 0, row.number("n") or 0

    def take_values(self, rows: Iterable[Bindings]) -> None:
        """Take in answers to `ProfileQueries.values`."""
        for known, row in self._about(rows, "out"):
            datatype = row.iri("d") or RDF_LANG_STRING
            least, greatest = (_end(row.term(name), datatype) for name in "lg")
            known.values[datatype] = _Values(row.number("n") or 0, least, greatest)

    def take_targets(self, rows: Iterable[Bindings], direction: EdgeDirection) -> None:
        """Take in answers to `ProfileQueries.targets`."""
        for known, row in self._about(rows, direction):
            target = row.node("t")
            if target is not None:
                known.targets[target] = row.number("n") or 0

    def take(self, more: "ProfileRows") -> None:
        """Take in all that another one took in, about other classes."""
        self._found.update(more._found)  # noqa: SLF001 - another one of its kind

    def drop(self, relations: Iterable[Iri]) -> None:
        """Forget all about some relations."""
        unwanted = frozenset(relations)
        for known in self._found.values():
            for key in [key for key in known if key[1] in unwanted]:
                del known[key]

    def relations(self) -> Iterator[Iri]:
        """Yield all relations, those of most facts first."""
        facts = Counter[Iri]()
        for known in self._found.values():
            for (_, relation), each in known.items():
                facts[relation] = max(facts[relation], each.facts)
        yield from sorted(facts, key=lambda relation: (-facts[relation], relation))

    def edges(self) -> dict[Iri, int]:
        """Return how many edges each relation has at least that has any, those with most first."""
        edges = Counter[Iri]()
        for known in self._found.values():
            for (_, relation), each in known.items():
                edges[relation] = max(edges[relation], each.facts - sum(value.number for value in each.values.values()))
        return dict(sorted((+edges).items(), key=lambda item: (-item[1], item[0])))

    def properties(self, place: Place, labels: Mapping[Node, str]) -> tuple[PropertyProfile, ...]:
        """Return what is known of a class, in the order of `ClassProfile`."""
        made = [
            _made(*key, known, labels.get(key[1]))
            for key, known in self._found.get(place, dict[tuple[EdgeDirection, Iri], _Property]()).items()
        ]
        return tuple(sorted(made, key=lambda each: (each.direction == "in", -each.instances, each.relation)))

    def values(self, texts: frozenset[Iri]) -> tuple[ValueCount, ...]:
        """Return how many values of each kind there are at least, without those of some relations."""
        most: Counter[tuple[Iri, ValueKind]] = Counter()
        for known in self._found.values():
            for (_, relation), each in known.items():
                counted = Counter[ValueKind]()
                for datatype, values in each.values.items():
                    quantity = is_unit(datatype) and values.least is not None
                    counted["number" if quantity else kind_of(datatype)] += values.number
                most |= Counter({(relation, kind): number for kind, number in counted.items()})
        kinds = Counter[ValueKind]()
        for (relation, kind), number in most.items():
            kinds[kind] += 0 if relation in texts else number
        return tuple(ValueCount(kind, kinds[kind]) for kind in VALUE_KINDS if kinds[kind])

    def _about(self, rows: Iterable[Bindings], direction: EdgeDirection) -> Iterator[tuple[_Property, Bindings]]:
        for row in rows:
            relation = row.iri("p")
            if relation is not None:
                properties = self._found.setdefault(row.number("k"), {})
                yield properties.setdefault((direction, relation), _Property()), row


def _made(direction: EdgeDirection, relation: Iri, known: _Property, label: str | None) -> PropertyProfile:
    targets = sorted(known.targets.items(), key=lambda item: (-item[1], node_key(item[0])))[:MAX_TARGETS]
    values = known.range(unit_in(label))
    return PropertyProfile(relation, direction, label, known.instances, known.facts, tuple(targets), values)


def _end(value: object, datatype: Iri) -> Literal | None:
    """Return a least or greatest value; years and quantities are asked for as numbers."""
    if not isinstance(value, Literal):
        return None
    if datatype == _YEAR:
        digits = value.value.removeprefix("-")
        value = Literal(f"{'-' if value.value.startswith('-') else ''}{digits:0>4}", _YEAR)
    elif is_unit(datatype):
        value = Literal(value.value, datatype)
    return None if order_of(value) is None else value


def _order(value: Literal) -> float:
    return order_of(value) or 0.0
