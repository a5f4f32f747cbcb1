"""How well an edge answers a question: the question with its entity marked, and scores by meaning or spelling."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias
from urllib.parse import unquote

import anyio
import anyio.lowlevel
import anyio.to_thread
import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz

from kg_adapters.embedding.lexical import lexical_scores
from kg_adapters.embedding.protocol import Embedder, products
from kg_adapters.errors import ModelBusy
from kg_adapters.surroundings import Flags, LabelVectors, Longs, StoreIds, Surroundings
from kg_adapters.terms import BlankNode, Node

PRONOUN: Final = "it"

_ALIKE: Final = 85

_SHORTEST_ALIKE: Final = 4

_SHORTEST_PART: Final = 5

_MOST_WORDS: Final = 30

_WORD: Final = re.compile(r"\w+")

_PARENTHESES: Final = re.compile(r"\s*\([^()]*\)\s*$")

_Place: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What is asked about one entity.

    Args:
        text: The question as it was asked.
        about: The question with a pronoun in place of the entity's name.
    """

    text: str
    about: str


def inquiry(question: str, name: str) -> Inquiry:
    """Return what a question asks about an entity of this name."""
    return Inquiry(question, question_about(question, name))


def spoken(node: Node, label: str | None) -> str:
    """Return a term as people would say it: its label, or else the local part of its IRI in words."""
    if label is not None:
        return label
    return "" if isinstance(node, BlankNode) else unquote(node.local_part).replace("_", " ")


def edge_text(relation: str, far: str, *, inverse: bool) -> str:
    """Return what an edge says about the entity at its near end, as in `capital Shinjuku`."""
    return f"inverse of {relation} {far}" if inverse else f"{relation} {far}"


def question_about(question: str, name: str) -> str:
    """Return a question with the name of the entity that it is about replaced by a pronoun.

    No edge around the entity says its name, so what else the question says must decide. A name that is spelt a little
    differently counts too, and a part of the name that holds a longer word; one that does not occur leaves the question
    as it is.
    """
    shorter = _PARENTHESES.sub("", name)
    place = _place(question, name) or _place(question, shorter)
    place = place or _similar_place(question, shorter) or _partial_place(question, shorter)
    return question if place is None else f"{question[: place[0]]}{PRONOUN}{question[place[1] :]}"


def _place(question: str, name: str) -> _Place | None:
    for found in re.finditer(re.escape(name), question, re.IGNORECASE) if name else ():
        if not _joined(question, found.start()) and not _joined(question, found.end()):
            return found.span()
    return None


def _similar_place(question: str, name: str) -> _Place | None:
    asked, wanted = question.lower(), name.lower()
    # Places in the lowered text must be places in the question; a name longer than it cannot be in it.
    if len(asked) != len(question) or not _SHORTEST_ALIKE <= len(wanted) <= len(asked):
        return None
    found = fuzz.partial_ratio_alignment(wanted, asked, score_cutoff=_ALIKE)
    if found is None:
        return None
    start, end = found.dest_start, found.dest_end
    while _joined(question, start):
        start -= 1
    while _joined(question, end):
        end += 1
    text = question[start:end]
    return start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())


def _partial_place(question: str, name: str) -> _Place | None:
    """Return where the longest run of words stands that the name has too."""
    words = list(_WORD.finditer(question))
    asked, named = (
        [word.group().lower() for word in words],
        [word.lower() for word in _WORD.findall(name)[:_MOST_WORDS]],
    )
    runs = (
        (start, start + length)
        for length in range(min(len(asked), len(named)), 0, -1)
        for start in range(len(asked) - length + 1)
        if max(map(len, asked[start : start + length])) >= _SHORTEST_PART
        and _holds(named, asked[start : start + length])
    )
    run = next(runs, None)
    return None if run is None else (words[run[0]].start(), words[run[1] - 1].end())


def _holds(words: Sequence[str], run: Sequence[str]) -> bool:
    return any(words[start : start + len(run)] == run for start in range(len(words) - len(run) + 1))


def _joined(text: str, place: int) -> bool:
    """Say whether a place is inside a word; scripts without letter case write no blanks to tell by."""
    return 0 < place < len(text) and _in_word(text[place - 1]) and _in_word(text[place])


def _in_word(mark: str) -> bool:
    return mark.isdigit() or mark.lower() != mark.upper()


@dataclass(frozen=True, slots=True)
class Pairs:
    """The distinct pairs among some edges, sorted by relation, direction and far node; k of them.

    Args:
        relation: Places in `Surroundings.relations`; shape [k].
        inverse: Whether the far node is the head; shape [k].
        far: Places in `Surroundings.far_nodes`; shape [k].
        of: The pair of each edge; shape [edges].
    """

    relation: Longs
    inverse: Flags
    far: Longs
    of: Longs

    def __len__(self) -> int:
        return len(self.relation)

    def texts(self, around: Surroundings) -> list[str]:
        """Return what the pairs say; shape [k]."""
        words = spoken_relations(around)
        relations: list[int] = self.relation.tolist()
        directions: list[bool] = self.inverse.tolist()
        far_nodes: list[int] = self.far.tolist()
        return [
            edge_text(words[relation], _far_text(around, far), inverse=inverse)
            for relation, inverse, far in zip(relations, directions, far_nodes, strict=True)
        ]


