"""Profiles of classes: their facts, counts and values; and the relations that are inverses of each other."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_adapters.models import EdgeDirection
from kg_adapters.terms import RDF_LANG_STRING, XSD, XSD_STRING, Iri, Literal, Node

ValueKind: TypeAlias = Choice["date", "number", "boolean", "coordinates", "text"]
MAX_CLASSES: Final = 300
MAX_PROPERTIES: Final = 400
"""The most properties that are listed of one class, outgoing and incoming together."""
MAX_RELATIONS: Final = 10_000
"""The same of the whole graph."""
MAX_TARGETS: Final = 3
MAX_DATATYPES: Final = 100
"""The most datatypes that are listed of one property of a class."""
VALUE_KINDS: Final[tuple[ValueKind, ...]] = ("date", "number", "boolean", "coordinates", "text")
COMPARED: Final[tuple[ValueKind, ...]] = ("date", "number")
"""The kinds of values that have a least and a greatest one."""
_DATES: Final = frozenset({"date", "dateTime", "dateTimeStamp", "gYear", "gYearMonth", "gMonthDay", "gMonth", "gDay"})
_NUMBERS: Final = frozenset(
    {
        *("integer", "decimal", "double", "float", "int", "long", "short", "byte"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte"),
    }
)
_COORDINATES: Final = "http://www.opengis.net/ont/geosparql#wktLiteral"
EDTF: Final = Iri("http://id.loc.gov/datatypes/edtf/EDTF")
"""The datatype of periods and approximate years, as the Library of Congress and ISO 8601-2 write them."""
NO_UNITS: Final = (XSD, RDF_LANG_STRING.value.removesuffix("langString"), _COORDINATES, EDTF.value)
"""How the datatypes begin that are no units."""


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values of a property: their datatypes, the most frequent first, and the least and greatest that compare.

    At most `MAX_DATATYPES` are listed. Where no datatype of XML Schema has such values, these are quantities in the
    most frequent unit (`is_unit`), their datatype. `unit` is what the label of the property says in its last brackets,
    as in `length (km)`.
    """

    datatypes: tuple[Iri, ...]
    least: Literal | None = None
    greatest: Literal | None = None
    unit: str | None = None

    @property
    def kinds(self) -> tuple[ValueKind, ...]:
        """What kinds of values these are, in the order of `VALUE_KINDS`."""
        quantities = self.least is not None and is_unit(self.least.datatype)
        found = {"number" if quantities and is_unit(each) else kind_of(each) for each in self.datatypes}
        return tuple(kind for kind in VALUE_KINDS if kind in found)


@dataclass(frozen=True, slots=True)
class PropertyProfile:
    """How often the instances of a class have one relation, in one direction.

    Args:
        relation: The relation.
        direction: `out` where the instances are heads; `in` where they are tails.
        label: The label of the relation.
        instances: How many instances have it.
        facts: How many edges and values there are over it.
        targets: The classes of what the edges lead to (the heads where `direction` is `in`), with the number of
            edges, the most frequent first, then by id; at most `MAX_TARGETS`.
        values: What its values are like; None where there are only edges.
        of: How many instances were looked at for `instances`; None for those of its class. `facts` and the numbers of
            targets are then estimates.
    """

    relation: Iri
    direction: EdgeDirection
    label: str | None
    instances: int
    facts: int
    targets: tuple[tuple[Node, int], ...] = ()
    values: ValueRange | None = None
    of: int | None = None


