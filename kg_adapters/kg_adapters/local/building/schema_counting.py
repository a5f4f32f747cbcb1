"""What the definition of a graph says, counted once at import."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from kg_adapters.labels import Vocabulary
from kg_adapters.local.building.sums import Extremes, parts
from kg_adapters.local.index import GraphIndex, Ints, Longs
from kg_adapters.local.names.table import bare_relations, edges_by_relation
from kg_adapters.local.schema_file import FILE, ClassRow, FeatureRow, RelationRow, SchemaFile, ValueRow
from kg_adapters.terms import Iri

MAX_CLASSES: Final = 2_000
MAX_RELATIONS: Final = 5_000
_MAX_EXAMPLE: Final = 200
# The best connected of the first so many serves as example, so that a hub is not read through.
_MAX_LOOKED_AT: Final = 1_000


def write_schema(folder: Path, index: GraphIndex, vocabulary: Vocabulary) -> None:
    """Count the classes, relations and features of a graph and write them into its store's folder."""
    counts = _Counts(index)
    classes = counts.classes(vocabulary.types)
    relations = _largest(edges_by_relation(index))
    features = _largest(np.bincount(index.features.relations, minlength=len(index.relations)))
    schema = SchemaFile(
        entities=int(np.count_nonzero(~bare_relations(index))),
        triples=len(index.out.neighbors),
        classes=tuple(classes[:MAX_CLASSES]),
        relations=tuple(counts.relations(relations[:MAX_RELATIONS])),
        features=tuple(counts.features(features[:MAX_RELATIONS])),
        complete=len(classes) <= MAX_CLASSES and max(len(relations), len(features)) <= MAX_RELATIONS,
    )
    (folder / FILE).write_text(schema.model_dump_json(), encoding="utf-8")


class _Counts:
    """The summaries of one index; a better connected entity makes the better example."""

    def __init__(self, index: GraphIndex) -> None:
        self._index = index
        self._degrees = np.diff(index.links.starts)

    def classes(self, types: Sequence[Iri]) -> list[ClassRow]:
        """Return every class, the largest first."""
        into, instances = self._index.into, dict[int, Ints]()
        ids = [self._index.relations.find(iri.value) for iri in types]
        groups = np.flatnonzero(np.isin(into.relations, [number for number in ids if number is not None]))
        for group, owner in zip(groups.tolist(), into.owners()[groups].tolist(), strict=True):
            found = into.neighbors[into.starts[group] : into.starts[group + 1]]
            instances[owner] = np.union1d(instances[owner], found) if owner in instances else found
        order = sorted(instances, key=lambda owner: (-len(instances[owner]), owner))
        return [
            ClassRow(
                key=self._index.nodes[owner],
                label=self._label(owner),
                instances=len(instances[owner]),
                example=self._index.nodes[self._best(instances[owner])],
            )
            for owner in order
        ]

    def relations(self, chosen: Sequence[tuple[int, int]]) -> list[RelationRow]:
        """Return relations with their number of triples, given as pairs of id and number."""
        out = self._index.out
        owners = out.owners()
        best = self._best_rows(out.relations, owners)
        rows: list[RelationRow] = []
        for relation, count in chosen:
            group = best[relation]
            tail = self._best(out.neighbors[out.starts[group] : out.starts[group + 1]])
            rows.append(
                RelationRow(
                    iri=self._index.relations[relation],
                    label=self._relation_label(relation),
                    triples=count,
                    example=(self._index.nodes[int(owners[group])], self._index.nodes[tail]),
                )
            )
        return rows

    def features(self, chosen: Sequence[tuple[int, int]]) -> list[FeatureRow]:
        """Return relations to literals with their number of statements, given as pairs of id and number."""
        table = self._index.features
        owners = np.repeat(np.arange(len(self._degrees), dtype=np.int32), np.diff(table.starts))
        short = np.flatnonzero(np.diff(table.values.offsets) <= _MAX_EXAMPLE)
        best = self._best_rows(table.relations[short], owners[short])
        return [
            FeatureRow(
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

    def _value(self, row: int) -> ValueRow:
        table, language = self._index.features, int(self._index.features.languages[row])
        return ValueRow(
            value=table.values[row],
            datatype=self._index.datatypes[int(table.datatypes[row])],
            language=None if language < 0 else self._index.languages[language],
        )


def _largest(counts: Longs) -> list[tuple[int, int]]:
    """Return (id, count) of all that occur, the largest count first, then by id."""
    order = np.lexsort((np.arange(len(counts)), -counts))
    pairs = zip(order.tolist(), counts[order].tolist(), strict=True)
    return [(number, count) for number, count in pairs if count]
