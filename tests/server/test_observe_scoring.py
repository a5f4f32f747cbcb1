from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from kg_adapters.local.dictionary import Dictionary
from kg_adapters.local.surroundings import surroundings_in_index
from kg_adapters.surroundings import Ints, Surroundings, gather_surroundings
from kg_adapters.testing import iri
from kg_server.observation.pairs import pairs_of
from kg_server.observation.scoring import (
    OUT_OF_THE_RUNNING,
    PAPER_WEIGHTS,
    Floats,
    MeaningScorer,
    SpellingScorer,
    Weights,
)
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
    return await gather_surroundings(CountingGraph(statements), [iri(entity)], per_relation=99, per_entity=99)


def every_edge(seen: Surroundings) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.arange(len(seen))


def by_far_end(seen: Surroundings, scores: Floats) -> Mapping[str, float]:
    places: list[int] = seen.far.tolist()
    far = names([seen.far_nodes[place] for place in places])
    return dict(zip(far, np.round(scores.astype(float), 3).tolist(), strict=True))


async def test_the_score_of_the_paper_is_the_cosine_of_question_and_edge() -> None:
    seen = await around("goethe")
    scorer = MeaningScorer(WordModel(), weights=PAPER_WEIGHTS)
    scores = await scorer.score(QUESTION, seen, every_edge(seen), shortlist=None)
    # "birth frankfurt" shares one of its two words with the question, which has one that counts.
    assert by_far_end(seen, scores) == {
        "frankfurt": 0.707,
        "christiane": 0.0,
        "faust": 0.0,
        "werther": 0.0,
        "prometheus": 0.0,
    }
    assert scorer.name == "meaning"


async def test_the_relation_alone_and_the_spelling_count_by_their_weights() -> None:
    seen = await around("goethe")
    relation = await MeaningScorer(WordModel(), weights=Weights(relation=1, lexical=0)).score(
        QUESTION, seen, every_edge(seen), shortlist=None
    )
    assert by_far_end(seen, relation)["frankfurt"] == pytest.approx((0.7071 + 1) / 2, abs=1e-3)
    asked = "what faust"
    meaning, both = [
        by_far_end(
            seen, await MeaningScorer(WordModel(), weights=weights).score(asked, seen, every_edge(seen), shortlist=None)
        )
        for weights in (PAPER_WEIGHTS, Weights(relation=0, lexical=1))
    ]
    spelling = by_far_end(seen, await SpellingScorer().score(asked, seen, every_edge(seen), shortlist=None))
    assert both["faust"] == pytest.approx((meaning["faust"] + spelling["faust"]) / 2, abs=1e-3)


async def test_edges_with_one_text_are_compared_once_and_score_the_same() -> None:
    seen = await gather_surroundings(
        CountingGraph([*LIFE, "schiller birth frankfurt"]),
        [iri("goethe"), iri("schiller")],
        per_relation=99,
        per_entity=99,
    )
    model = WordModel()
    scores = await MeaningScorer(model).score(QUESTION, seen, every_edge(seen), shortlist=None)
    assert model.asked[-1].count("birth frankfurt") == 1
    born = [places for places in range(len(seen)) if seen.triple(places).relation == iri("birth")]
    assert len(born) == 2
    assert len(set(scores[born].tolist())) == 1


async def test_only_a_shortlist_is_looked_at_closely_and_the_best_is_on_it() -> None:
    crowd = [*LIFE, *(f"goethe friend friend{number}" for number in range(50))]
    seen = await around("goethe", crowd)
    model = WordModel()
    scores = await MeaningScorer(model).score(QUESTION, seen, every_edge(seen), shortlist=5)
    assert len(model.asked[-1]) == 5
    assert np.count_nonzero(scores != OUT_OF_THE_RUNNING) == 5
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
async def test_vectors_of_labels_choose_the_shortlist_without_a_look_at_any_text(friends: int) -> None:
    index = index_of([*LIFE, *(f"goethe friend friend{number}" for number in range(friends))])
    seen = surroundings_in_index(
        index, Dictionary(index), [iri("goethe")], per_relation=9_999, per_entity=9_999, telling=lambda make: make
    )
    nodes, relations = [
        [table[number].rpartition("/")[2] for number in range(len(table))] for table in (index.nodes, index.relations)
    ]
    rows = await WordModel().embed(nodes)
    # What has no vector is no reason to fail: this label was not among those that were computed.
    rows[nodes.index("christiane")] = 0
    model, question = WordModel(), "is frankfurt where it was born"
    scores = await MeaningScorer(model, vectors=KnownRows(rows, await WordModel().embed(relations))).score(
        question, seen, every_edge(seen), shortlist=1
    )
    assert model.asked == [[question], ["birth frankfurt"]]
    assert [far for far, score in by_far_end(seen, scores).items() if np.isfinite(score)] == ["frankfurt"]


async def test_without_a_model_the_spelling_decides_and_the_name_says_why() -> None:
    seen = await around("goethe")
    scorer = SpellingScorer("onnxruntime is missing")
    scores = by_far_end(seen, await scorer.score("what birthplace", seen, every_edge(seen), shortlist=1))
    assert max(scores, key=lambda far: scores[far]) == "frankfurt"
    assert (scorer.name, SpellingScorer().name) == ("spelling alone (onnxruntime is missing)", "spelling alone")


async def test_no_edges_have_no_scores() -> None:
    seen = await around("nobody")
    for scorer in (MeaningScorer(WordModel()), SpellingScorer()):
        assert (await scorer.score(QUESTION, seen, every_edge(seen), shortlist=5)).shape == (0,)


async def test_pairs_tell_the_directions_of_a_relation_apart() -> None:
    seen = await around("goethe", ["goethe author faust", "faust author goethe"])
    pairs = pairs_of(seen, every_edge(seen))
    assert pairs.texts(seen, np.arange(len(pairs))) == ["author faust", "inverse of author faust"]
    assert pairs.of.tolist() == [0, 1]
