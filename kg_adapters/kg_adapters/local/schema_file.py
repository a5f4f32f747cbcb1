"""The definition of a graph, counted once at import and kept in the file `schema.json` of its store."""

from typing import Final

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from kg_adapters.errors import InvalidRequest
from kg_adapters.local.seal import Damage
from kg_adapters.models import ClassSummary, Count, FeatureSummary, GraphSchema, RelationSummary
from kg_adapters.prefixes import Prefixes
from kg_adapters.terms import Iri, Literal, Triple, node_from_key

FILE: Final = "schema.json"


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


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


class SchemaFile(_Row):
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
        return _schema(SchemaFile.model_validate_json(text), prefixes)
    except (ValidationError, InvalidRequest) as error:
        raise Damage(f"{FILE} cannot be read") from error


def _schema(schema: SchemaFile, prefixes: Prefixes) -> GraphSchema:
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
