"""The shipped contract notices what it is there to notice."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace

import pytest
import rdflib

from kg_adapters.models import (
    Candidate,
    Count,
    Degree,
    Description,
    Direction,
    FeaturePage,
    GraphSchema,
    NeighborPage,
    RelationCandidate,
)
from kg_adapters.profile import GraphProfile
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import Fact, Iri, Literal, Node
from kg_adapters.testing import KGAdapterContract

EMPTY = NeighborPage((), Count(0), truncated=False)


class Neighbors(RdflibAdapter):
    """Hands every page on; the faults below change one thing each."""

    def change(self, page: NeighborPage) -> NeighborPage:
        return page

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        found = await super().neighbors(request)
        return {entity: self.change(page) for entity, page in found.items()}


class ByRelation(Neighbors):
    """Lists one relation after the other."""

    def change(self, page: NeighborPage) -> NeighborPage:
        return replace(page, facts=tuple(sorted(page.triples, key=lambda triple: triple.relation)))


class CountsThePage(Neighbors):
    """Takes the size of the page for the total."""

    def change(self, page: NeighborPage) -> NeighborPage:
        return replace(page, total=Count(len(page.triples)))


class ForgetsTheRest(Neighbors):
    """Gives no cursor."""

    def change(self, page: NeighborPage) -> NeighborPage:
        return replace(page, cursor=None)


class DropsTheLast(Neighbors):
    """Loses a triple at the end of every page."""

    def change(self, page: NeighborPage) -> NeighborPage:
        return replace(page, facts=page.triples[:-1])


class NeverTruncated(Neighbors):
    """Claims that every page is whole."""

    def change(self, page: NeighborPage) -> NeighborPage:
        return replace(page, truncated=False)


class KnowsEveryone(RdflibAdapter):
    """Has an empty page for entities that do not exist, and takes any cursor."""

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        found = await super().neighbors(replace(request, cursor=None))
        return {entity: found.get(entity, EMPTY) for entity in request.entities}


class CountsItself(RdflibAdapter):
    """Counts triples instead of distinct neighbours."""

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        found = await super().degrees(entities, direction=direction, relations=relations)
        return {
            entity: replace(degree, neighbors=Count(sum(count.count.value for count in degree.relations)))
            for entity, degree in found.items()
        }


class Believes(RdflibAdapter):
    """Takes every triple between entities that it knows for one of its own."""

    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:
        known = await self.describe(
            [end for fact in facts for end in (fact.head, fact.tail) if not isinstance(end, Literal)]
        )
        return frozenset(fact for fact in facts if fact.head in known and fact.tail in known)


class AnswersTheFirst(RdflibAdapter):
    """Forgets that features are asked of several entities and over several relations."""

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        relations = None if request.relations is None else frozenset(sorted(request.relations)[:1])
        return await super().features(replace(request, entities=request.entities[:1], relations=relations))


class Careless(RdflibAdapter):
    """Is wrong about texts, search and schema."""

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        found = await super().describe(terms)
        return {term: replace(described, types=described.types[::-1]) for term, described in found.items()}

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        found = await super().features(request)
        return {node: replace(page, total=Count(len(page.features))) for node, page in found.items()}

    async def search(
        self,
        text: str,
        *,
        limit: int,
        type: Node | None = None,
    ) -> Sequence[Candidate]:
        return await super().search(text, limit=limit + 1)

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        relations = (await super().schema()).relations
        alike = [each.iri for each in relations if set(text) & set(each.iri.local_part)]
        return [RelationCandidate(relation, 0.9, "text", relation.local_part) for relation in alike[:limit]]

    async def schema(self) -> GraphSchema:
        found = await super().schema()
        return replace(found, relations=found.relations[::-1])

    async def profile(self) -> GraphProfile:
        found = await super().profile()
        return replace(found, classes=tuple(replace(each, instances=each.direct) for each in found.classes))


FAULTS: list[tuple[type[RdflibAdapter], str]] = [
    (ByRelation, "test_both_directions_alternate_with_outgoing_first"),
    (ByRelation, "test_every_entity_of_a_tangle_has_the_neighbors_that_a_plain_reading_finds"),
    (CountsThePage, "test_a_hub_is_cut_to_the_limit_and_its_rare_relation_is_seen_first"),
    (CountsThePage, "test_pages_are_truncated_up_to_the_last_and_agree_on_the_total"),
    (ForgetsTheRest, "test_pages_of_any_size_join_to_the_same_sequence"),
    (ForgetsTheRest, "test_a_hub_is_walked_to_its_end"),
    (DropsTheLast, "test_pages_of_any_size_join_to_the_same_sequence"),
    (NeverTruncated, "test_pages_are_truncated_up_to_the_last_and_agree_on_the_total"),
    (NeverTruncated, "test_a_limit_per_relation_samples_each_group_and_the_rest_still_counts"),
    (NeverTruncated, "test_sampled_groups_are_paged_and_stay_truncated_to_the_end"),
    (KnowsEveryone, "test_an_entity_that_the_graph_does_not_mention_is_left_out"),
    (KnowsEveryone, "test_a_text_that_is_no_cursor_is_refused"),
    (KnowsEveryone, "test_the_cursor_of_another_question_is_refused"),
    (CountsItself, "test_a_neighbor_over_several_relations_counts_once_in_all_and_once_for_each"),
    (CountsItself, "test_an_entity_is_not_among_its_own_neighbors_in_all"),
    (Believes, "test_of_several_triples_those_are_returned_that_are_there"),
    (Believes, "test_every_triple_of_a_tangle_is_there_and_no_other"),
    (AnswersTheFirst, "test_features_of_many_entities_come_in_one_answer_as_each_would_alone"),
    (AnswersTheFirst, "test_several_features_are_asked_for_at_once"),
    (Careless, "test_the_profile_lists_the_largest_class_first"),
    (Careless, "test_a_description_has_label_text_sorted_types_and_roles"),
    (Careless, "test_a_limit_cuts_the_features_and_the_total_says_so"),
    (Careless, "test_a_type_leaves_only_its_instances"),
    (Careless, "test_no_more_than_the_limit_is_found_and_the_best_come_first"),
    (Careless, "test_a_relation_is_found_by_label_alias_or_local_part_and_says_by_which"),
    (Careless, "test_features_stand_in_relation_position_and_are_found_like_relations"),
    (Careless, "test_of_the_same_name_labels_come_before_the_rest_and_the_more_used_first"),
    (Careless, "test_names_that_share_words_follow_those_that_are_the_same"),
    (Careless, "test_the_schema_counts_classes_relations_and_features"),
]


def contract_over(adapter: type[RdflibAdapter]) -> KGAdapterContract:
    class Contract(KGAdapterContract):
        async def open_graph(self, triples: str) -> KGAdapter:
            return adapter(rdflib.Graph().parse(data=triples, format="nt"))

    return Contract()


@pytest.mark.parametrize(("adapter", "promise"), FAULTS)
async def test_a_faulty_adapter_fails_and_a_sound_one_passes(adapter: type[RdflibAdapter], promise: str) -> None:
    sound: Callable[[], Awaitable[None]] = getattr(contract_over(RdflibAdapter), promise)
    faulty: Callable[[], Awaitable[None]] = getattr(contract_over(adapter), promise)
    await sound()
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await faulty()


async def test_a_failure_over_many_triples_names_a_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "1")  # pytest then leaves nothing out of what it shows
    with pytest.raises(AssertionError) as failure:
        await contract_over(Believes).test_every_triple_of_a_tangle_is_there_and_no_other()
    assert "632 surplus: " in str(failure.value)
    assert len(str(failure.value)) < 2_000
    with pytest.raises(AssertionError, match="missing: "):
        await contract_over(DropsTheLast).test_a_hub_is_walked_to_its_end()


async def test_an_adapter_that_was_not_given_is_asked_for() -> None:
    with pytest.raises(NotImplementedError, match="override open_graph"):
        await KGAdapterContract().open_graph("")
