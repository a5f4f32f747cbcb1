"""How like a question the edges around entities are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import anyio.lowlevel
import anyio.to_thread
import numpy as np
import numpy.typing as npt

from kg_adapters.embedding.lexical import lexical_scores
from kg_adapters.embedding.protocol import Embedder, products
from kg_adapters.surroundings import Longs, StoreIds, Surroundings
from kg_adapters.vectors import LabelVectors
from kg_server.observation.pairs import Pairs, pairs_of, spoken_relations

Floats: TypeAlias = npt.NDArray[np.float32]

OUT_OF_THE_RUNNING: Final = np.float32(-np.inf)
AWAY: Final = "the embedding service does not answer now; kg-sextant doctor says why"
"""What is said where letters stand in for a service, in words that can stand in brackets."""
BUSY: Final = "the embedding model is busy now; the same question a little later compares meanings"
"""What is said where they stand in because others have the model."""
_THREADED: Final = 4_000
"""From how many pairs on it is worth a thread to add up vectors."""
_TEXTS_AT_ONCE: Final = 2_000
_FIRST_LOOK_SPELLING: Final = 0.6
"""What the spelling of an edge counts at the first look, where its far label has no vector."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much in a score, beside the likeness of the whole edge to the question, which counts 1.

    Args:
        relation: The likeness of the relation alone: the edges of one relation differ in their far ends only, and a
            question asks for a far end without naming it.
        lexical: The likeness of the spelling.
    """

    relation: float = 0.5
    lexical: float = 0.4

    @property
    def total(self) -> float:
        """The highest sum of weighted likenesses."""
        return 1 + self.relation + self.lexical


PAPER_WEIGHTS: Final = Weights(relation=0.0, lexical=0.0)
"""The cosine of the edge alone, as in the ODA paper."""


class Scorer(Protocol):
    """What says how like a question an edge is, seen from its near end."""

    @property
    def name(self) -> str:
        """What it goes by, in words for readers."""
        ...

    async def score(self, question: str, around: Surroundings, edges: Longs, *, shortlist: int | None) -> Floats:
        """Return the scores of some edges, at most 1, the higher the more alike; shape [edges].

        Args:
            question: What is asked about the near ends.
            around: Where the edges are.
            edges: Places in `around`; shape [edges].
            shortlist: How many distinct texts to look at closely. The others score `OUT_OF_THE_RUNNING`, minus
                infinity. None looks closely at all.
        """
        ...


class SpellingScorer:
    """Compares the spelling: needs no model.

    Args:
        reason: Why there is no model, in words that can stand in brackets; empty if none was wanted.
    """

    def __init__(self, reason: str = "") -> None:
        self._reason = reason

    @property
    def name(self) -> str:
        """What it goes by, and why."""
        return f"spelling alone ({self._reason})" if self._reason else "spelling alone"

    async def score(self, question: str, around: Surroundings, edges: Longs, *, shortlist: int | None) -> Floats:
        """See `Scorer`; every text is looked at."""
        del shortlist
        pairs = pairs_of(around, edges)
        scores = await _spelling(question, pairs.texts(around, np.arange(len(pairs))))
        return scores[pairs.of]


class MeaningScorer:
    """Compares the meaning by the vectors of a model, and the spelling.

    Args:
        embedder: The model.
        weights: What counts how much.
        vectors: The vectors of the labels of the store that is searched, by the same model.
    """

    def __init__(
        self, embedder: Embedder, *, weights: Weights | None = None, vectors: LabelVectors | None = None
    ) -> None:
        self._embedder = embedder
        self._weights = weights or Weights()
        self._vectors = vectors

    @property
    def name(self) -> str:
        """What it goes by."""
        return "meaning and spelling" if self._weights.lexical else "meaning"

    async def score(self, question: str, around: Surroundings, edges: Longs, *, shortlist: int | None) -> Floats:
        """See `Scorer`; the shortlist is chosen by vectors of labels, or by relation and spelling."""
        pairs = pairs_of(around, edges)
        asked = (await self._embedder.embed([question]))[0]
        by_relation: Floats = products(await self._relations(around), asked)[pairs.relation]
        chosen = np.arange(len(pairs))
        if shortlist is not None and len(pairs) > shortlist:
            chosen = _best(await self._first_look(question, asked, around, pairs, by_relation), shortlist)
        texts = pairs.texts(around, chosen)
        sums = products(await self._embedder.embed(texts), asked) + self._weights.relation * by_relation[chosen]
        if self._weights.lexical:
            sums += self._weights.lexical * await _spelling(question, texts)
        scores: Floats = np.full(len(pairs), OUT_OF_THE_RUNNING, dtype=np.float32)
        scores[chosen] = sums / self._weights.total
        return scores[pairs.of]

    async def _relations(self, around: Surroundings) -> Floats:
        """Return the vectors of the relations; shape [relations, dimensions]."""
        if self._vectors is not None and around.ids is not None:
            return self._vectors.relations(around.ids.relations)
        return await self._embedder.embed(spoken_relations(around))

    async def _first_look(
        self, question: str, asked: Floats, around: Surroundings, pairs: Pairs, by_relation: Floats
    ) -> Floats:
        """Return a score for every pair that needs no vector of the pair."""
        far: Floats = np.full(len(pairs), np.nan, dtype=np.float32)
        if self._vectors is not None and around.ids is not None:
            far = await _far_cosines(self._vectors, around.ids, pairs, asked)
        unknown = np.flatnonzero(np.isnan(far))
        far[unknown] = _FIRST_LOOK_SPELLING * await _spelling(question, pairs.texts(around, unknown))
        scores: Floats = (far + (1 + self._weights.relation) * by_relation).astype(np.float32, copy=False)
        return scores


async def _far_cosines(vectors: LabelVectors, ids: StoreIds, pairs: Pairs, asked: Floats) -> Floats:
    """Return the cosines of the question and the far labels alone, nan for what has no vector; shape [pairs]."""
    if len(pairs) < _THREADED:
        return _far_cosines_now(vectors, ids, pairs, asked)
    return await anyio.to_thread.run_sync(_far_cosines_now, vectors, ids, pairs, asked)


def _far_cosines_now(vectors: LabelVectors, ids: StoreIds, pairs: Pairs, asked: Floats) -> Floats:
    present, of = np.unique(pairs.far, return_inverse=True)
    rows = vectors.nodes(ids.far[present])
    cosines = products(rows, asked)
    cosines[~rows.any(axis=1)] = np.nan
    return cosines[of]


def _best(scores: Floats, most: int) -> Longs:
    """Return the places of the best scores in ascending order; of equal ones the first."""
    return np.sort(np.argsort(-np.round(scores, 4), kind="stable")[:most])


async def _spelling(question: str, texts: Sequence[str]) -> Floats:
    parts = [np.zeros(0, dtype=np.float32)]
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        await anyio.lowlevel.checkpoint()
        parts.append(lexical_scores(question, texts[first : first + _TEXTS_AT_ONCE]))
    return np.concatenate(parts)
