"""The definition of a graph, counted once at import and kept in the file `schema.json` of its store."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from kg_adapters.errors import InvalidRequest
from kg_adapters.labels import Vocabulary
from kg_adapters.local.index import GraphIndex, Ints, Longs
from kg_adapters.local.names import bare_relations, edges_by_relation
from kg_adapters.local.seal import Damage
from kg_adapters.local.sums import Extremes, parts
from kg_adapters.models import ClassSummary, Count, FeatureSummary, GraphSchema, RelationSummary
from kg_adapters.prefixes import Prefixes
from kg_adapters.terms import Iri, Literal, Triple, node_from_key

FILE: Final = "schema.json"
MAX_CLASSES: Final = 2_000
MAX_RELATIONS: Final = 5_000
_MAX_EXAMPLE: Final = 200
# The best connected of the first so many serves as example, so that a hub is not read through.
_MAX_LOOKED_AT: Final = 1_000


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Class(_Row):
    key: str
    label: str | None
    instances: NonNegativeInt
    example: str


class _Relation(_Row):
    iri: str
    label: str | None
    triples: NonNegativeInt
    example: tuple[str, str]


class _Value(_Row):
    value: str
    datatype: str
    language: str | None


class _Feature(_Row):
    iri: str
    label: str | None
    statements: NonNegativeInt
    example: _Value | None


class _SchemaFile(_Row):
    entities: NonNegativeInt
    triples: NonNegativeInt
    classes: tuple[_Class, ...]
    relations: tuple[_Relation, ...]
    features: tuple[_Feature, ...]
    complete: bool


def write_schema(folder: Path, index: GraphIndex, vocabulary: Vocabulary) -> None:
    """Count the classes, relations and features of a graph and write them into its store's folder."""
    counts = _Counts(index)
    classes = counts.classes(vocabulary.types)
    relations = _largest(edges_by_relation(index))
    features = _largest(np.bincount(index.features.relations, minlength=len(index.relations)))
    schema = _SchemaFile(
        entities=int(np.count_nonzero(~bare_relations(index))),
        triples=len(index.out.neighbors),
        classes=tuple(classes[:MAX_CLASSES]),
        relations=tuple(counts.relations(relations[:MAX_RELATIONS])),
        features=tuple(counts.features(features[:MAX_RELATIONS])),
        complete=len(classes) <= MAX_CLASSES and max(len(relations), len(features)) <= MAX_RELATIONS,
    )
    (folder / FILE).write_text(schema.model_dump_json(), encoding="utf-8")


def read_schema(text: bytes, prefixes: Prefixes) -> GraphSchema:
    """Return what `write_schema` wrote.

    Args:
        text: The content of the file.
        prefixes: Those of the store.

    Raises:
        Damage: It is something else.
    """
    try:
        return _schema(_SchemaFile.model_validate_json(text), prefixes)
    except (ValidationError, InvalidRequest) as error:
        raise Damage(f"{FILE} cannot be read") from error


def _schema(schema: _SchemaFile, prefixes: Prefixes) -> GraphSchema:
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


class _Counts:
    """The summaries of one index; a better connected entity makes the better example."""

    def __init__(self, index: GraphIndex) -> None:
        self._index = index
        self._degrees = np.diff(index.links.starts)

    def classes(self, types: Sequence[Iri]) -> list[_Class]:
        """Return every class, the largest first."""
        into, instances = self._index.into, dict[int, Ints]()
        ids = [self._index.relations.find(iri.value) for iri in types]
        groups = np.flatnonzero(np.isin(into.relations, [number for number in ids if number is not None]))
        for group, owner in zip(groups.tolist(), into.owners()[groups].tolist(), strict=True):
            found = into.neighbors[into.starts[group] : into.starts[group + 1]]
            instances[owner] = np.union1d(instances[owner], found) if owner in instances else found
        order = sorted(instances, key=lambda owner: (-len(instances[owner]), owner))
        return [
            _Class(
                key=self._index.nodes[owner],
                label=self._label(owner),
                instances=len(instances[owner]),
                example=self._index.nodes[self._best(instances[owner])],
            )
            for owner in order
        ]

    def relations(self, chosen: Sequence[tuple[int, int]]) -> list[_Relation]:
        """Return relations with their number of triples, given as pairs of id and number."""
        out = self._index.out
        owners = out.owners()
        best = self._best_rows(out.relations, owners)
        rows: list[_Relation] = []
        for relation, count in chosen:
            group = best[relation]
            tail = self._best(out.neighbors[out.starts[group] : out.starts[group + 1]])
            rows.append(
                _Relation(
                    iri=self._index.relations[relation],
                    label=self._relation_label(relation),
                    triples=count,
                    example=(self._index.nodes[int(owners[group])], self._index.nodes[tail]),
                )
            )
        return rows

    def features(self, chosen: Sequence[tuple[int, int]]) -> list[_Feature]:
        """Return relations to literals with their number of statements, given as pairs of id and number."""
        table = self._index.features
        owners = np.repeat(np.arange(len(self._degrees), dtype=np.int32), np.diff(table.starts))
        short = np.flatnonzero(np.diff(table.values.offsets) <= _MAX_EXAMPLE)
        best = self._best_rows(table.relations[short], owners[short])
        return [
            _Feature(
                iri=self._index.relations[relation],
                label=self._relation_label(relation),
                statements=count,
                example=self._value(int(short[best[relation]])) if relation in best else None,
            )
            for relation, count in chosen
        ]

    def _best_rows(self, relations: Ints, owners: Ints) -> dict[int, int]:
        found = Extremes()
        for part in parts(len(relations)):
            rows: Longs = np.arange(part.start, part.stop, dtype=np.int64)
            found.add(relations[part].astype(np.int64), self._degrees[owners[part]].astype(np.float64), rows)
        keys, _, best = found.result()
        return dict(zip(keys.tolist(), best.tolist(), strict=True))

    def _best(self, nodes: Ints) -> int:
        return int(nodes[np.argmax(self._degrees[nodes[:_MAX_LOOKED_AT]])])

    def _label(self, node: int) -> str | None:
        row = int(self._index.labels[node])
        return None if row < 0 else self._index.features.values[row]

    def _relation_label(self, relation: int) -> str | None:
        node = int(self._index.relation_nodes[relation])
        return None if node < 0 else self._label(node)

    def _value(self, row: int) -> _Value:
        table, language = self._index.features, int(self._index.features.languages[row])
        return _Value(
            value=table.values[row],
            datatype=self._index.datatypes[int(table.datatypes[row])],
            language=None if language < 0 else self._index.languages[language],
        )


def _largest(counts: Longs) -> list[tuple[int, int]]:
    """Return (id, count) of all that occur, the largest count first, then by id."""
    order = np.lexsort((np.arange(len(counts)), -counts))
    pairs = zip(order.tolist(), counts[order].tolist(), strict=True)
    return [(number, count) for number, count in pairs if count]


def _relation_summary(row: _Relation) -> RelationSummary:
    head, tail = (node_from_key(key) for key in row.example)
    iri = Iri(row.iri)
    return RelationSummary(iri, row.label, Count(row.triples), Triple(head, iri, tail))


def _literal(row: _Value | None) -> Literal | None:
    return None if row is None else Literal(row.value, Iri(row.datatype), row.language)
