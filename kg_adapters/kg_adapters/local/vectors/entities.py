"""The search for entities by what they are: vectors of label, description and types, computed ahead."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import anyio.to_thread
import numpy as np
import numpy.typing as npt

from kg_adapters.embedding.protocol import Embedder, Vectors, products
from kg_adapters.index.block_files import Damage
from kg_adapters.index.graph_index import GraphIndex, Ints, Longs, relation_ids
from kg_adapters.labels import Vocabulary
from kg_adapters.local.array_files import open_tables
from kg_adapters.local.checksums import find_changed, read_seal, write_seal
from kg_adapters.local.store import LocalStore
from kg_adapters.local.swap import exclusively
from kg_adapters.local.vectors.labels import (
    ENTITIES,
    MAX_LABELS,
    MatrixFile,
    VectorFiles,
    build_label_vectors,
    named_nodes,
    save_whole,
    seal_name,
    vector_folder,
)
from kg_adapters.open_options import EmbeddingProgress, OnEmbedding, ignore_embedding
from kg_boundary.installation import install_command

ByteRows: TypeAlias = npt.NDArray[np.int8]
# On 16,000 entities of Wikidata these find 98 of the 100 that a full scan finds.
_CONNECTIVITY, _WIDTH_AT_BUILD, _WIDTH_AT_SEARCH = 16, 128, 256
_AT_ONCE: Final = 10_000


class _Matches(Protocol):
    @property
    def keys(self) -> npt.NDArray[np.uint64]: ...


class _Index(Protocol):
    """What is used of usearch's `Index`, whose own types are not complete."""

    def __len__(self) -> int: ...

    def add(self, keys: npt.NDArray[np.int64], vectors: ByteRows, *, threads: int) -> object: ...

    def search(self, vectors: ByteRows, count: int, *, threads: int) -> _Matches: ...

    def save(self, path: str, /) -> None: ...

    def view(self, path: str, /) -> None: ...


class NearestRows:
    """Finds the rows of a matrix that point nearly the same way as a vector; mapped from a file.

    Args:
        path: A file that `link_rows` wrote.
        rows: The matrix that it was written for.

    Raises:
        ImportError: usearch does not work on this machine.
        RuntimeError: The file is damaged.
        ValueError: It is about another matrix.
    """

    def __init__(self, path: Path, rows: ByteRows) -> None:
        self._index = _new_index(rows.shape[1])
        self._index.view(os.fspath(path))
        if len(self._index) != len(rows):
            raise ValueError(f"it links {len(self._index):,} rows instead of {len(rows):,}")

    def find(self, row: ByteRows, count: int) -> npt.NDArray[np.int64]:
        """Return the numbers of about the `count` nearest rows, in no order."""
        return self._index.search(row, count, threads=1).keys.astype(np.int64)


async def link_rows(path: Path, rows: ByteRows, on_rows: Callable[[int], None]) -> None:
    """Write the graph of a matrix to a file, and call `on_rows` with how many rows are in it, now and then.

    Raises:
        ImportError: usearch does not work on this machine.
        OSError: The file cannot be written.
    """
    index = await anyio.to_thread.run_sync(_new_index, rows.shape[1])
    on_rows(0)
    for first in range(0, len(rows), _AT_ONCE):
        part = rows[first : first + _AT_ONCE]
        numbers = np.arange(first, first + len(part), dtype=np.int64)
        await anyio.to_thread.run_sync(partial(index.add, numbers, part, threads=0))
        on_rows(first + len(part))
    fresh = path.with_suffix(".part")
    index.save(os.fspath(fresh))
    fresh.replace(path)


def _new_index(dimensions: int) -> _Index:
    index: _Index = import_module("usearch.index").Index(
        ndim=dimensions,
        metric="cos",
        dtype="i8",
        connectivity=_CONNECTIVITY,
        expansion_add=_WIDTH_AT_BUILD,
        expansion_search=_WIDTH_AT_SEARCH,
    )
    return index


MAX_ENTITIES: Final = 200_000
SCANNED_ROWS: Final = 100_000
"""How many rows are looked at one by one, in 5 to 8 ms; more are linked."""
_MAX_TYPES: Final = 3
_BLOCK: Final = 2_048
_LEAST_FOUND: Final = 64
_MATRIX, _NODES, _SCALES, _LINKS = "entities.npy", "entity_nodes.npy", "entity_scales.npy", "entities.usearch"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _EntityFiles:
    """The arrays in the files of `entities`; see `MeaningIndex`."""

    entities: ByteRows
    entity_scales: Vectors
    entity_nodes: Ints


