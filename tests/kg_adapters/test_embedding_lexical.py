"""The lexical embedder, and embedders whose calls queue."""

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from math import sqrt

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedders import HOSTILE_TEXTS
from kg_adapters.embedding import Embedder, LexicalEmbedder, LexicalScorer, QueuedEmbedder, Vectors, lexical_scores
from kg_adapters.embedding.lexical import grams_of
from kg_adapters.errors import ModelBusy

WORDS = st.text(alphabet="ab é-", max_size=12)


def grams(text: str) -> Counter[str]:
    """The same in the plainest way, for words of these tests."""
    plain = text.replace("é", "e").replace("-", " ")
    padded = [f" {word} " for word in plain.split()]
    return Counter(
        word[start : start + size] for word in padded for size in (3, 4, 5) for start in range(len(word) - size + 1)
    )


def cosine(one: str, other: str) -> float:
    first, second = grams(one), grams(other)
    shared = sum(sqrt(count * second[gram]) for gram, count in first.items())
    return shared / sqrt(first.total() * second.total()) if shared else 0.0


@given(WORDS, st.lists(WORDS, max_size=6))
def test_the_score_is_the_cosine_of_the_grams(question: str, texts: list[str]) -> None:
    expected = [cosine(question, text) for text in texts]
    assert LexicalScorer().scores(question, texts).tolist() == pytest.approx(expected, abs=1e-6)


def test_the_same_text_scores_one_and_a_foreign_one_zero() -> None:
    texts = ["Capital of Japan", "capital (of) JAPAN!", "xyz", ""]
    assert lexical_scores("capital of japan", texts).tolist() == [1.0, 1.0, 0.0, 0.0]


def test_a_shared_root_counts_more_than_a_shared_ending() -> None:
    composed, composer, other = lexical_scores("who composed it", ["composed by", "composer", "imposed"]).tolist()
    assert composed > composer > other > 0