@dataclass(frozen=True, slots=True)
class ClassProfile:
    """What the instances of a class are known by.

    Args:
        iri: The class; None where all entities of the graph are meant.
        label: Its label.
        instances: How many it has, those of its subclasses included.
        direct: How many of them are stated to be of this class itself.
        broader: The classes that it is said to be a subclass of, by id.
        properties: Outgoing before incoming, what most instances have first, then by IRI.
        complete: Whether all properties are listed.
        looked_at: How many of them the properties were counted over, of a class too large to count over all; None for
            all.
        at_least: Whether there may be more instances, as where not all subclasses are known.
    """

    iri: Node | None
    label: str | None
    instances: int
    direct: int
    broader: tuple[Node, ...]
    properties: tuple[PropertyProfile, ...]
    complete: bool = True
    looked_at: int | None = None
    at_least: bool = False

    @property
    def counted_over(self) -> int:
        """Over how many instances the properties were counted."""
        return self.instances if self.looked_at is None else self.looked_at

    def looked_at_for(self, known: PropertyProfile) -> int:
        """Return over how many instances one of the properties was counted."""
        return self.counted_over if known.of is None else known.of

    def property(self, relation: Iri, direction: EdgeDirection = "out") -> PropertyProfile | None:
        """Return what is known of a relation; None where no instance has it, or it is not listed."""
        found = (each for each in self.properties if each.relation == relation and each.direction == direction)
        return next(found, None)

    def coverage(self, relation: Iri, direction: EdgeDirection = "out") -> "Coverage | None":
        """Return how many instances have a relation; None where that is not known."""
        known = self.property(relation, direction)
        if known is None and not self.complete:
            return None
        having = 0 if known is None else known.instances
        looked_at = self.counted_over if known is None else self.looked_at_for(known)
        sampled = self.looked_at is not None and (known is None or known.of is None)
        return Coverage(self.iri, self.label, relation, direction, looked_at, having, sampled)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of how many instances of a class how many have a relation: `having` of `instances`.

    `owner` is None where all entities of the graph are meant; `sampled` says that the class has more instances, which
    were not looked at.
    """

    owner: Node | None
    label: str | None
    relation: Iri
    direction: EdgeDirection
    instances: int
    having: int
    sampled: bool = False

    @property
    def share(self) -> float:
        """The part that has it, from 0 to 1."""
        return self.having / self.instances if self.instances else 0.0


@dataclass(frozen=True, slots=True)
class InverseRelations:
    """Two relations that say the same in opposite directions; a symmetric one is its own inverse.

    Of two that are declared, one may have no facts.

    Args:
        relation: One of them, the first by IRI.
        inverse: The other, or the same.
        declared: Whether the graph or a vocabulary declares it; otherwise so many pairs are stored both ways that it
            must be.
        both: How many pairs of entities are stored both ways.
        only_relation: How many only over `relation`; of a symmetric one, how many in one direction only.
        only_inverse: How many only over `inverse`; 0 of a symmetric one.
    """

    relation: Iri
    inverse: Iri
    declared: bool
    both: int
    only_relation: int
    only_inverse: int

    @property
    def symmetric(self) -> bool:
        """Whether the relation is its own inverse."""
        return self.relation == self.inverse

    @property
    def one_used(self) -> Iri | None:
        """The only one of two that has facts; None where both have."""
        if self.both or self.symmetric or (self.only_relation and self.only_inverse):
            return None
        return self.relation if self.only_relation else self.inverse

    @property
    def partial(self) -> bool:
        """Whether some pairs are stored in one direction only."""
        return self.only_relation > 0 or self.only_inverse > 0


@dataclass(frozen=True, slots=True)
class Subproperties:
    """Pairs of a relation and a wider one, which holds wherever it does, over any number of steps.

    Args:
        along: Those that lead the same way.
        behind: Those that lead the other way, without an inverse among the others.
    """

    along: tuple[tuple[Iri, Iri], ...] = ()
    behind: tuple[tuple[Iri, Iri], ...] = ()


@dataclass(frozen=True, slots=True)
class ValueCount:
    """How many values of one kind the graph holds, names and descriptions left out."""

    kind: ValueKind
    values: int


@dataclass(frozen=True, slots=True)
class GraphProfile:
    """What kinds of facts a graph has, and how many of its entities have them.

    Args:
        everything: What all entities are known by, as of one class.
        classes: Those with instances, the largest first, then by id.
        inverses: Which relations are each other's inverse, by the IRI of the first.
        values: The kinds of values, in the order of `VALUE_KINDS`; names and descriptions are none.
        complete: Whether every class with instances is listed.
        sampled: Whether inverses and values were counted over a part of the graph only.
        approximate: Whether the graph is too dense to count everything: of entities of very many classes only the
            rarest count as targets, of the superclasses of a class only the nearest, and pairs of entities with very
            many relations are left out of the search for inverses.
        subproperties: Which relations hold only where a wider one does.
    """

    everything: ClassProfile
    classes: tuple[ClassProfile, ...]
    inverses: tuple[InverseRelations, ...]
    values: tuple[ValueCount, ...]
    complete: bool = True
    sampled: bool = False
    approximate: bool = False
    subproperties: Subproperties = Subproperties()
    _classes: dict[Node | None, ClassProfile] = field(init=False, repr=False, compare=False)
    _inverses: dict[Iri, InverseRelations] = field(init=False, repr=False, compare=False)
    _having: dict[Iri, tuple[ClassProfile, ...]] = field(
        default_factory=dict[Iri, tuple[ClassProfile, ...]], init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        inverses = {iri: each for each in self.inverses for iri in (each.relation, each.inverse)}
        object.__setattr__(self, "_classes", {each.iri: each for each in (self.everything, *self.classes)})
        object.__setattr__(self, "_inverses", inverses)

    def profile_of(self, owner: Node | None) -> ClassProfile | None:
        """Return the profile of a class, of all entities for None; None where it has no instances or is not listed."""
        return self._classes.get(owner)

    def classes_with(self, relation: Iri) -> tuple[ClassProfile, ...]:
        """Return the listed classes of which an instance has a relation, the largest first."""
        if relation not in self._having:
            # Looking through all properties of all classes takes milliseconds.
            self._having[relation] = tuple(each for each in self.classes if each.property(relation) is not None)
        return self._having[relation]

    def coverage(self, owner: Node | None, relation: Iri, direction: EdgeDirection = "out") -> Coverage | None:
        """Return how many instances of a class have a relation, or how many of all entities where `owner` is None.

        None where that is not known: the class is not listed, or neither is the relation and the list is cut.
        """
        known = self.profile_of(owner)
        return None if known is None else known.coverage(relation, direction)

    def inverse_of(self, relation: Iri) -> Iri | None:
        """Return the relation that says the same backwards: the same one if it is symmetric, None if there is none.

        One without facts does not count.
        """
        pair = self._inverses.get(relation)
        if pair is None or pair.one_used == relation:
            return None
        return pair.inverse if pair.relation == relation else pair.relation

    def inverses_of(self, relation: Iri) -> InverseRelations | None:
        """Return what is known of a relation and its inverse, or None where it has none, or one of them no facts."""
        pair = self._inverses.get(relation)
        return None if pair is None or pair.one_used is not None else pair

    def inverse_alone(self, relation: Iri) -> Iri | None:
        """Return the inverse of a relation where facts are stored over it alone, or may be; None otherwise."""
        pair = self._inverses.get(relation)
        if pair is None or (inverse := self.inverse_of(relation)) is None:
            return None
        alone = pair.only_inverse if pair.relation == relation and not pair.symmetric else pair.only_relation
        return inverse if alone or self.sampled else None

    @property
    def unstated(self) -> tuple[Iri, ...]:
        """The relations without facts whose facts are stored over their inverse or over subproperties, by IRI."""
        turned = (
            each.inverse if each.one_used == each.relation else each.relation
            for each in self.inverses
            if each.one_used is not None
        )
        stated = {each.relation for each in self.everything.properties}
        return tuple(
            sorted({*turned, *(wide for _, wide in (*self.subproperties.along, *self.subproperties.behind))} - stated)
        )

    def subproperties_of(self, relation: Iri) -> tuple[Iri, ...]:
        """Return the relations that hold only where a wider one does, by IRI."""
        return tuple(narrow for narrow, wide in self.subproperties.along if wide == relation)

    def subproperties_behind(self, relation: Iri) -> tuple[Iri, ...]:
        """Return the relations that hold backwards only where a wider one does, by IRI, without inverses of others."""
        return tuple(narrow for narrow, wide in self.subproperties.behind if wide == relation)


@cache
def unknown_profile() -> GraphProfile:
    """Return the profile of a graph of which nothing is known: one object, since answers are cached by the profile."""
    return GraphProfile(ClassProfile(None, None, 0, 0, (), (), complete=False), (), (), (), complete=False)


def kind_of(datatype: Iri) -> ValueKind:
    """Return what kind of values a datatype has; `text` where it is none of those that are known, as units are not."""
    if datatype.value == _COORDINATES:
        return "coordinates"
    if datatype == EDTF:
        return "date"
    if not datatype.value.startswith(XSD) or datatype == XSD_STRING:
        return "text"
    name = datatype.value.removeprefix(XSD)
    if name in _DATES:
        return "date"
    if name in _NUMBERS:
        return "number"
    return "boolean" if name == "boolean" else "text"


def is_unit(datatype: Iri) -> bool:
    """Say whether the values of a datatype that are written as numbers are quantities with the datatype as their unit.

    That is so outside XML Schema and RDF: a quantity of 12 km is written as `"12"^^unit:KiloM`.
    """
    return not datatype.value.startswith(NO_UNITS)


def compared_kind(datatypes: Iterable[Iri]) -> ValueKind | None:
    """Return the kind of values of which there is a least and a greatest one: dates or numbers, if not both."""
    found = {kind_of(datatype) for datatype in datatypes}
    if ("date" in found) == ("number" in found):
        return None
    return "date" if "date" in found else "number"


def compared_by(datatypes: Iterable[Iri]) -> tuple[ValueKind | Iri, ...]:
    """Return by what values of some datatypes may have a least and a greatest one: their kind, or else their units."""
    known = tuple(datatypes)
    kinds = {kind_of(datatype) for datatype in known} & {"date", "number"}
    if kinds:
        kind = compared_kind(known)
        return () if kind is None else (kind,)
    return tuple(filter(is_unit, known))


def unit_in(label: str | None) -> str | None:
    """Return the unit that a label names in brackets at its end: `km` for `length (km)`, or None."""
    if label is None or not label.endswith(")"):
        return None
    _, opened, unit = label[:-1].rpartition("(")
    return unit.strip() or None if opened else None