class MeaningIndex:
    """Finds the entities of one graph whose text means what a vector means; k entities, mapped from files.

    Args:
        rows: Their vectors in 8 bits, each stretched to the whole range; shape [k, dimensions].
        scales: What makes a product with a row a cosine; shape [k].
        nodes: Their node ids; shape [k].
        nearest: What finds rows without a look at each; None to look at each.
        files: Where all of this is.
    """

    def __init__(
        self, rows: ByteRows, scales: Vectors, nodes: Ints, nearest: NearestRows | None, files: VectorFiles
    ) -> None:
        self._rows = rows
        self._scales = scales
        self._nodes = nodes
        self._nearest = nearest
        self._files = files

    @classmethod
    def open(cls, store_folder: Path, _index: GraphIndex, fingerprint: str) -> "MeaningIndex | None":
        """Open the index of a store by one model; None where there is none. Links are read: call it in a thread.

        Raises:
            OSError: A file cannot be read.
            Damage: It is not what was written.
        """
        opened = VectorFiles(store_folder, fingerprint)
        files = opened.group(ENTITIES)
        if files is None:
            return None
        found = open_tables(_EntityFiles, files)
        nearest = None
        if (vector_folder(store_folder, fingerprint) / _LINKS).is_file():
            files.verify(_LINKS)
            nearest = _open_links(vector_folder(store_folder, fingerprint), found.entities)
        return cls(found.entities, found.entity_scales, found.entity_nodes, nearest, opened)

    def __len__(self) -> int:
        return len(self._nodes)

    def search(self, vector: Vectors, count: int) -> list[tuple[int, float]]:
        """Return the nearest entities as (node id, cosine), best first, at most `count`.

        A look at each of 100,000 rows takes 5 to 8 ms, so call this in a thread.

        Args:
            vector: A unit vector by the same model; shape [dimensions].
            count: The most entities to return.

        Raises:
            InvalidSource: A file is not what was written.
        """
        if count < 1 or not len(self._nodes) or not vector.any():
            return []
        near = self._nearest
        with self._files.reading():
            places, cosines = self._scan(vector, count) if near is None else self._look(near, vector, count)
            nodes = self._nodes[places]
        order = np.lexsort((nodes, -cosines))[:count]
        return list(zip(nodes[order].tolist(), cosines[order].tolist(), strict=True))

    def _scan(self, vector: Vectors, count: int) -> tuple[Longs, Vectors]:
        cosines = np.empty(len(self._rows), dtype=np.float32)
        # One block in the processor's cache again and again is four times as fast as a new one each time.
        block = np.empty((min(_BLOCK, len(self._rows)), len(vector)), dtype=np.float32)
        for first in range(0, len(self._rows), _BLOCK):
            rows = self._rows[first : first + _BLOCK]
            np.copyto(block[: len(rows)], rows)
            cosines[first : first + len(rows)] = products(block[: len(rows)], vector)
        cosines *= self._scales
        if count >= len(cosines):
            return np.arange(len(cosines)), cosines
        places = np.argpartition(-cosines, count - 1)[:count]
        return places, cosines[places]

    def _look(self, nearest: NearestRows, vector: Vectors, count: int) -> tuple[Longs, Vectors]:
        places = nearest.find(pack_bytes(vector[np.newaxis])[0], max(4 * count, _LEAST_FOUND))
        places = places[(places >= 0) & (places < len(self._rows))]
        cosines: Vectors = products(self._rows[places].astype(np.float32), vector) * self._scales[places]
        return places, cosines


async def build_meaning_index(
    store_folder: Path,
    index: GraphIndex,
    vocabulary: Vocabulary,
    embedder: Embedder,
    progress: OnEmbedding = ignore_embedding,
    *,
    max_entities: int = MAX_ENTITIES,
    scanned_rows: int = SCANNED_ROWS,
) -> None:
    """Compute the vectors of the best connected entities, and what finds the nearest of them, into a store.

    What is there already stays; what was interrupted goes on. One process at a time.

    Args:
        store_folder: The store.
        index: Its index.
        vocabulary: The relations from an entity to its types.
        embedder: The model.
        progress: Told about every few thousand texts.
        max_entities: The most entities to embed.
        scanned_rows: The most entities that a search looks at one by one.

    Raises:
        OSError: The store cannot be written to.
        KGError: The embedder failed.
    """
    folder = vector_folder(store_folder, embedder.fingerprint)
    folder.mkdir(parents=True, exist_ok=True)
    nodes = np.sort(named_nodes(index)[:max_entities])
    texts = list(entity_texts(index, vocabulary, nodes))
    matrix = MatrixFile(folder / _MATRIX, texts, embedder.dimensions, pack_bytes)
    if matrix.complete and _sealed_files_are_intact(store_folder, folder):
        progress(EmbeddingProgress("entities", len(texts), len(texts)))
        return
    for left_over in (seal_name(ENTITIES), _NODES, _LINKS):
        (folder / left_over).unlink(missing_ok=True)
    await matrix.grow(embedder, lambda done: progress(EmbeddingProgress("entities", done, len(texts))))
    rows: ByteRows = np.load(folder / _MATRIX, mmap_mode="r")
    if len(rows) > scanned_rows:
        try:
            await link_rows(folder / _LINKS, rows, lambda done: progress(EmbeddingProgress("linking", done, len(rows))))
        except ImportError as error:
            _log.warning(
                "Searches by meaning will take some 15 ms in this store, since usearch does not work here (%s). "
                "To install it: %s",
                error,
                install_command("large"),
            )
    save_whole(folder / _SCALES, _scales(rows))
    save_whole(folder / _NODES, nodes.astype(np.int32))
    written = (folder / name for name in (_MATRIX, _NODES, _SCALES, _LINKS))
    # Written last: it says that the rest is there.
    write_seal(folder / seal_name(ENTITIES), store_folder, [path for path in written if path.is_file()])


