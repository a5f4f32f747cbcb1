# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""What the contract says about relations by name."""

import pytest

from kg_adapters.models import RelationCandidate
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri
from kg_adapters.testing.graphs import CALLED, iri
from kg_adapters.testing.opening import GraphOpening
from kg_adapters.testing.search_contract import HOSTILE


async def called(graph: KGAdapter, text: str, limit: int = 20) -> list[Iri]:
    """Return the relations that a text may name."""
    return [each.relation for each in await graph.find_relations(text, limit=limit)]


class RelationContract(GraphOpening):
    """Relations by name: words and their spelling count, letters alone do not."""

    async def test_a_relation_is_found_by_label_alias_or_local_part_and_says_by_which(self) -> None:
        async with self.opened(CALLED) as graph:
            label, alias, local = [
                (await graph.find_relations(text, limit=1))[0] for text in ("place of birth", "Dad", "birth place")
            ]
        assert label == RelationCandidate(iri("birthPlace"), 1.0, "label", "place of birth")
        assert alias == RelationCandidate(iri("father"), 1.0, "alias", "dad")
        assert local == RelationCandidate(iri("birthPlace"), 1.0, "alias", "birthPlace")

    async def test_features_stand_in_relation_position_and_are_found_like_relations(self) -> None:
        async with self.opened(CALLED) as graph:
            (found,) = await graph.find_relations("Date of Birth", limit=1)
        assert found == RelationCandidate(iri("born"), 1.0, "label", "date of birth")

    async def test_of_the_same_name_labels_come_before_the_rest_and_the_more_used_first(self) -> None:
        async with self.opened(CALLED) as graph:
            found = await graph.find_relations("mayor", limit=2)
            alike = await graph.find_relations("capital", limit=2)
        assert [(each.relation, each.score, each.matched_by) for each in found] == [
            (iri("head"), 1.0, "label"),
            (iri("mayor"), 1.0, "alias"),
        ]
        assert [(each.relation, each.matched_by) for each in alike] == [
            (iri("seat"), "label"),
            (iri("capital"), "label"),
        ]

    async def test_names_that_share_words_follow_those_that_are_the_same(self) -> None:
        async with self.opened(CALLED) as graph:
            assert (await called(graph, "father"))[:2] == [iri("father"), iri("inLaw")]
            assert (await called(graph, "birth"))[:2] == [iri("birthPlace"), iri("born")]
            assert (await called(graph, "birth, place of"))[:1] == [iri("birthPlace")]

    @pytest.mark.parametrize("text", ["fahter", "Fatther", "father?"])
    async def test_a_slip_of_the_pen_does_not_hide_a_relation(self, text: str) -> None:
        async with self.opened(CALLED) as graph:
            assert (await called(graph, text))[0] == iri("father")

    @pytest.mark.parametrize(
        "text", ["heart", "art", "place mat rebirth", "of", "capitalism and", "zzqqxxvv", "", " \t"]
    )
    async def test_letters_that_are_no_word_find_nothing(self, text: str) -> None:
        async with self.opened(CALLED) as graph:
            assert await called(graph, text) == []

    async def test_no_more_than_the_limit_is_found_and_the_best_come_first(self) -> None:
        async with self.opened(CALLED) as graph:
            found = await graph.find_relations("place of birth", limit=20)
            assert list(await graph.find_relations("place of birth", limit=2)) == list(found[:2])
            assert list(await graph.find_relations("place of birth", limit=0)) == []
        scores = [each.score for each in found]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)
        assert len({each.relation for each in found}) == len(found) > 2

    async def test_a_relation_that_is_only_spoken_of_is_not_found(self) -> None:
        async with self.opened([*CALLED, 'unused label "grandfather"@en']) as graph:
            assert iri("unused") not in await called(graph, "grandfather")

    async def test_any_text_may_be_a_name_of_a_relation(self) -> None:
        async with self.opened(CALLED) as graph:
            for text in HOSTILE:
                assert len(await graph.find_relations(text, limit=3)) <= 3
            assert await called(graph, "father", 1) == [iri("father")]