@pytest.mark.parametrize("question", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_any_texts_can_be_scored(question: str) -> None:
    scores = LexicalScorer().scores(question, HOSTILE_TEXTS)
    assert scores.shape == (len(HOSTILE_TEXTS),)
    assert np.all((scores >= 0) & (scores <= 1))


def test_scores_do_not_depend_on_what_was_scored_before() -> None:
    texts = [f"label number {number}" for number in range(50)]
    scorer = LexicalScorer(kept_texts=20)
    fresh = scorer.scores("number 7", texts).tolist()
    assert scorer.scores("number 7", texts[::-1]).tolist() == fresh[::-1]
    assert scorer.scores("number 7", [texts[7], texts[7]]).tolist() == [fresh[7], fresh[7]]


def test_the_grams_that_are_kept_are_bounded() -> None:
    scorer = LexicalScorer(kept_texts=20)
    for first in range(0, 100, 10):
        scorer.scores("x", [f"text {number}" for number in range(first, first + 30)])
        assert scorer.kept <= 20
    scorer.scores("x", ["long words " * 200])
    assert scorer.kept <= 20


def test_a_very_long_text_is_not_kept() -> None:
    scorer = LexicalScorer()
    scorer.scores("x y z", ["short text", "many different words " * 100])
    assert scorer.kept == 1


def test_more_texts_than_fit_in_one_piece_are_scored_alike() -> None:
    texts = [f"place {number % 5}" for number in range(9_000)]
    few = LexicalScorer().scores("place 3", texts[:5])
    many = LexicalScorer().scores("place 3", [f"{text} {number}" for number, text in enumerate(texts)])
    assert few.tolist() == LexicalScorer().scores("place 3", texts).tolist()[:5]
    assert many.shape == (9_000,)


def test_each_text_has_its_own_grams() -> None:
    found = grams_of(["ab", "", "abc d"])
    assert np.diff(found.starts).tolist() == [3, 0, 7]
    assert found.owners.tolist() == [0] * 3 + [2] * 7
    assert found.hashes[:1].tolist() == found.hashes[3:4].tolist()


async def test_lexical_vectors_have_unit_length_and_blank_texts_zeros() -> None:
    embedder = LexicalEmbedder()
    assert isinstance(embedder, Embedder)
    vectors = await embedder.embed(HOSTILE_TEXTS)
    assert vectors.shape == (len(HOSTILE_TEXTS), embedder.dimensions)
    assert vectors.dtype == np.float32
    assert {round(float(length), 5) for length in np.linalg.norm(vectors, axis=1)} == {0.0, 1.0}
    assert not vectors[0].any()
    assert (await embedder.embed([])).shape == (0, embedder.dimensions)


async def test_lexical_vectors_are_close_to_the_exact_cosine() -> None:
    texts = ["who composed the music", "composer", "music by", "date of birth", "the music that he composed"]
    vectors = await LexicalEmbedder().embed(texts)
    exact = lexical_scores(texts[0], texts)
    assert np.abs(vectors @ vectors[0] - exact).max() < 0.1


async def test_a_vector_does_not_depend_on_the_texts_beside_it() -> None:
    texts = [f"text {number}" for number in range(5_000)]
    together = await LexicalEmbedder(32).embed(texts)
    assert together[4_500].tolist() == (await LexicalEmbedder(32).embed([texts[4_500]]))[0].tolist()


def test_vectors_are_the_same_in_every_process() -> None:
    program = (
        "import anyio\nfrom kg_adapters.embedding import LexicalEmbedder\n"
        "print(anyio.run(LexicalEmbedder(16).embed, ['Tōkyō tower']).tolist())"
    )
    shown = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(shown) == 1


LONG = ["text"] * 17
NEVER_S = 3_600.0


class SlowEmbedder:
    """Answers when it is let; keeps how many texts it was asked for, and how many calls it worked on at once."""

    fingerprint = "slow"
    dimensions = 2

    def __init__(self) -> None:
        self.go_on = anyio.Event()
        self.asked: list[int] = []
        self.at_work = self.most_at_work = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(len(texts))
        if len(texts) > 1:
            self.at_work += 1
            self.most_at_work = max(self.most_at_work, self.at_work)
            try:
                await self.go_on.wait()
            finally:
                self.at_work -= 1
        return np.ones((len(texts), self.dimensions), dtype=np.float32)


async def test_long_calls_are_done_one_after_the_other_and_a_short_one_passes_them() -> None:
    inner = SlowEmbedder()
    queued = QueuedEmbedder(inner, wait_s=NEVER_S, timeout_s=NEVER_S)
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(queued.embed, LONG)
        await anyio.wait_all_tasks_blocked()
        assert (await queued.embed(["short"])).shape == (1, 2)
        assert inner.asked == [17, 1]
        inner.go_on.set()
    assert (inner.asked, inner.most_at_work) == ([17, 1, 17, 17], 1)


async def test_who_has_waited_too_long_is_told_so_and_the_others_go_on() -> None:
    inner = SlowEmbedder()
    queued = QueuedEmbedder(inner, wait_s=0.01, timeout_s=NEVER_S)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queued.embed, LONG)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(ModelBusy, match="is busy with others"):
            await queued.embed(LONG)
        inner.go_on.set()
    assert inner.asked == [17]
    assert (await queued.embed(LONG)).shape == (17, 2)


@pytest.mark.parametrize("count", [2, 17])
async def test_a_call_that_takes_too_long_is_given_up_and_leaves_its_turn(count: int) -> None:
    inner = SlowEmbedder()
    queued = QueuedEmbedder(inner, wait_s=NEVER_S, timeout_s=0.01)
    with pytest.raises(ModelBusy, match="is busy with others"):
        await queued.embed(["text"] * count)
    inner.go_on.set()
    assert (await queued.embed(LONG)).shape == (17, 2)


async def test_a_call_that_is_given_up_while_it_works_leaves_its_turn_to_the_next() -> None:
    inner = SlowEmbedder()
    queued = QueuedEmbedder(inner, wait_s=NEVER_S, timeout_s=NEVER_S)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queued.embed, LONG)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    inner.go_on.set()
    assert (await queued.embed(LONG)).shape == (17, 2)


async def test_it_is_the_embedder_that_it_wraps() -> None:
    queued = QueuedEmbedder(SlowEmbedder(), wait_s=NEVER_S, timeout_s=NEVER_S)
    assert (queued.fingerprint, queued.dimensions) == ("slow", 2)