def entity_texts(index: GraphIndex, vocabulary: Vocabulary, nodes: Longs) -> Iterator[str]:
    """Yield what entities are, in words: `Tokyo: capital of Japan (city, metropolis)`."""
    relations = relation_ids(index, vocabulary.types)
    texts = index.features.values
    for node in nodes.tolist():
        row = int(index.descriptions[node])
        description = f": {texts[row]}" if row >= 0 else ""
        types = ", ".join(islice(_type_labels(index, relations, node), _MAX_TYPES))
        yield f"{texts[int(index.labels[node])]}{description}{f' ({types})' if types else ''}"


def pack_bytes(vectors: Vectors) -> ByteRows:
    """Return vectors in 8 bits a number, each stretched to the whole range; shape [vectors, dimensions]."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    largest[largest == 0] = 1
    rows: ByteRows = np.rint(vectors * (127 / largest)).astype(np.int8)
    return rows


def _type_labels(index: GraphIndex, relations: Sequence[int], node: int) -> Iterator[str]:
    table = index.out
    for group in range(int(table.groups[node]), int(table.groups[node + 1])):
        if int(table.relations[group]) in relations:
            for kind in table.neighbors[int(table.starts[group]) : int(table.starts[group + 1])].tolist():
                if index.labels[kind] >= 0:
                    yield index.features.values[int(index.labels[kind])]


def _scales(rows: ByteRows) -> Vectors:
    scales = np.zeros(len(rows), dtype=np.float32)
    for first in range(0, len(rows), _BLOCK):
        lengths = np.linalg.norm(rows[first : first + _BLOCK].astype(np.float32), axis=1)
        np.divide(1, lengths, out=scales[first : first + _BLOCK], where=lengths > 0)
    return scales


def _sealed_files_are_intact(store_folder: Path, folder: Path) -> bool:
    try:
        sealed = read_seal(folder / seal_name(ENTITIES))
    except Damage:
        return False
    return sealed is not None and find_changed(store_folder, sealed) is None


def _open_links(folder: Path, rows: ByteRows) -> NearestRows | None:
    try:
        return NearestRows(folder / _LINKS, rows)
    except (ImportError, RuntimeError, ValueError) as error:
        _log.warning("Searches by meaning are slow: %s cannot be used (%s).", folder / _LINKS, error)
        return None


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """How much is embedded ahead.

    Args:
        max_labels: The most distinct labels of nodes, those of the best connected first.
        max_entities: The most entities to be found by meaning, the best connected first; 0 for none.
    """

    max_labels: int = MAX_LABELS
    max_entities: int = MAX_ENTITIES


async def embed_store(
    store: LocalStore,
    embedder: Embedder,
    options: EmbedOptions | None = None,
    progress: OnEmbedding = ignore_embedding,
) -> None:
    """Compute the vectors of a store's relations, labels and entities by one model, where they are not there yet.

    Interrupted work goes on with the next call. Of several processes one works and the others wait, which blocks: this
    is for a command, not for a server.

    Raises:
        InvalidSource: The store is damaged, or cannot be written to.
        OSError: It became so.
        KGError: The embedder failed.
    """
    chosen = options or EmbedOptions()
    vocabulary = store.info.vocabulary
    try:
        await anyio.to_thread.run_sync(store.files.verify_all)
    except Damage as problem:
        raise store.damaged(problem) from problem
    with exclusively(vector_folder(store.folder, embedder.fingerprint)):
        await build_label_vectors(store.folder, store.index, embedder, progress, max_labels=chosen.max_labels)
        if chosen.max_entities:
            await build_meaning_index(
                store.folder, store.index, vocabulary, embedder, progress, max_entities=chosen.max_entities
            )
