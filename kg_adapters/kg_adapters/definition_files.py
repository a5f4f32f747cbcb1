"""What was counted of a graph, its definition and its profile, as files keep them.

In a profile a term stands once and is numbered; what belongs to a class is written as rows of numbers.
"""

from pathlib import Path
from typing import Final, TypeAlias

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from kg_adapters.errors import InvalidRequest
from kg_adapters.index.block_files import Damage
from kg_adapters.models import ClassSummary, Count, EdgeDirection, FeatureSummary, GraphSchema, RelationSummary
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import (
    ClassProfile,
    GraphProfile,
    InverseRelations,
    PropertyProfile,
    ValueCount,
    ValueKind,
    ValueRange,
)
from kg_adapters.terms import Iri, Literal, Node, Triple, node_from_key, node_key

PROFILE_FILE: Final = "profile.json"
_Value: TypeAlias = tuple[str, int, str | None]
_Range: TypeAlias = tuple[tuple[int, ...], _Value | None, _Value | None, str | None]
_Property: TypeAlias = tuple[int, EdgeDirection, int, int, tuple[tuple[int, int], ...], _Range | None]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Class(_Row):
    owner: int | None
    label: str | None
    instances: int
    direct: int
    broader: tuple[int, ...]
    properties: tuple[_Property, ...]
    complete: bool
    looked_at: int | None = None
    at_least: bool = False


class _ProfileFile(_Row):
    terms: tuple[str, ...]
    labels: dict[int, str]
    everything: _Class
    classes: tuple[_Class, ...]
    inverses: tuple[tuple[int, int, bool, int, int, int], ...]
    values: tuple[tuple[ValueKind, int], ...]
    complete: bool
    sampled: bool = False
    approximate: bool = False


def write_profile(folder: Path, profile: GraphProfile) -> None:
    """Write a profile into a store."""
    (folder / PROFILE_FILE).write_text(profile_text(profile), encoding="utf-8")


def profile_text(profile: GraphProfile) -> str:
    """Return a profile as a file has it."""
    return _Writer().profile(profile).model_dump_json(exclude_defaults=True)


def read_profile(text: bytes) -> GraphProfile:
    """Return what `profile_text` wrote.

    Args:
        text: The content of the file.

    Raises:
        Damage: It is something else.
    """
    try:
        return _Reader(_ProfileFile.model_validate_json(text)).profile()
    except (ValidationError, InvalidRequest, IndexError) as error:
        raise Damage(f"{PROFILE_FILE} cannot be read") from error


