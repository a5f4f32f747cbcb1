"""The shipped model gives every text a vector that means something, whatever is asked beside it."""

import hashlib
import re
from pathlib import Path

import anyio
import numpy as np
import pytest

from embedders import HOSTILE_TEXTS
from kg_adapters.embedding import Embedder, MiniLmEmbedder
from kg_adapters.embedding.minilm import (
    MODEL_FILE,
    MODEL_FOLDER,
    MODEL_SHA256,
    TOKENIZER_FILE,
    TOKENIZER_SHA256,
)
from kg_adapters.errors import Unsupported


@pytest.fixture(scope="module")
def model() -> MiniLmEmbedder:
    return MiniLmEmbedder()


def test_the_model_is_an_embedder_whose_fingerprint_can_name_a_folder(model: MiniLmEmbedder) -> None:
    assert isinstance(model, Embedder)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,100}", model.fingerprint)


def test_the_fingerprint_is_that_of_the_shipped_files(model: MiniLmEmbedder) -> None:
    content = [(MODEL_FOLDER / name).read_bytes() for name in (MODEL_FILE, TOKENIZER_FILE)]
    sha256s = [hashlib.sha256(each).hexdigest() for each in content]
    assert sha256s == [MODEL_SHA256, TOKENIZER_SHA256]
    assert all(sha256[:8] in model.fingerprint for sha256 in sha256s)


async def test_texts_that_mean_the_same_point_the_same_way(model: MiniLmEmbedder) -> None:
    tokyo, capital, train = await model.embed(["Tokyo", "capital of Japan", "railway gauge"])
    assert float(tokyo @ capital) == pytest.approx(0.636, abs=0.005)
    assert float(tokyo @ train) < 0.3


async def test_any_text_has_a_unit_vector_and_a_blank_one_zeros(model: MiniLmEmbedder) -> None:
    vectors = await model.embed(HOSTILE_TEXTS)
    lengths = np.linalg.norm(vectors, axis=1)
    assert vectors.shape == (len(HOSTILE_TEXTS), model.dimensions)
    assert vectors.dtype == np.float32
    assert lengths.tolist() == pytest.approx([0, 0, *[1] * (len(HOSTILE_TEXTS) - 2)], abs=1e-5)


async def test_no_text_gives_no_vector(model: MiniLmEmbedder) -> None:
    assert (await model.embed([])).shape == (0, model.dimensions)


async def test_a_vector_does_not_depend_on_the_texts_beside_it(model: MiniLmEmbedder) -> None:
    texts = [f"{'long ' * number}label" for number in range(50)]
    together = await model.embed(texts)
    for place in (0, 17, 49):
        alone = await model.embed([texts[place]])
        assert np.abs(together[place] - alone[0]).max() < 1e-5


async def test_of_a_long_text_the_beginning_counts(model: MiniLmEmbedder) -> None:
    long, longer = await model.embed(["river " * 200 + "x", "river " * 100_000])
    assert long.tolist() == longer.tolist()


async def test_a_short_call_does_not_wait_for_a_long_one(model: MiniLmEmbedder) -> None:
    finished: list[str] = []

    async def call(name: str, count: int) -> None:
        await model.embed([f"{name} {number}" for number in range(count)])
        finished.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, "long", 200)
        tasks.start_soon(call, "short", 1)
    assert finished == ["short", "long"]


async def test_a_cancelled_call_leaves_the_model_to_others(model: MiniLmEmbedder) -> None:
    finished: list[str] = []

    async def long_call() -> None:
        await model.embed(["word"] * 20_000)
        finished.append("long")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(long_call)
        await model.embed(["word"])
        tasks.cancel_scope.cancel()
    assert finished == []
    assert (await model.embed(["word"])).shape == (1, model.dimensions)


@pytest.mark.parametrize("damaged", [MODEL_FILE, TOKENIZER_FILE])
async def test_a_damaged_file_is_named(tmp_path: Path, damaged: str) -> None:
    for name in (MODEL_FILE, TOKENIZER_FILE):
        (tmp_path / name).symlink_to(MODEL_FOLDER / name)
    (tmp_path / damaged).unlink()
    (tmp_path / damaged).write_bytes(b"version https://git-lfs.example/spec")
    with pytest.raises(Unsupported, match=rf"{re.escape(damaged)} is damaged\. Install the package again\."):
        await MiniLmEmbedder(folder=tmp_path).embed(["x"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"tokenizer\.json cannot be read: No such file or directory\."):
        MiniLmEmbedder(folder=tmp_path, threads=1).load()
