"""The tokenizer of the shipped model gives what the one gives that it was trained with."""

import random
from importlib import import_module
from typing import Final, Protocol

import pytest

from kg_adapters.embedding.minilm import MODEL_FOLDER, TOKENIZER_FILE, WordPieces

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
