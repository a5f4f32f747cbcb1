"""Vectors of a graph's labels, computed ahead piece by piece into files: what a look around an entity is scored by."""

import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from kg_adapters.embedding.protocol import Embedder, PackedRows, Vectors, pack, unpack
from kg_adapters.index.block_files import Damage
from kg_adapters.index.graph_index import GraphIndex, Ints, Longs, bare_relations, local_name, written
from kg_adapters.local.array_files import ArrayFiles, open_tables
from kg_adapters.local.checksums import find_cut, read_seal, write_seal
from kg_adapters.local.store import VECTORS_FOLDER, damaged
from kg_adapters.open_options import EmbeddingProgress, OnEmbedding, ignore_embedding

Packing: TypeAlias = Callable[[Vectors], npt.NDArray[np.integer]]
OnRows: TypeAlias = Callable[[int], None]
_Mapped: TypeAlias = np.memmap[tuple[int, int], np.dtype[np.integer]]
CHUNK: Final = 2_048


class _Noted(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Plan(_Noted):
    """What a matrix is to be: a digest of its texts, its shape and the type of its numbers."""

    texts: str
    rows: int
    dimensions: int
    dtype: str


class _Chunk(_Noted):
    """The rows from the end of the chunk before up to `end`, and their CRC-32."""

    end: int
    crc: int


class _Journal(_Noted):
    plan: _Plan
    chunks: tuple[_Chunk, ...] = ()

    @property
    def end(self) -> int:
        return self.chunks[-1].end if self.chunks else 0


@dataclass(frozen=True, slots=True)
class MatrixFile:
    """The vectors of some texts, one row each, in the file `path`.

    The file appears under its name when it is complete; until then it is `*.part`. A journal beside it says which texts
    it is about and which rows are written.

    Args:
        path: A name that ends in `.npy`, in a folder that exists.
        texts: What the rows are about.
        dimensions: The length of a row.
        pack: How vectors become rows.
    """

    path: Path
    texts: Sequence[str]
    dimensions: int
    pack: Packing

    @property
    def complete(self) -> bool:
        """Whether the file has the vectors of exactly these texts, as they were written; this reads all of it."""
        if not self.path.is_file() or self._part.exists():
            return False
        journal, plan = self._noted(), self._plan()
        if journal is None or journal.end != len(self.texts) or journal.plan != plan:
            return False
        matrix = _mapped(self.path, plan, "r")
        return matrix is not None and len(tuple(_whole(matrix, journal.chunks))) == len(journal.chunks)

    async def grow(self, embedder: Embedder, on_rows: OnRows) -> None:
        """Compute the rows that are missing, and call `on_rows` with how many there are, after every few thousand.

        What an interrupted call has written is kept where it is undamaged. One process at a time.

        Raises:
            OSError: The file cannot be written.
            KGError: The embedder failed.
        """
        if self.complete:
            on_rows(len(self.texts))
            return
        matrix, journal = self._open_part()
        on_rows(journal.end)
        for first in range(journal.end, len(self.texts), CHUNK):
            rows = self.pack(await embedder.embed(self.texts[first : first + CHUNK]))
            end = first + len(rows)
            matrix[first:end] = rows
            matrix.flush()
            journal = _Journal(plan=journal.plan, chunks=(*journal.chunks, _Chunk(end=end, crc=_crc(rows))))
            self._note(journal)
            on_rows(end)
        self._part.replace(self.path)

    @property
    def _part(self) -> Path:
        return self.path.with_suffix(".part")

    @property
    def _journal(self) -> Path:
        return self.path.with_suffix(".journal.json")

    def _plan(self) -> _Plan:
        texts = blake2b(digest_size=16)
        for text in self.texts:
            encoded = text.encode(errors="surrogatepass")
            texts.update(len(encoded).to_bytes(8, "little") + encoded)
        kind = self.pack(np.zeros((1, self.dimensions), dtype=np.float32)).dtype
        return _Plan(texts=texts.hexdigest(), rows=len(self.texts), dimensions=self.dimensions, dtype=str(kind))

    def _open_part(self) -> tuple[_Mapped, _Journal]:
        """Open the unfinished matrix, or a new one, with a journal of the chunks in it that are whole."""
        plan, noted = self._plan(), self._noted()
        matrix = _mapped(self._part, plan, "r+") if noted is not None and noted.plan == plan else None
        if noted is None or matrix is None:
            noted = _Journal(plan=plan)
            matrix = np.lib.format.open_memmap(
                self._part, mode="w+", dtype=np.dtype(plan.dtype), shape=(plan.rows, plan.dimensions)
            )
        journal = _Journal(plan=plan, chunks=tuple(_whole(matrix, noted.chunks)))
        self._note(journal)
        return matrix, journal

    def _noted(self) -> _Journal | None:
        try:
            return _Journal.model_validate_json(self._journal.read_bytes())
        except (OSError, ValidationError):
            return None

    def _note(self, journal: _Journal) -> None:
        # Written beside and moved there, so that an interruption leaves the old one.
        fresh = self._journal.with_suffix(".new")
        fresh.write_text(journal.model_dump_json(), encoding="utf-8")
        fresh.replace(self._journal)


def _mapped(path: Path, plan: _Plan, mode: Literal["r", "r+"]) -> _Mapped | None:
    """Return the matrix in a file if it is of the planned shape and type."""
    try:
        matrix: _Mapped = np.lib.format.open_memmap(path, mode=mode)
    except (OSError, ValueError):
        return None
    fits = matrix.shape == (plan.rows, plan.dimensions) and str(matrix.dtype) == plan.dtype
    return matrix if fits else None


def _whole(matrix: _Mapped, chunks: Sequence[_Chunk]) -> Iterator[_Chunk]:
    first = 0
    for chunk in chunks:
        if not first < chunk.end <= len(matrix) or _crc(matrix[first : chunk.end]) != chunk.crc:
            return
        yield chunk
        first = chunk.end


def _crc(rows: npt.NDArray[np.integer]) -> int:
    return zlib.crc32(rows.tobytes())


MAX_LABELS: Final = 200_000
RELATIONS, LABELS, ENTITIES = "relations", "labels", "entities"
_RELATIONS, _LABELS, _LABEL_ROWS = "relations.npy", "labels.npy", "label_rows.npy"


class VectorFiles:
    """The sealed files of a store's vectors by one model.

    Args:
        store_folder: The store.
        fingerprint: The model.
    """

    def __init__(self, store_folder: Path, fingerprint: str) -> None:
        self._store = store_folder
        self._place = f"{VECTORS_FOLDER}/{fingerprint}"
        self._opened: list[ArrayFiles] = []

    def group(self, name: str) -> ArrayFiles | None:
        """Open the files of `relations`, `labels` or `entities`, which are verified as they are read.

        Raises:
            OSError: A file cannot be read.
            Damage: A file has another size than it was sealed with.
        """
        sealed = read_seal(self._store / self._place / seal_name(name))
        if sealed is None:
            return None
        if (problem := find_cut(self._store, sealed)) is not None:
            raise Damage(problem)
        files = ArrayFiles(self._store, self._place, sealed)
        self._opened.append(files)
        return files

    @contextmanager
    def reading(self) -> Generator[None]:
        """Watch the files, and report the damage that is found in what is read of them.

        Raises:
            InvalidSource: A file is not what was written.
        """
        try:
            for files in self._opened:
                files.watch()
            yield
        except Damage as problem:
            raise damaged(self._store, str(problem)) from problem


@dataclass(frozen=True, slots=True)
class _RelationFiles:
    """The arrays in the files of `relations`; see `StoredLabelVectors`."""

    relations: PackedRows


@dataclass(frozen=True, slots=True)
class _LabelFiles:
    """The arrays in the files of `labels`; see `StoredLabelVectors`."""

    labels: PackedRows
    label_rows: Ints


@dataclass(frozen=True, slots=True)
class StoredLabelVectors:
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
            InvalidSource: A file is not what was written.
        """
        with self.files.reading():
            return unpack(self.relation_rows[np.asarray(numbers, dtype=np.int64)])

    def nodes(self, numbers: Sequence[int] | Ints | Longs) -> Vectors:
        """Return the vectors of nodes by id; zeros where there is none; shape [numbers, dimensions].

        Raises:
            InvalidSource: A file is not what was written.
        """
        with self.files.reading():
            rows = self.node_rows[np.asarray(numbers, dtype=np.int64)]
            vectors = np.zeros((len(rows), self.relation_rows.shape[1]), dtype=np.float32)
            there = rows >= 0
            vectors[there] = unpack(self.label_rows[rows[there]])
            return vectors


def vector_folder(store_folder: Path, fingerprint: str) -> Path:
    """Return where the vectors of a store by one model lie."""
    return store_folder / VECTORS_FOLDER / fingerprint


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


def open_label_vectors(store_folder: Path, index: GraphIndex, fingerprint: str) -> StoredLabelVectors | None:
    """Open the vectors of a store's labels by one model; None where there are none.

    Where only those of relations are there, no node has a vector.

    Raises:
        OSError: A file cannot be read.
        Damage: They do not go with the graph.
    """
    files = VectorFiles(store_folder, fingerprint)
    relation_files, label_files = files.group(RELATIONS), files.group(LABELS)
    if relation_files is None:
        return None
    place = f"{VECTORS_FOLDER}/{fingerprint}"
    relations = open_tables(_RelationFiles, relation_files).relations
    labels = np.zeros((0, relations.shape[1]), dtype=np.int16)
    nodes = np.full(len(index.nodes), -1, dtype=np.int32)
    if label_files is not None:
        opened = open_tables(_LabelFiles, label_files)
        labels, nodes = opened.labels, opened.label_rows
    if len(relations) != len(index.relations) or len(nodes) != len(index.nodes):
        raise Damage(f"{place} belongs to another graph")
    if labels.shape[1] != relations.shape[1]:
        raise Damage(f"{place} has parts that do not fit together")
    return StoredLabelVectors(fingerprint, relations, labels, nodes, files)


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
