from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from kg_adapters.local.dictionary import Dictionary
from kg_adapters.local.surroundings import surroundings_in_index
from kg_adapters.requests import SurroundingsRequest
from kg_adapters.surroundings import Ints, Surroundings, gather_surroundings
from kg_adapters.testing import iri
from kg_server.observation.pairs import pairs_of
from kg_server.observation.scoring import (
    Floats,
    PaperScorer,
    RelationFirstScorer,
    Scorer,
    SpellingScorer,
    Weights,
)
from kg_server.observation.wording import Inquiry, inquiry
from observers import CountingGraph, WordModel, names
from small_graphs import index_of

LIFE = [
    "goethe birth frankfurt",
    "goethe spouse christiane",
    "goethe author faust",
    "werther author goethe",
    "prometheus author goethe",
]
QUESTION = "where was it born"


async def around(entity: str, statements: Sequence[str] = LIFE) -> Surroundings:
    return await gather_surroundings(
        CountingGraph(statements), SurroundingsRequest((iri(entity),), per_relation=99, per_entity=99)
    )


def every_edge(seen: Surroundings) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.arange(len(seen))


async def score(scorer: Scorer, question: str, seen: Surroundings, looks: int = 99) -> Floats:
    return await scorer.score(inquiry(question, ""), seen, every_edge(seen), looks=looks)


def by_far_end(seen: Surroundings, scores: Floats) -> Mapping[str, float]:
    places: list[int] = seen.far.tolist()
    far = names([seen.far_nodes[place] for place in places])
    return dict(zip(far, np.round(scores.astype(float), 3).tolist(), strict=True))


async def test_the_score_of_the_paper_is_the_cosine_of_the_question_as_asked_and_each_edge_as_a_text() -> None:
    crowd = [f"goethe friend friend{number}" for number in range(600)]
    seen = await around("goethe", [*LIFE, *crowd])
    model, asked = WordModel(), Inquiry("what did goethe write, faust", "what did it write, faust")
    scores = await PaperScorer(model).score(asked, seen, every_edge(seen), looks=1)
    assert by_far_end(seen, scores) == await plainly(asked.text, seen)
    assert model.asked[0] == [asked.text]
    assert PaperScorer(model).name == "meaning, as in the ODA paper"


async def plainly(question: str, seen: Surroundings) -> Mapping[str, float]:
    """Return the score of the paper, worked out one edge at a time."""
    scores: dict[str, float] = {}
    for place in range(len(seen)):
        triple, inverse = seen.triple(place), bool(seen.inverse[place])
        far = (triple.head if inverse else triple.tail).local_part
        text = f"{'inverse of ' if inverse else ''}{triple.relation.local_part} {far}"
        asked, said = (await WordModel().embed([question, text])).astype(float)
        scores[far] = round(sum(one * other for one, other in zip(asked, said, strict=True)), 3)
    return scores


async def test_the_relation_comes_first_and_the_far_end_counts_less() -> None:
    seen = await around("goethe")
    scores = by_far_end(seen, await score(RelationFirstScorer(WordModel()), "where was it born or faust", seen))
    assert sorted(scores, key=lambda far: -scores[far])[:2] == ["frankfurt", "faust"]
    assert scores["faust"] > scores["werther"]


async def test_each_part_of_a_score_counts_by_its_weight() -> None:
    seen = await around("goethe")
    relation = Weights(relation_letters=0, far=0, far_letters=0, pair=0)
    assert by_far_end(seen, await score(RelationFirstScorer(WordModel(), weights=relation), QUESTION, seen)) == {
        "frankfurt": 1.0,
        "christiane": 0.0,
        "faust": 0.0,
        "werther": 0.0,
        "prometheus": 0.0,
    }
    pair = replace(relation, pair=1)
    scores = by_far_end(seen, await score(RelationFirstScorer(WordModel(), weights=pair), QUESTION, seen))
    # "birth frankfurt" shares one of its two words with the question, which has one that counts.
    assert scores["frankfurt"] == pytest.approx((1 + 0.7071) / 2, abs=1e-3)
    letters = replace(relation, far_letters=1)
    scores = by_far_end(seen, await score(RelationFirstScorer(WordModel(), weights=letters), "what faust", seen))
    assert scores["faust"] > scores["frankfurt"] == 0


