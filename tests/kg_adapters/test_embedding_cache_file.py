"""The file of vectors is shared by processes, bounded, and never a reason to stop."""

import logging
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from embedders import RecordingEmbedder, caching, rounded
from kg_adapters.embedding import CachedEmbedder

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