class _Writer:
    """Numbers terms while it writes rows."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._labels: dict[int, str] = {}

    def profile(self, profile: GraphProfile) -> _ProfileFile:
        everything, *classes = (self._class(known) for known in (profile.everything, *profile.classes))
        inverses = tuple(
            (self._number(each.relation), self._number(each.inverse), each.declared, *_counts(each))
            for each in profile.inverses
        )
        return _ProfileFile(
            terms=tuple(self._numbers),
            labels=self._labels,
            everything=everything,
            classes=tuple(classes),
            inverses=inverses,
            values=tuple((each.kind, each.values) for each in profile.values),
            complete=profile.complete,
            sampled=profile.sampled,
            approximate=profile.approximate,
        )

    def _number(self, node: Node) -> int:
        return self._numbers.setdefault(node_key(node), len(self._numbers))

    def _class(self, known: ClassProfile) -> _Class:
        return _Class(
            owner=None if known.iri is None else self._number(known.iri),
            label=known.label,
            instances=known.instances,
            direct=known.direct,
            broader=tuple(self._number(each) for each in known.broader),
            properties=tuple(self._property(each) for each in known.properties),
            complete=known.complete,
            looked_at=known.looked_at,
            at_least=known.at_least,
        )

    def _property(self, known: PropertyProfile) -> _Property:
        number = self._number(known.relation)
        if known.label is not None:
            self._labels[number] = known.label
        targets = tuple((self._number(target), count) for target, count in known.targets)
        values = None if known.values is None else self._range(known.values)
        return number, known.direction, known.instances, known.facts, targets, values

    def _range(self, values: ValueRange) -> _Range:
        datatypes = tuple(self._number(each) for each in values.datatypes)
        return datatypes, self._value(values.least), self._value(values.greatest), values.unit

    def _value(self, value: Literal | None) -> _Value | None:
        return None if value is None else (value.value, self._number(value.datatype), value.language)


class _Reader:
    """Turns rows back into profiles."""

    def __init__(self, file: _ProfileFile) -> None:
        self._file = file
        self._terms = [node_from_key(key) for key in file.terms]

    def profile(self) -> GraphProfile:
        file = self._file
        return GraphProfile(
            everything=self._class(file.everything),
            classes=tuple(self._class(each) for each in file.classes),
            inverses=tuple(
                InverseRelations(self._iri(one), self._iri(other), declared, *counts)
                for one, other, declared, *counts in file.inverses
            ),
            values=tuple(ValueCount(kind, values) for kind, values in file.values),
            complete=file.complete,
            sampled=file.sampled,
            approximate=file.approximate,
        )

    def _iri(self, number: int) -> Iri:
        term = self._terms[number]
        if not isinstance(term, Iri):
            raise InvalidRequest(f"{term} is not a relation.")
        return term

    def _class(self, row: _Class) -> ClassProfile:
        return ClassProfile(
            None if row.owner is None else self._terms[row.owner],
            row.label,
            row.instances,
            row.direct,
            tuple(self._terms[each] for each in row.broader),
            tuple(self._property(each) for each in row.properties),
            row.complete,
            row.looked_at,
            row.at_least,
        )

    def _property(self, row: _Property) -> PropertyProfile:
        number, direction, instances, facts, targets, values = row
        return PropertyProfile(
            self._iri(number),
            direction,
            self._file.labels.get(number),
            instances,
            facts,
            tuple((self._terms[target], count) for target, count in targets),
            None if values is None else self._range(values),
        )

    def _range(self, row: _Range) -> ValueRange:
        datatypes, least, greatest, unit = row
        return ValueRange(tuple(map(self._iri, datatypes)), self._value(least), self._value(greatest), unit)

    def _value(self, row: _Value | None) -> Literal | None:
        return None if row is None else Literal(row[0], self._iri(row[1]), row[2])


def _counts(pair: InverseRelations) -> tuple[int, int, int]:
    return pair.both, pair.only_relation, pair.only_inverse


SCHEMA_FILE: Final = "schema.json"


class ClassRow(_Row):
    """A class, by the key of its node."""

    key: str
    label: str | None
    instances: NonNegativeInt
    example: str


class RelationRow(_Row):
    """A relation, with head and tail of a triple."""

    iri: str
    label: str | None
    triples: NonNegativeInt
    example: tuple[str, str]


class ValueRow(_Row):
    """A literal."""

    value: str
    datatype: str
    language: str | None


class FeatureRow(_Row):
    """A relation to literals."""

    iri: str
    label: str | None
    statements: NonNegativeInt
    example: ValueRow | None


class SchemaRows(_Row):
    """All of the file."""

    entities: NonNegativeInt
    triples: NonNegativeInt
    classes: tuple[ClassRow, ...]
    relations: tuple[RelationRow, ...]
    features: tuple[FeatureRow, ...]
    complete: bool


def read_schema(text: bytes, prefixes: Prefixes) -> GraphSchema:
    """Return what `write_schema` wrote.

    Args:
        text: The content of the file.
        prefixes: Those of the store.

    Raises:
        Damage: It is something else.
    """
    try:
        return schema_of(SchemaRows.model_validate_json(text), prefixes)
    except (ValidationError, InvalidRequest) as error:
        raise Damage(f"{SCHEMA_FILE} cannot be read") from error


def schema_of(schema: SchemaRows, prefixes: Prefixes) -> GraphSchema:
    """Return the definition that rows stand for."""
    return GraphSchema(
        entities=Count(schema.entities),
        triples=Count(schema.triples),
        classes=tuple(
            ClassSummary(node_from_key(row.key), row.label, Count(row.instances), node_from_key(row.example))
            for row in schema.classes
        ),
        relations=tuple(_relation_summary(row) for row in schema.relations),
        features=tuple(
            FeatureSummary(Iri(row.iri), row.label, Count(row.statements), _literal(row.example))
            for row in schema.features
        ),
        prefixes=prefixes,
        complete=schema.complete,
    )


def _relation_summary(row: RelationRow) -> RelationSummary:
    head, tail = (node_from_key(key) for key in row.example)
    iri = Iri(row.iri)
    return RelationSummary(iri, row.label, Count(row.triples), Triple(head, iri, tail))


def _literal(row: ValueRow | None) -> Literal | None:
    return None if row is None else Literal(row.value, Iri(row.datatype), row.language)
