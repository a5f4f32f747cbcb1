"""Requests refuse what no graph could answer."""

import pytest

from kg_adapters.errors import InvalidRequest
from kg_adapters.requests import FeatureRequest, NeighborRequest, SurroundingsRequest
from kg_adapters.terms import BlankNode, Iri

TOKYO, PARIS = Iri("http://example.org/tokyo"), Iri("http://example.org/paris")


@pytest.mark.parametrize(("limit", "limit_per_relation"), [(0, None), (-1, 5), (5, 0)])
def test_neighbors_are_asked_for_with_limits_of_at_least_one(limit: int, limit_per_relation: int | None) -> None:
    with pytest.raises(InvalidRequest, match="at least 1"):
        NeighborRequest((TOKYO,), limit=limit, limit_per_relation=limit_per_relation)


def test_a_cursor_goes_with_one_entity_however_often_it_is_named() -> None:
    assert NeighborRequest((TOKYO, TOKYO), cursor="1").cursor == "1"
    for several in ((), (TOKYO, PARIS), (TOKYO, BlankNode("b0"))):
        with pytest.raises(InvalidRequest, match="one entity"):
            NeighborRequest(several, cursor="1")


def test_features_and_surroundings_are_asked_for_with_limits_of_at_least_one() -> None:
    with pytest.raises(InvalidRequest, match="it is 0"):
        FeatureRequest((TOKYO,), limit=0)
    for per_relation, per_entity in ((0, 1), (1, 0)):
        with pytest.raises(InvalidRequest, match="it is 0"):
            SurroundingsRequest((TOKYO,), per_relation=per_relation, per_entity=per_entity)
