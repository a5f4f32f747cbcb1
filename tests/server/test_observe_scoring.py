"""The scores of observe: the paper's cosine, and the relation before its far end."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
import rdflib

from kg_adapters.index.graph_index import Dictionary
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.surroundings import RelationAliases, surroundings_in_index
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.requests import SurroundingsRequest
from kg_adapters.surroundings import Ints, Surroundings, gather_surroundings
from kg_adapters.testing import iri
from kg_server.observation.scoring import (
    Floats,
    Inquiry,
    PaperScorer,
    RelationFirstScorer,
    Scorer,
    SpellingScorer,
    Weights,
    inquiry,
    pairs_of,
    question_about,
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
    return await gather_surroundings(
        CountingGraph(statements), SurroundingsRequest((iri(entity),), per_relation=99, per_entity=99)
    )


def every_edge(seen: Surroundings) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.arange(len(seen))


async def score(scorer: Scorer, question: str, seen: Surroundings) -> Floats:
    return await scorer.score(inquiry(question, ""), seen, every_edge(seen))


def by_far_end(seen: Surroundings, scores: Floats) -> Mapping[str, float]:
    places: list[int] = seen.far.tolist()
    far = names([seen.far_nodes[place] for place in places])
    return dict(zip(far, np.round(scores.astype(float), 3).tolist(), strict=True))


async def test_the_score_of_the_paper_is_the_cosine_of_the_question_as_asked_and_each_edge_as_a_text() -> None:
    crowd = [f"goethe friend friend{number}" for number in range(600)]
    seen = await around("goethe", [*LIFE, *crowd])
    model, asked = WordModel(), Inquiry("what did goethe write, faust", "what did it write, faust")
    scores = await PaperScorer(model).score(asked, seen, every_edge(seen))
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
    relation = Weights(relation_letters=0, far=0, far_letters=0)
    assert by_far_end(seen, await score(RelationFirstScorer(WordModel(), weights=relation), QUESTION, seen)) == {
        "frankfurt": 1.0,
        "christiane": 0.0,
        "faust": 0.0,
        "werther": 0.0,
        "prometheus": 0.0,
    }
    letters = replace(relation, far_letters=1)
    scores = by_far_end(seen, await score(RelationFirstScorer(WordModel(), weights=letters), "what faust", seen))
    assert scores["faust"] > scores["frankfurt"] == 0


async def test_the_most_alike_name_of_a_relation_counts(graph_of: Callable[[str], LocalAdapter]) -> None:
    texts = "@prefix e: <http://example.org/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> . "
    called = 'e:r skos:altLabel "Geburt"@de , "birth"@en . e:s skos:prefLabel "home" . '
    stored = graph_of(f"{texts}{called}e:goethe e:r e:frankfurt ; e:s e:weimar .")
    held = RdflibAdapter(rdflib.Graph().parse(data=f"{texts}{called}e:goethe e:r e:frankfurt ; e:s e:weimar ."))
    request = SurroundingsRequest((iri("goethe"),), per_relation=9, per_entity=9)
    for scorer in (RelationFirstScorer(WordModel()), SpellingScorer()):
        both = [await gather_surroundings(stored, request), await stored.surroundings(request)]
        both.append(await gather_surroundings(held, request))
        found = [by_far_end(seen, await score(scorer, "birth", seen)) for seen in both]
        assert [list(seen.relation_aliases) for seen in both] == [[("birth",), ()]] * 3
        assert found[0]["frankfurt"] > found[0]["weimar"]
        assert found == [found[0]] * 3


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
async def test_vectors_of_labels_leave_only_the_question_to_embed(friends: int) -> None:
    index = index_of([*LIFE, *(f"goethe friend friend{number}" for number in range(friends))])
    seen = surroundings_in_index(
        index,
        Dictionary(index),
        SurroundingsRequest((iri("goethe"),), 9_999, 9_999),
        texts=(),
        aliases=RelationAliases(index, Dictionary(index), Vocabulary()),
        late_reads=lambda read: read,
    )
    nodes, relations = [
        [table[number].rpartition("/")[2] for number in range(len(table))] for table in (index.nodes, index.relations)
    ]
    rows = await WordModel().embed(nodes)
    # What has no vector is no reason to fail: this label was not among those that were computed.
    rows[nodes.index("christiane")] = 0
    model, question = WordModel(), "is frankfurt where it was born"
    known = KnownRows(rows, await WordModel().embed(relations))
    scores = await score(RelationFirstScorer(model, vectors=known), question, seen)
    assert model.asked == [[question]]
    assert by_far_end(seen, scores)["frankfurt"] == max(by_far_end(seen, scores).values())


async def test_without_a_model_the_spelling_decides_and_the_name_says_why() -> None:
    seen = await around("goethe")
    scorer = SpellingScorer("onnxruntime is missing")
    scores = by_far_end(seen, await score(scorer, "what birthplace", seen))
    assert max(scores, key=lambda far: scores[far]) == "frankfurt"
    named = by_far_end(seen, await score(scorer, "what about faust", seen))
    assert named["faust"] > named["werther"]
    assert (scorer.name, SpellingScorer().name) == ("spelling alone (onnxruntime is missing)", "spelling alone")


async def test_pairs_tell_the_directions_of_a_relation_apart() -> None:
    seen = await around("goethe", ["goethe author faust", "faust author goethe"])
    pairs = pairs_of(seen, every_edge(seen))
    assert pairs.texts(seen) == ["author faust", "inverse of author faust"]
    assert pairs.of.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("question", "name", "expected"),
    [
        ("What is the capital of Tokyo?", "Tokyo", "What is the capital of it?"),
        ("who wrote THE CALL OF THE WILD", "The Call of the Wild", "who wrote it"),
        ("who made Titanic", "Titanic (1997 film)", "who made it"),
        ("who wrote yu-gi-oh duel monsters?", "Yu-Gi-Oh! Duel Monsters", "who wrote it?"),
        ("where was goethe's wife born", "Johann Wolfgang von Goethe", "where was it's wife born"),
        ("who produced ron burgundy?", "Anchorman: The Legend of Ron Burgundy", "who produced it?"),
        ("is mrsatyendra kapoors wife alive", "Satyendra Kapur", "is it wife alive"),
        ("东京的首都是什么", "东京", "it的首都是什么"),
        ("ما هي عاصمة طوكيو", "طوكيو", "ما هي عاصمة it"),
    ],
)
def test_the_name_of_the_entity_gives_way_to_a_pronoun(question: str, name: str, expected: str) -> None:
    assert question_about(question, name) == expected


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("which music is it", "US"),
        ("who wrote what", "Tokyo"),
        ("who is he", "The Who is Who (he)"),
        ("İstanbul'da ne var", "Ankara Kalesi"),
        ("anything", ""),
        ("anything", "(only) (parentheses)"),
    ],
)
def test_a_question_that_does_not_name_the_entity_stays_as_it_is(question: str, name: str) -> None:
    assert question_about(question, name) == question


def test_a_name_of_thousands_of_words_is_searched_for_as_far_as_it_matters() -> None:
    assert question_about("a " * 500, "a b " * 5_000) == "a " * 500
    assert question_about(f"who {'word ' * 10}", f"word {'another ' * 9_000}") == f"who {'word ' * 10}"
    assert question_about("who is another", f"word {'another ' * 9_000}") == "who is it"
