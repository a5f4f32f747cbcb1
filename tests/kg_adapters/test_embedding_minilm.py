"""The shipped model gives every text a vector that means something, whatever is asked beside it."""

import hashlib
import json
import random
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol

import anyio
import numpy as np
import pytest

from embedders import HOSTILE_TEXTS
from kg_adapters.embedding import Embedder, LexicalEmbedder, MiniLmEmbedder, best_available
from kg_adapters.embedding.minilm import (
    MODEL_FILE,
    MODEL_FOLDER,
    MODEL_SHA256,
    TOKENIZER_FILE,
    TOKENIZER_SHA256,
    WordPieces,
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


INSTEAD = "Texts are compared by their letters instead."
REPORT = """
import anyio, json
from kg_adapters.embedding import best_available
found = best_available()
vectors = anyio.run(found.embedder.embed, ["capital", "capitol"])
print(json.dumps([found.embedder.fingerprint, found.fallback_reason, float(vectors[0] @ vectors[1]) > 0]))
"""
# A library that can be imported, and refuses the model with an exception of its own.
REFUSING = """
import sys, types
state = types.ModuleType("onnxruntime.capi.onnxruntime_pybind11_state")
state.InvalidGraph = type("InvalidGraph", (Exception,), {})
def refuse(*arguments, **options):
    raise state.InvalidGraph("no such operator")
library = types.ModuleType("onnxruntime")
library.SessionOptions = lambda: types.SimpleNamespace(add_session_config_entry=lambda key, value: None)
library.InferenceSession = refuse
sys.modules |= {"onnxruntime": library, "onnxruntime.capi": types.ModuleType("capi"), state.__name__: state}
"""


def run(program: str) -> list[object]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    report: list[object] = json.loads(done.stdout)
    return report


def test_the_shipped_model_is_chosen_where_it_runs() -> None:
    found = best_available(threads=1)
    assert (type(found.embedder), found.fallback_reason) == (MiniLmEmbedder, None)


def test_without_a_library_letters_are_compared_and_the_reason_names_it() -> None:
    library = "onnxruntime"
    fingerprint, reason, similar = run(f"import sys; sys.modules['{library}'] = None\n{REPORT}")
    assert (fingerprint, similar) == (LexicalEmbedder().fingerprint, True)
    start = f"The embedding model needs {library}, which does not work here: "
    assert str(reason).startswith(start)
    assert str(reason).endswith(INSTEAD)


def test_a_library_that_refuses_the_model_is_no_reason_to_stop() -> None:
    fingerprint, reason, _ = run(REFUSING + REPORT)
    assert fingerprint == LexicalEmbedder().fingerprint
    assert reason == f"The embedding model needs onnxruntime, which does not work here: no such operator. {INSTEAD}"


def test_without_the_files_letters_are_compared(tmp_path: Path) -> None:
    found = best_available(folder=tmp_path)
    assert isinstance(found.embedder, LexicalEmbedder)
    assert f"{tmp_path / 'tokenizer.json'} cannot be read" in str(found.fallback_reason)


def test_importing_the_package_loads_no_library_that_runs_a_model() -> None:
    heavy = ("onnxruntime", "openai", "usearch", "pyoxigraph", "rdflib")
    program = f"import json, sys, kg_adapters.embedding; print(json.dumps([n for n in {heavy!r} if n in sys.modules]))"
    assert run(program) == []


CONTENT: Final = (MODEL_FOLDER / TOKENIZER_FILE).read_bytes()
MOST: Final = 128


class _Encoded(Protocol):
    ids: list[int]


class _Reference(Protocol):
    """What is used of a `Tokenizer` of the package tokenizers."""

    def no_padding(self) -> None: ...

    def enable_truncation(self, max_length: int) -> None: ...

    def encode_batch_fast(self, texts: list[str], /) -> list[_Encoded]: ...


@pytest.fixture(scope="module")
def reference() -> _Reference:
    made: _Reference = import_module("tokenizers").Tokenizer.from_str(CONTENT.decode())
    made.no_padding()
    made.enable_truncation(MOST)
    return made


def differing(texts: list[str], reference: _Reference) -> list[str]:
    ours = WordPieces(CONTENT, MOST)
    expected = reference.encode_batch_fast(texts)
    return [text for text, encoded in zip(texts, expected, strict=True) if ours.numbers(text) != encoded.ids]


def test_random_texts_of_many_scripts_are_split_alike(reference: _Reference) -> None:
    drawn = random.Random(7)  # noqa: S311 - a test draws the same texts each time
    letters = "abc ABC éÉßΣσς中文[]CLSEP ,.!?'’“-–#\t\n\u200b\u0301İıﬁ漢x 123"  # noqa: RUF001 - these are meant
    texts = ["".join(drawn.choice(letters) for _ in range(drawn.randint(0, 40))) for _ in range(5_000)]
    assert differing(texts, reference) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a" * 100,
        "a" * 101,
        "word " * 300,
        "[SEP] [MASK]s [sep]",
        "Ünïted Stâtes",
        "unaffable",
        "😀 x",
        "Ὀδυσσεύς",
    ],
)
def test_texts_at_the_edges_are_split_alike(text: str, reference: _Reference) -> None:
    assert differing([text], reference) == []


def test_every_letter_of_usual_scripts_is_read_alike(reference: _Reference) -> None:
    # Above, the two know different versions of Unicode: some 500 rare marks differ.
    texts = [f"a{chr(code)}b {chr(code)}" for code in (*range(0x600), *range(0x3000, 0xA000))]
    assert differing(texts, reference) == []