def pairs_of(around: Surroundings, edges: Longs) -> Pairs:
    """Return the distinct pairs among some edges, given by their places in `around`."""
    width = max(1, len(around.far_labels))
    kind = 2 * around.relation[edges].astype(np.int64) + around.inverse[edges]
    codes, of = np.unique(kind * width + around.far[edges], return_inverse=True)
    kinds = codes // width
    return Pairs(kinds // 2, kinds % 2 == 1, codes % width, of.astype(np.int64))


@dataclass(frozen=True, slots=True)
class RelationNames:
    """What the relations of some surroundings are called: first the name of each in words, then all other names.

    Args:
        texts: The names; shape [names].
        relations: Whose they are, as places in `Surroundings.relations`; shape [names].
    """

    texts: Sequence[str]
    relations: Longs

    def best(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the best score of the names of each relation; shape [relations]."""
        # np.unique would import a module in the event loop.
        best = scores[: len(set(self.relations.tolist()))].copy()
        np.maximum.at(best, self.relations, scores)
        return best


def names_of_relations(around: Surroundings) -> RelationNames:
    """Return what relations are called."""
    spoken = spoken_relations(around)
    others = [(place, name) for place, names in enumerate(around.relation_aliases) for name in names]
    places = np.array([*range(len(spoken)), *(place for place, _ in others)], dtype=np.int64)
    return RelationNames([*spoken, *(name for _, name in others)], places)


def spoken_relations(around: Surroundings) -> list[str]:
    """Return the relations in words; shape [relations]."""
    return [spoken(relation, label) for relation, label in zip(around.relations, around.relation_labels, strict=True)]


def far_texts(around: Surroundings, far: Longs) -> list[str]:
    """Return far nodes, given by their places, in words; shape [far]."""
    places: list[int] = far.tolist()
    return [_far_text(around, place) for place in places]


def _far_text(around: Surroundings, far: int) -> str:
    label = around.far_labels[far]
    return label if label is not None else spoken(around.far_nodes[far], None)


Floats: TypeAlias = npt.NDArray[np.float32]

AWAY: Final = "the embedding service does not answer now; kg-sextant doctor says why"
"""What is said where letters stand in for a service, in words that can stand in brackets."""

BUSY: Final = "the embedding model is busy now; ask again a little later to compare meanings"
"""What is said where they stand in because others have the model."""

_THREADED: Final = 4_000
"""From how many far ends on it is worth a thread to add up vectors."""

_TEXTS_AT_ONCE: Final = 2_000

_SPELT: Final = 128
"""Of how many pairs the far labels are compared by their letters, where their vectors choose the pairs."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much in a score, beside the likeness of the relation to the question, which counts 1.

    Args:
        relation_letters: The spelling of the relation.
        far: The likeness of the far label.
        far_letters: The spelling of the far label.
    """

    relation_letters: float = 0.4
    far: float = 0.1
    far_letters: float = 0.2

    @property
    def total(self) -> float:
        """The highest sum of weighted likenesses."""
        return 1 + self.relation_letters + self.far + self.far_letters


class Scorer(Protocol):
    """What says how like a question an edge is, seen from its near end."""

    @property
    def name(self) -> str:
        """What it goes by, in words for readers."""
        ...

    async def score(self, asked: Inquiry, around: Surroundings, edges: Longs) -> Floats:
        """Return the scores of some edges, at most 1, the higher the more alike; shape [edges].

        Args:
            asked: What is asked about the near ends.
            around: Where the edges are.
            edges: Places in `around`; shape [edges].
        """
        ...


class SpellingScorer:
    """Compares the spelling of the relation and of the far label: needs no model.

    Args:
        reason: Why there is no model, in words that can stand in brackets; empty if none was wanted.
    """

    _FAR: Final = 0.6

    def __init__(self, reason: str = "") -> None:
        self._reason = reason

    @property
    def name(self) -> str:
        """What it goes by, and why."""
        return f"spelling alone ({self._reason})" if self._reason else "spelling alone"

    async def score(self, asked: Inquiry, around: Surroundings, edges: Longs) -> Floats:
        """See `Scorer`."""
        pairs = pairs_of(around, edges)
        names = names_of_relations(around)
        scores: Floats = names.best(await _spelling(asked.about, names.texts))[pairs.relation]
        scores += self._FAR * await _far_spelling(asked.about, around, pairs.far)
        scores /= 1 + self._FAR
        return scores[pairs.of]


class HurriedScorer:
    """Gives another scorer some time, for all that it scores together.

    Args:
        scorer: What compares.
        time_s: How many seconds it has.
    """

    def __init__(self, scorer: Scorer, time_s: float) -> None:
        self._scorer = scorer
        self._left_s = time_s

    @property
    def name(self) -> str:
        """What the other goes by."""
        return self._scorer.name

    async def score(self, asked: Inquiry, around: Surroundings, edges: Longs) -> Floats:
        """See `Scorer`.

        Raises:
            ModelBusy: The time is up.
        """
        scores: Floats | None = None
        began = anyio.current_time()
        with anyio.move_on_after(self._left_s):
            scores = await self._scorer.score(asked, around, edges)
        self._left_s -= anyio.current_time() - began
        if scores is None:
            raise ModelBusy("The embedding model did not answer in time. Ask again in a moment.")
        return scores


class RelationFirstScorer:
    """Compares the meaning and the spelling of the relation first: a question asks for a far end without naming it.

    Of the label of a relation and its other names the most alike counts. Relations and labels have vectors that are
    computed once. To embed the best pairs as texts of their own as well gained nothing on development questions.

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
        return "meaning and spelling"

    async def score(self, asked: Inquiry, around: Surroundings, edges: Longs) -> Floats:
        """See `Scorer`; letters stand in for the far labels that have no vector."""
        weights, pairs = self._weights, pairs_of(around, edges)
        vector = (await self._embedder.embed([asked.about]))[0]
        names = names_of_relations(around)
        alike = products(await self._vectors_of(names, around), vector)
        alike += weights.relation_letters * await _spelling(asked.about, names.texts)
        scores: Floats = names.best(alike)[pairs.relation]
        if self._vectors is None or around.ids is None:
            scores += weights.far_letters * await _far_spelling(asked.about, around, pairs.far)
        else:
            scores += weights.far * await _far_cosines(self._vectors, around.ids, pairs.far, vector)
            spelt = _best(scores, _SPELT)
            scores[spelt] += weights.far_letters * await _far_spelling(asked.about, around, pairs.far[spelt])
        scores /= weights.total
        return scores[pairs.of]

    async def _vectors_of(self, names: RelationNames, around: Surroundings) -> Floats:
        """Return the vectors of the names of relations; shape [names, dimensions]."""
        if self._vectors is None or around.ids is None:
            return await self._embedder.embed(names.texts)
        labels = self._vectors.relations(around.ids.relations)
        others = names.texts[len(labels) :]
        return np.concatenate((labels, await self._embedder.embed(others))) if others else labels


class PaperScorer:
    """Compares as the ODA paper does (section 2.1): the cosine of the question and of relation and far label.

    Args:
        embedder: The model.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        """What it goes by."""
        return "meaning, as in the ODA paper"

    async def score(self, asked: Inquiry, around: Surroundings, edges: Longs) -> Floats:
        """See `Scorer`; the question is compared as it was asked."""
        pairs = pairs_of(around, edges)
        vector = (await self._embedder.embed([asked.text]))[0]
        texts = pairs.texts(around)
        return products(await self._embedder.embed(texts), vector)[pairs.of]


async def _far_cosines(vectors: LabelVectors, ids: StoreIds, far: Longs, vector: Floats) -> Floats:
    """Return the cosines of a question and the labels of far nodes, 0 for what has no vector; shape [far]."""
    if len(far) < _THREADED:
        return _far_cosines_now(vectors, ids, far, vector)
    return await anyio.to_thread.run_sync(_far_cosines_now, vectors, ids, far, vector)


def _far_cosines_now(vectors: LabelVectors, ids: StoreIds, far: Longs, vector: Floats) -> Floats:
    present, of = np.unique(far, return_inverse=True)
    cosines: Floats = np.zeros(len(present), dtype=np.float32)
    nodes = present < len(ids.far)  # behind them come the literals
    cosines[nodes] = products(vectors.nodes(ids.far[present[nodes]]), vector)
    return cosines[of]


def _best(scores: Floats, most: int) -> Longs:
    """Return the places of the best scores in ascending order; of equal ones the first."""
    if len(scores) <= most:
        return np.arange(len(scores))
    return np.sort(np.argsort(-np.round(scores, 4), kind="stable")[:most])


async def _far_spelling(question: str, around: Surroundings, far: Longs) -> Floats:
    """Return how alike the question and the labels of far nodes are spelt; shape [far]."""
    present, of = np.unique(far, return_inverse=True)
    return (await _spelling(question, far_texts(around, present)))[of]


async def _spelling(question: str, texts: Sequence[str]) -> Floats:
    parts = [np.zeros(0, dtype=np.float32)]
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        await anyio.lowlevel.checkpoint()
        parts.append(lexical_scores(question, texts[first : first + _TEXTS_AT_ONCE]))
    return np.concatenate(parts)
