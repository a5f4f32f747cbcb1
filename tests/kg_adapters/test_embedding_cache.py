"""A text is embedded once: what was met before comes from memory, or from a file that processes share."""

import logging
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import anyio
import numpy as np
import pytest

from embedders import HOSTILE_TEXTS, RecordingEmbedder, caching, rounded
from kg_adapters.embedding import CachedEmbedder, Embedder, LexicalEmbedder, Vectors
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


WARNING = "Vectors are kept in memory only"


async def test_the_file_keeps_the_newest(tmp_path: Path) -> None:
    async with caching(RecordingEmbedder(), tmp_path / "vectors.db", file_rows=2) as cached:
        for text in ("a", "b", "c"):
            await cached.embed([text])
    inner = RecordingEmbedder()
    async with caching(inner, tmp_path / "vectors.db") as cached:
        await cached.embed(["a", "b", "c"])
    assert inner.texts == ["a"]


async def test_more_texts_than_one_query_takes_come_from_the_file(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(1_200)]
    async with caching(RecordingEmbedder(), tmp_path / "new" / "vectors.db", file_rows=5_000) as cached:
        await cached.embed(texts)
    inner = RecordingEmbedder()
    async with caching(inner, tmp_path / "new" / "vectors.db") as cached:
        assert np.array_equal(await cached.embed(texts), await rounded(texts))
    assert inner.calls == []


@pytest.mark.parametrize(
    "content", [b"no database, but as long as the head of one " * 40, b"SQLite format 3\0" + b"\1" * 5_000]
)
async def test_a_damaged_file_is_left_alone_with_a_warning(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "vectors.db"
    path.write_bytes(content)
    inner = RecordingEmbedder()
    async with caching(inner, path) as cached:
        await cached.embed(["tokyo"])
        await cached.embed(["tokyo", "kyoto"])
    assert inner.texts == ["tokyo", "kyoto"]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert f"{WARNING}: {path} cannot be used" in caplog.text
    assert path.read_bytes() == content


async def test_a_file_that_is_damaged_while_it_is_open_is_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with caching(RecordingEmbedder(), tmp_path / "vectors.db") as cached:
        await cached.embed(["tokyo"])
        with closing(sqlite3.connect(tmp_path / "vectors.db")) as other:
            other.execute("DROP TABLE vectors")
        assert (await cached.embed(["kyoto"])).any()
        assert (await cached.embed(["osaka"])).any()
    assert caplog.text.count(WARNING) == 1


async def test_a_locked_file_is_given_up_for_writing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "vectors.db"
    inner = RecordingEmbedder()
    async with caching(inner, path) as cached:
        await cached.embed(["tokyo"])
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await cached.embed(["kyoto"])
            other.execute("ROLLBACK")
        await cached.embed(["kyoto"])
    assert inner.texts == ["tokyo", "kyoto"]
    assert "database is locked" in caplog.text


async def test_a_write_that_fails_half_way_leaves_nothing_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "vectors.db"
    async with caching(RecordingEmbedder(), path) as cached:
        await cached.embed(["tokyo"])
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TRIGGER full BEFORE INSERT ON vectors BEGIN SELECT RAISE(FAIL, 'disk full'); END")
            assert (await cached.embed(["kyoto", "osaka"])).any()
            assert other.execute("SELECT count(*) FROM vectors").fetchone() == (1,)
    assert "disk full" in caplog.text


async def test_a_folder_that_cannot_be_made_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    async with caching(RecordingEmbedder(), tmp_path / "file" / "vectors.db") as cached:
        assert (await cached.embed(["tokyo"])).any()
    assert WARNING in caplog.text


async def test_closing_twice_is_harmless_and_a_closed_cache_still_answers(tmp_path: Path) -> None:
    cached = CachedEmbedder(RecordingEmbedder(), path=tmp_path / "vectors.db")
    await cached.embed(["tokyo"])
    await cached.aclose()
    await cached.aclose()
    assert (await cached.embed(["kyoto"])).any()


def test_several_processes_share_one_file(tmp_path: Path) -> None:
    program = """
import anyio, sys
from contextlib import aclosing
from pathlib import Path
from kg_adapters.embedding import CachedEmbedder, LexicalEmbedder

async def main():
    async with aclosing(CachedEmbedder(LexicalEmbedder(16), path=Path(sys.argv[1]))) as cached:
        for number in range(40):
            await cached.embed([f"{sys.argv[2]} {number}", f"shared {number}"])

anyio.run(main)
"""
    path = tmp_path / "vectors.db"
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name], stderr=subprocess.PIPE, text=True)
        for name in ("one", "two", "three")
    ]
    assert [process.communicate()[1] for process in started] == ["", "", ""]
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT count(*), count(DISTINCT key) FROM vectors").fetchone() == (160, 160)
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
