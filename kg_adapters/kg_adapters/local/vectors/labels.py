"""Vectors of a graph's labels, computed ahead: what a look around an entity is scored by."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from kg_adapters.embedding.packing import PackedRows, pack, unpack
from kg_adapters.embedding.protocol import Embedder, Vectors
from kg_adapters.local.array_files import ArrayFiles
from kg_adapters.local.index import GraphIndex, Ints, Longs
from kg_adapters.local.names.table import bare_relations, local_name, written
from kg_adapters.local.seal import Damage, find_cut, read_seal, write_seal
from kg_adapters.local.store import damaged
from kg_adapters.local.vectors.matrix_file import MatrixFile
from kg_adapters.open_options import EmbeddingProgress, OnEmbedding, ignore_embedding

FOLDER: Final = "vectors"
MAX_LABELS: Final = 200_000
RELATIONS, LABELS, ENTITIES = "relations", "labels", "entities"
_RELATIONS, _LABELS, _LABEL_ROWS = "relations.npy", "labels.npy", "label-rows.npy"


class VectorFiles:
    """The sealed files of a store's vectors by one model.

    Args:
        store_folder: The store.
        fingerprint: The model.
    """

    def __init__(self, store_folder: Path, fingerprint: str) -> None:
        self._store = store_folder
        self._place = f"{FOLDER}/{fingerprint}"
        self._opened: list[ArrayFiles] = []

    def group(self, name: str) -> ArrayFiles | None:
        """Open the files of `relations`, `labels` or `entities`, and compare them with their seal; call it in a thread.

        Raises:
            OSError: A file cannot be read.
            Damage: A file has another content than it was sealed with.
        """
        sealed = read_seal(self._store / self._place / seal_name(name))
        if sealed is None:
            return None
        if (problem := find_cut(self._store, sealed)) is not None:
            raise Damage(problem)
        files = ArrayFiles(self._store, self._place, sealed)
        self._opened.append(files)
        return files

    def require_whole(self) -> None:
        """Make sure that no file was cut off since it was opened.

        Raises:
            InvalidSource: One was.
        """
        try:
            for files in self._opened:
                files.require_whole()
        except Damage as problem:
            raise damaged(self._store, str(problem)) from problem


@dataclass(frozen=True, slots=True)
class LabelVectors:
    """The vectors of one graph's labels by one model, mapped from files; k distinct labels, n nodes, m relations.

    Args:
        fingerprint: The model.
        relation_rows: The vectors of relation labels, of local parts where there is none; shape [m, dimensions].
        label_rows: The vectors of node labels; shape [k, dimensions].
        node_rows: For each node the row of its label in `label_rows`, or -1 where it has no vector; shape [n].
        files: Where all of this is.
    """

    fingerprint: str
    relation_rows: PackedRows
    label_rows: PackedRows
    node_rows: Ints
    files: "VectorFiles"

    def relations(self, numbers: Sequence[int] | Ints | Longs) -> Vectors:
        """Return the vectors of relations by id; shape [numbers, dimensions].

        Raises:
            InvalidSource: A file was cut off since it was opened.
        """
        self.files.require_whole()
        return unpack(self.relation_rows[np.asarray(numbers, dtype=np.int64)])

    def nodes(self, numbers: Sequence[int] | Ints | Longs) -> Vectors:
        """Return the vectors of nodes by id; zeros where there is none; shape [numbers, dimensions].

        Raises:
            InvalidSource: A file was cut off since it was opened.
        """
        self.files.require_whole()
        rows = self.node_rows[np.asarray(numbers, dtype=np.int64)]
        vectors = np.zeros((len(rows), self.relation_rows.shape[1]), dtype=np.float32)
        there = rows >= 0
        vectors[there] = unpack(self.label_rows[rows[there]])
        return vectors


def vector_folder(store_folder: Path, fingerprint: str) -> Path:
    """Return where the vectors of a store by one model lie."""
    return store_folder / FOLDER / fingerprint


def seal_name(group: str) -> str:
    """Return the name of the file that says what the files of `relations`, `labels` or `entities` are."""
    return f"{group}.seal.json"


async def build_relation_vectors(
    store_folder: Path, index: GraphIndex, embedder: Embedder, progress: OnEmbedding = ignore_embedding
) -> None:
    """Compute the vectors of all relations into a store, where they are not there yet: seconds for thousands.

    Raises:
        OSError: The store cannot be written to.
        KGError: The embedder failed.
    """
    folder = vector_folder(store_folder, embedder.fingerprint)
    folder.mkdir(parents=True, exist_ok=True)
    texts = relation_texts(index)
    matrix = MatrixFile(folder / _RELATIONS, texts, embedder.dimensions, pack)
    await matrix.grow(embedder, lambda done: progress(EmbeddingProgress("relations", done, len(texts))))
    write_seal(folder / seal_name(RELATIONS), store_folder, [folder / _RELATIONS])


async def build_label_vectors(
    store_folder: Path,
    index: GraphIndex,
    embedder: Embedder,
    progress: OnEmbedding = ignore_embedding,
    *,
    max_labels: int = MAX_LABELS,
) -> None:
    """Compute the vectors of all relations and of the best connected nodes' labels into a store.

    What is there already stays; what was interrupted goes on. One process at a time.

    Args:
        store_folder: The store.
        index: Its index.
        embedder: The model.
        progress: Told about every few thousand texts.
        max_labels: The most distinct labels of nodes.

    Raises:
        OSError: The store cannot be written to.
        KGError: The embedder failed.
    """
    await build_relation_vectors(store_folder, index, embedder, progress)
    folder = vector_folder(store_folder, embedder.fingerprint)
    texts, rows = _labels(index, max_labels)
    matrix = MatrixFile(folder / _LABELS, texts, embedder.dimensions, pack)
    if not matrix.complete:
        # Rows of another selection would point anywhere in the new matrix.
        for left_over in (seal_name(LABELS), _LABEL_ROWS):
            (folder / left_over).unlink(missing_ok=True)
    await matrix.grow(embedder, lambda done: progress(EmbeddingProgress("labels", done, len(texts))))
    save_whole(folder / _LABEL_ROWS, rows)
    write_seal(folder / seal_name(LABELS), store_folder, [folder / _LABELS, folder / _LABEL_ROWS])


def open_label_vectors(store_folder: Path, index: GraphIndex, fingerprint: str) -> LabelVectors | None:
    """Open the vectors of a store's labels by one model; None where there are none.

    Where only those of relations are there, no node has a vector. All of them are read once, so call this in a thread.

    Raises:
        OSError: A file cannot be read.
        Damage: They are not what was written, or do not go with the graph.
    """
    files = VectorFiles(store_folder, fingerprint)
    relation_files, label_files = files.group(RELATIONS), files.group(LABELS)
    if relation_files is None:
        return None
    place = f"{FOLDER}/{fingerprint}"
    relations = relation_files.array(_RELATIONS, np.int16, dimensions=2)
    labels = np.zeros((0, relations.shape[1]), dtype=np.int16)
    nodes = np.full(len(index.nodes), -1, dtype=np.int32)
    if label_files is not None:
        labels, nodes = label_files.array(_LABELS, np.int16, dimensions=2), label_files.array(_LABEL_ROWS, np.int32)
        label_files.check()
    relation_files.check()
    if len(relations) != len(index.relations) or len(nodes) != len(index.nodes):
        raise Damage(f"{place} belongs to another graph")
    fits = int(nodes.min(initial=-1)) >= -1 and int(nodes.max(initial=-1)) < len(labels)
    if labels.shape[1] != relations.shape[1] or not fits:
        raise Damage(f"{place} has parts that do not fit together")
    return LabelVectors(fingerprint, relations, labels, nodes, files)


def relation_texts(index: GraphIndex) -> list[str]:
    """Return the label of each relation, or its local part where it has none; m texts."""
    nodes = index.relation_nodes
    rows = np.where(nodes >= 0, index.labels[nodes], -1) if len(index.labels) else np.full(len(nodes), -1)
    labels: list[int] = rows.tolist()
    return [
        index.features.values[row] if row >= 0 else local_name(index.relations[number])
        for number, row in enumerate(labels)
    ]


def named_nodes(index: GraphIndex) -> Longs:
    """Return the nodes that have a label and are more than relations, the best connected first."""
    named = np.flatnonzero((index.labels >= 0) & ~bare_relations(index))
    ordered: Longs = named[np.argsort(-np.diff(index.links.starts)[named], kind="stable")]
    return ordered


def save_whole(path: Path, values: Ints | Vectors) -> None:
    """Write an array so that the file is there as a whole or not at all."""
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.save(file, values, allow_pickle=False)
    part.replace(path)


def _labels(index: GraphIndex, max_labels: int) -> tuple[list[str], Ints]:
    """Return the distinct labels of nodes, and for each node the number of its own or -1."""
    nodes = named_nodes(index)
    rows = np.full(len(index.nodes), -1, dtype=np.int32)
    numbers: dict[str, int] = {}
    for node, text in zip(nodes.tolist(), written(index.features.values, index.labels[nodes]), strict=True):
        number = numbers.get(text)
        if number is None and len(numbers) < max_labels:
            number = numbers[text] = len(numbers)
        if number is not None:
            rows[node] = number
    return list(numbers), rows
