"""What is embedded ahead is there for the next start, and goes on where it was interrupted."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from embedders import RecordingEmbedder
from kg_adapters.embedding.protocol import pack, unpack
from kg_adapters.errors import BackendUnavailable
from kg_adapters.index.block_files import Damage
from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.local.checksums import read_seal, write_seal
from kg_adapters.local.store import open_store, verify_store
from kg_adapters.local.vectors import labels
from kg_adapters.local.vectors.entities import EmbedOptions, MeaningIndex, embed_store
from kg_adapters.local.vectors.labels import (
    MatrixFile,
    StoredLabelVectors,
    build_label_vectors,
    build_relation_vectors,
    open_label_vectors,
    relation_texts,
    vector_folder,
)
from kg_adapters.open_options import EmbeddingProgress
from kg_adapters.testing import iri, ntriples
from small_graphs import index_of, store_of

GRAPH = (
    'tokyo label "Tokyo"@en',
    'kyoto label "Kyoto"@en',
    'double label "Kyoto"@en',
    'country label "country"@en',
    "tokyo country japan",
    "kyoto country japan",
    "tokyo near_to kyoto",
    "tokyo near_to double",
)
MODEL = "recording-1"


@pytest.fixture
def index() -> GraphIndex:
    return index_of(GRAPH)


def node(index: GraphIndex, name: str) -> int:
    number = index.nodes.find(iri(name).value)
    assert number is not None
    return number


def opened(folder: Path, index: GraphIndex) -> StoredLabelVectors:
    vectors = open_label_vectors(folder, index, MODEL)
    assert vectors is not None
    return vectors


async def rounded(*texts: str) -> list[list[float]]:
    vectors: list[list[float]] = unpack(pack(await RecordingEmbedder().embed(texts))).tolist()
    return vectors


def named(index: GraphIndex) -> Iterator[str]:
    return (index.relations[number].removeprefix("http://example.org/") for number in range(len(index.relations)))


async def test_relations_have_the_vector_of_their_label_or_else_of_their_local_part(
    tmp_path: Path, index: GraphIndex
) -> None:
    await build_relation_vectors(tmp_path, index, RecordingEmbedder())
    numbers = list(range(len(index.relations)))
    texts = {name: text for name, text in zip(named(index), relation_texts(index), strict=True) if "/" not in name}
    assert texts == {"country": "country", "near_to": "near to"}
    assert opened(tmp_path, index).relations(numbers).tolist() == await rounded(*relation_texts(index))


async def test_nodes_have_the_vector_of_their_label_and_zeros_where_they_have_none(
    tmp_path: Path, index: GraphIndex
) -> None:
    inner = RecordingEmbedder()
    await build_label_vectors(tmp_path, index, inner)
    nodes = [node(index, name) for name in ("kyoto", "japan", "double", "tokyo")]
    tokyo, kyoto = await rounded("Tokyo", "Kyoto")
    assert opened(tmp_path, index).nodes(nodes).tolist() == [kyoto, [0.0] * inner.dimensions, kyoto, tokyo]
    assert opened(tmp_path, index).nodes([]).shape == (0, inner.dimensions)
    assert inner.texts.count("Kyoto") == 1


async def test_beyond_the_limit_the_best_connected_nodes_are_kept(tmp_path: Path, index: GraphIndex) -> None:
    await build_label_vectors(tmp_path, index, RecordingEmbedder(), max_labels=1)
    vectors = opened(tmp_path, index)
    there = [bool(vectors.nodes([node(index, name)]).any()) for name in ("tokyo", "kyoto", "double")]
    assert there == [True, False, False]


async def test_an_interrupted_change_of_the_selection_leaves_no_wrong_vectors(
    tmp_path: Path, index: GraphIndex
) -> None:
    await build_label_vectors(tmp_path, index, RecordingEmbedder(), max_labels=1)
    with pytest.raises(BackendUnavailable):
        await build_label_vectors(tmp_path, index, RecordingEmbedder(fails_after=0), max_labels=5)
    assert not opened(tmp_path, index).nodes([node(index, "tokyo")]).any()
    assert len(opened(tmp_path, index).relation_rows) == len(index.relations)


async def test_progress_counts_texts(tmp_path: Path, index: GraphIndex) -> None:
    seen: list[EmbeddingProgress] = []
    await build_label_vectors(tmp_path, index, RecordingEmbedder(), seen.append)
    relations = len(index.relations)
    assert seen == [
        EmbeddingProgress("relations", 0, relations),
        EmbeddingProgress("relations", relations, relations),
        EmbeddingProgress("labels", 0, 2),
        EmbeddingProgress("labels", 2, 2),
    ]


async def test_a_graph_without_anything_has_vectors_of_nothing(tmp_path: Path) -> None:
    empty = index_of([])
    await build_label_vectors(tmp_path, empty, RecordingEmbedder())
    assert opened(tmp_path, empty).relations([]).shape == (0, RecordingEmbedder().dimensions)


async def test_a_store_is_embedded_by_one_call_and_stays_whole(tmp_path: Path) -> None:
    store = store_of(tmp_path, ntriples(GRAPH))
    inner = RecordingEmbedder()
    stages: list[str] = []
    await embed_store(store, inner, progress=lambda step: stages.append(step.stage))
    again = RecordingEmbedder()
    await embed_store(open_store(store.folder), again)
    assert again.calls == []
    assert list(dict.fromkeys(stages)) == ["relations", "labels", "entities"]
    assert MeaningIndex.open(store.folder, store.index, MODEL) is not None
    assert verify_store(store.folder).info == store.info


async def test_entities_may_be_left_out(tmp_path: Path) -> None:
    store = store_of(tmp_path, ntriples(GRAPH))
    await embed_store(store, RecordingEmbedder(), EmbedOptions(max_entities=0))
    assert opened(store.folder, store.index).label_rows.any()
    assert MeaningIndex.open(store.folder, store.index, MODEL) is None


async def test_vectors_of_another_model_are_not_opened(tmp_path: Path, index: GraphIndex) -> None:
    await build_label_vectors(tmp_path, index, RecordingEmbedder())
    assert open_label_vectors(tmp_path, index, "another-model") is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("relations.npy", np.zeros((999, 64), dtype=np.int16)),
        ("labels.npy", np.zeros((2, 63), dtype=np.int16)),
        ("label_rows.npy", np.zeros(99, dtype=np.int32)),
        ("labels.npy", b"no array"),
        ("labels.npy", None),
    ],
)
@pytest.mark.parametrize("sealed", [False, True])
async def test_vectors_that_were_changed_or_do_not_fit_are_damage(
    tmp_path: Path, index: GraphIndex, name: str, content: npt.NDArray[np.generic] | bytes | None, *, sealed: bool
) -> None:
    await build_label_vectors(tmp_path, index, RecordingEmbedder())
    path = vector_folder(tmp_path, MODEL) / name
    path.unlink()
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.save(path, content)
    if sealed and isinstance(content, np.ndarray):
        seal = path.with_name("relations.seal.json" if name == "relations.npy" else "labels.seal.json")
        write_seal(seal, tmp_path, [tmp_path / file.path for file in read_seal(seal) or ()])
    with pytest.raises(Damage, match=f"^vectors/{MODEL}"):
        open_label_vectors(tmp_path, index, MODEL)


async def test_a_seal_of_vectors_that_cannot_be_read_is_damage(tmp_path: Path, index: GraphIndex) -> None:
    await build_relation_vectors(tmp_path, index, RecordingEmbedder())
    (vector_folder(tmp_path, MODEL) / "relations.seal.json").write_bytes(b"{")
    with pytest.raises(Damage, match=r"relations\.seal\.json cannot be read"):
        open_label_vectors(tmp_path, index, MODEL)


async def test_damaged_vectors_are_computed_again_by_the_next_embedding(tmp_path: Path) -> None:
    store = store_of(tmp_path, ntriples(GRAPH))
    await embed_store(store, RecordingEmbedder())
    intact = {path: path.read_bytes() for path in vector_folder(store.folder, MODEL).iterdir()}
    for path, content in intact.items():
        path.write_bytes(bytes([*content[:-2], content[-2] ^ 1, content[-1]]))
        await embed_store(store, RecordingEmbedder())
        verify_store(store.folder)
        assert path.read_bytes() == content


@pytest.fixture
def texts() -> list[str]:
    return [f"text {number}" for number in range(labels.CHUNK * 2 + 100)]


def growing(folder: Path, texts: list[str]) -> MatrixFile:
    return MatrixFile(folder / "rows.npy", texts, RecordingEmbedder().dimensions, pack)


async def grow(folder: Path, texts: list[str], inner: RecordingEmbedder) -> list[int]:
    steps: list[int] = []
    await growing(folder, texts).grow(inner, steps.append)
    return steps


async def grow_until_the_model_is_away(folder: Path, texts: list[str], *, after: int) -> None:
    with pytest.raises(BackendUnavailable):
        await grow(folder, texts, RecordingEmbedder(fails_after=after))


async def whole(folder: Path, texts: list[str]) -> bool:
    expected = pack(await RecordingEmbedder().embed(texts))
    return bool(np.array_equal(np.load(folder / "rows.npy"), expected)) and growing(folder, texts).complete


async def test_an_interrupted_matrix_goes_on_where_it_stopped(tmp_path: Path, texts: list[str]) -> None:
    chunk = labels.CHUNK
    await grow_until_the_model_is_away(tmp_path, texts, after=1)
    assert not (tmp_path / "rows.npy").exists()
    inner = RecordingEmbedder()
    assert await grow(tmp_path, texts, inner) == [chunk, 2 * chunk, len(texts)]
    assert inner.texts == texts[chunk:]
    assert await whole(tmp_path, texts)


async def test_a_finished_matrix_is_not_computed_again(tmp_path: Path, texts: list[str]) -> None:
    await grow(tmp_path, texts, RecordingEmbedder())
    inner = RecordingEmbedder()
    assert await grow(tmp_path, texts, inner) == [len(texts)]
    assert inner.calls == []


async def test_other_texts_start_anew(tmp_path: Path, texts: list[str]) -> None:
    await grow(tmp_path, texts, RecordingEmbedder())
    await grow_until_the_model_is_away(tmp_path, ["other", *texts], after=1)
    assert not growing(tmp_path, texts).complete
    inner = RecordingEmbedder()
    await grow(tmp_path, texts, inner)
    assert inner.texts == texts
    assert await whole(tmp_path, texts)


async def test_texts_that_run_together_are_told_apart(tmp_path: Path) -> None:
    await grow(tmp_path, ["ab", "c"], RecordingEmbedder())
    assert not growing(tmp_path, ["a", "bc"]).complete


async def test_damaged_rows_are_computed_again_with_all_that_follow(tmp_path: Path, texts: list[str]) -> None:
    await grow_until_the_model_is_away(tmp_path, texts, after=2)
    part = np.load(tmp_path / "rows.part", mmap_mode="r+")
    part[labels.CHUNK] += 1
    part.flush()
    inner = RecordingEmbedder()
    await grow(tmp_path, texts, inner)
    assert inner.texts == texts[labels.CHUNK :]
    assert await whole(tmp_path, texts)


@pytest.mark.parametrize("damage", ["journal", "half a journal", "part", "cut part", "another shape", "wrong end"])
async def test_what_cannot_be_trusted_is_computed_again(tmp_path: Path, texts: list[str], damage: str) -> None:
    await grow_until_the_model_is_away(tmp_path, texts, after=1)
    part, journal = tmp_path / "rows.part", tmp_path / "rows.journal.json"
    match damage:
        case "journal":
            journal.unlink()
        case "half a journal":
            journal.write_bytes(journal.read_bytes()[:-10])
        case "part":
            part.unlink()
        case "cut part":
            part.write_bytes(part.read_bytes()[:1_000])
        case "another shape":
            with part.open("wb") as file:
                np.save(file, np.zeros((2, 2), dtype=np.int16))
        case _:
            content = json.loads(journal.read_text(encoding="utf-8"))
            content["chunks"][0]["end"] = len(texts) + 1
            journal.write_text(json.dumps(content), encoding="utf-8")
    inner = RecordingEmbedder()
    await grow(tmp_path, texts, inner)
    assert inner.texts == texts
    assert await whole(tmp_path, texts)
