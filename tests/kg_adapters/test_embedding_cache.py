"""A text is embedded once: what was met before comes from memory, or from a file that processes share."""

from pathlib import Path

import anyio
import numpy as np
import pytest

from embedders import HOSTILE_TEXTS, RecordingEmbedder, caching, rounded
from kg_adapters.embedding import Embedder, LexicalEmbedder, Vectors
from kg_adapters.embedding.cached import VectorMemory
from kg_adapters.embedding.protocol import pack, unpack
from kg_adapters.errors import BackendUnavailable


async def test_it_is_an_embedder_with_the_fingerprint_of_the_one_inside() -> None:
    inner = RecordingEmbedder()
    async with caching(inner) as cached:
        assert isinstance(cached, Embedder)
        assert (cached.fingerprint, cached.dimensions) == (inner.fingerprint, inner.dimensions)


async def test_only_new_texts_are_embedded_each_once() -> None:
    inner = RecordingEmbedder()
    async with caching(inner) as cached:
        first = await cached.embed(["a b c", "tokyo", "a b c"])
        second = await cached.embed(["kyoto", "tokyo"])
    assert inner.calls == [["a b c", "tokyo"], ["kyoto"]]
    assert np.array_equal(first, await rounded(["a b c", "tokyo", "a b c"]))
    assert np.array_equal(second, await rounded(["kyoto", "tokyo"]))


async def test_a_vector_is_the_same_from_the_model_from_memory_and_from_the_file(tmp_path: Path) -> None:
    async with caching(RecordingEmbedder(), tmp_path / "vectors.db") as cached:
        fresh, remembered = [await cached.embed(["tokyo tower"]) for _ in range(2)]
    inner = RecordingEmbedder()
    async with caching(inner, tmp_path / "vectors.db") as cached:
        read = await cached.embed(["tokyo tower"])
    assert fresh.tolist() == remembered.tolist() == read.tolist()
    assert inner.calls == []


def test_rounding_keeps_cosines_to_four_digits() -> None:
    vectors = np.random.default_rng(1).standard_normal((50, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs(unpack(pack(vectors)) @ vectors.T - vectors @ vectors.T).max() < 5e-5
    assert unpack(pack(np.array([[1, -1, 0]], dtype=np.float32))).tolist() == [[1, -1, 0]]


async def test_no_text_and_any_text_are_welcome_and_a_model_that_is_away_is_not_missed(tmp_path: Path) -> None:
    async with caching(RecordingEmbedder(), tmp_path / "vectors.db") as cached:
        assert (await cached.embed([])).shape == (0, cached.dimensions)
        first = await cached.embed(HOSTILE_TEXTS)
    async with caching(RecordingEmbedder(fails_after=0), tmp_path / "vectors.db") as cached:
        assert np.array_equal(first, await cached.embed(HOSTILE_TEXTS))
        with pytest.raises(BackendUnavailable):
            await cached.embed(["new"])


async def test_the_same_text_in_two_calls_at_once_is_embedded_once() -> None:
    inner = RecordingEmbedder()
    inner.may_answer = anyio.Event()
    found: dict[str, Vectors] = {}
    async with caching(inner) as cached:

        async def call(name: str, *texts: str) -> None:
            found[name] = await cached.embed(texts)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, "first", "tokyo", "kyoto")
            await inner.asked.wait()
            tasks.start_soon(call, "second", "kyoto", "osaka", "tokyo")
            tasks.start_soon(call, "third", "tokyo")
            await anyio.wait_all_tasks_blocked()
            inner.may_answer.set()
    assert sorted(inner.texts) == ["kyoto", "osaka", "tokyo"]
    assert np.array_equal(found["second"], await rounded(["kyoto", "osaka", "tokyo"]))
    assert np.array_equal(found["third"], await rounded(["tokyo"]))


async def test_two_calls_that_want_what_the_other_embeds_do_not_wait_for_ever() -> None:
    inner = RecordingEmbedder()
    async with caching(inner, memory_rows=1) as cached, anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(cached.embed, ["a", "b", "c"])
            tasks.start_soon(cached.embed, ["c", "b", "a"])
    assert set(inner.texts) == {"a", "b", "c"}


async def test_who_waited_for_a_call_that_failed_tries_for_itself() -> None:
    class FailsOnce(RecordingEmbedder):
        async def embed(self, texts: object) -> Vectors:
            self.calls.append(["tokyo"])
            await anyio.wait_all_tasks_blocked()
            if len(self.calls) == 1:
                raise BackendUnavailable("The model is away.")
            return await LexicalEmbedder(self.dimensions).embed(["tokyo"])

    inner = FailsOnce()
    outcomes: list[str] = []
    async with caching(inner) as cached:

        async def call() -> None:
            try:
                await cached.embed(["tokyo"])
                outcomes.append("vectors")
            except BackendUnavailable:
                outcomes.append("error")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            tasks.start_soon(call)
    assert (sorted(outcomes), len(inner.calls)) == (["error", "vectors"], 2)


async def test_a_changed_model_never_reads_the_vectors_of_another(tmp_path: Path) -> None:
    asked: list[list[str]] = []
    for fingerprint in ("model-1", "model-2", "model-1"):
        inner = RecordingEmbedder(fingerprint)
        async with caching(inner, tmp_path / "vectors.db") as cached:
            await cached.embed(["tokyo"])
        asked.append(inner.texts)
    assert asked == [["tokyo"], ["tokyo"], []]


async def test_a_model_of_other_dimensions_under_the_same_name_reads_nothing_wrong(tmp_path: Path) -> None:
    async with caching(RecordingEmbedder(), tmp_path / "vectors.db") as cached:
        await cached.embed(["tokyo"])
    inner = RecordingEmbedder(dimensions=32)
    async with caching(inner, tmp_path / "vectors.db") as cached:
        assert (await cached.embed(["tokyo"])).shape == (1, 32)
    assert inner.texts == ["tokyo"]


async def test_memory_gives_up_what_was_not_used_for_longest() -> None:
    inner = RecordingEmbedder()
    async with caching(inner, memory_rows=4) as cached:
        await cached.embed(["a", "b", "c", "d"])
        await cached.embed(["a", "c", "d"])
        await cached.embed(["e"])
        inner.calls.clear()
        await cached.embed(["a", "c", "d", "e"])
        assert inner.calls == []
        await cached.embed(["b"])
    assert inner.calls == [["b"]]


def test_memory_grows_to_its_capacity_and_no_further() -> None:
    memory = VectorMemory(3_000, 2)
    for first in range(0, 10_000, 1_000):
        texts = [str(number) for number in range(first, first + 1_000)]
        rows = np.array([[number, -1] for number in range(first, first + 1_000)], dtype=np.int16)
        memory.put(texts, list(rows))
        assert len(memory) <= 3_000
        found = memory.find(texts)
        assert found is not None
        assert np.array_equal(found, rows)
    assert memory.find(["0"]) is None