async def test_edges_with_one_text_are_compared_once_and_score_the_same() -> None:
    seen = await gather_surroundings(
        CountingGraph([*LIFE, "schiller birth frankfurt"]),
        SurroundingsRequest((iri("goethe"), iri("schiller")), per_relation=99, per_entity=99),
    )
    model = WordModel()
    scores = await score(RelationFirstScorer(model), QUESTION, seen)
    assert model.asked[-1].count("birth frankfurt") == 1
    born = [places for places in range(len(seen)) if seen.triple(places).relation == iri("birth")]
    assert len(born) == 2
    assert len(set(scores[born].tolist())) == 1


async def test_only_the_best_are_looked_at_closely() -> None:
    crowd = [*LIFE, *(f"goethe friend friend{number}" for number in range(50))]
    seen = await around("goethe", crowd)
    model = WordModel()
    scores = await score(RelationFirstScorer(model), QUESTION, seen, looks=5)
    assert len(model.asked[-1]) == 5
    assert "birth frankfurt" in model.asked[-1]
    assert by_far_end(seen, scores)["frankfurt"] == max(by_far_end(seen, scores).values())


class KnownRows:
    """Vectors of labels that were computed ahead."""

    def __init__(self, nodes: Floats, relations: Floats) -> None:
        self._nodes = nodes
        self._relations = relations

    def nodes(self, ids: Ints) -> Floats:
        return self._nodes[ids]

    def relations(self, ids: Ints) -> Floats:
        return self._relations[ids]


@pytest.mark.parametrize("friends", [50, 5_000])
async def test_vectors_of_labels_leave_only_the_question_and_the_best_pairs_to_embed(friends: int) -> None:
    index = index_of([*LIFE, *(f"goethe friend friend{number}" for number in range(friends))])
    seen = surroundings_in_index(
        index,
        Dictionary(index),
        SurroundingsRequest((iri("goethe"),), 9_999, 9_999),
        texts=(),
        telling=lambda make: make,
    )
    nodes, relations = [
        [table[number].rpartition("/")[2] for number in range(len(table))] for table in (index.nodes, index.relations)
    ]
    rows = await WordModel().embed(nodes)
    # What has no vector is no reason to fail: this label was not among those that were computed.
    rows[nodes.index("christiane")] = 0
    model, question = WordModel(), "is frankfurt where it was born"
    known = KnownRows(rows, await WordModel().embed(relations))
    scores = await score(RelationFirstScorer(model, vectors=known), question, seen, looks=1)
    assert model.asked == [[question], ["birth frankfurt"]]
    assert by_far_end(seen, scores)["frankfurt"] == max(by_far_end(seen, scores).values())


async def test_without_a_model_the_spelling_decides_and_the_name_says_why() -> None:
    seen = await around("goethe")
    scorer = SpellingScorer("onnxruntime is missing")
    scores = by_far_end(seen, await score(scorer, "what birthplace", seen))
    assert max(scores, key=lambda far: scores[far]) == "frankfurt"
    named = by_far_end(seen, await score(scorer, "what about faust", seen))
    assert named["faust"] > named["werther"]
    assert (scorer.name, SpellingScorer().name) == ("spelling alone (onnxruntime is missing)", "spelling alone")


async def test_no_edges_have_no_scores() -> None:
    seen = await around("nobody")
    for scorer in (RelationFirstScorer(WordModel()), PaperScorer(WordModel()), SpellingScorer()):
        assert (await score(scorer, QUESTION, seen)).shape == (0,)


async def test_pairs_tell_the_directions_of_a_relation_apart() -> None:
    seen = await around("goethe", ["goethe author faust", "faust author goethe"])
    pairs = pairs_of(seen, every_edge(seen))
    assert pairs.texts(seen, np.arange(len(pairs))) == ["author faust", "inverse of author faust"]
    assert pairs.of.tolist() == [0, 1]
