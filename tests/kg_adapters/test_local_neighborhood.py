"""Neighbourhoods and names of the local index."""

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.index.neighborhood import START, Edge, Neighborhood, count_neighbors
from kg_adapters.models import Candidate, Direction
from kg_adapters.name_index import Name, NameIndex
from kg_adapters.terms import Node, Triple, node_from_key
from kg_adapters.testing import edges, in_order, iri
from small_graphs import index_of

Statements = list[tuple[int, int, int]]
STATEMENTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=60)
DIRECTIONS: tuple[Direction, ...] = ("out", "in", "both")


def said(statements: Statements) -> list[str]:
    return [f"n{head} r{relation} n{tail}" for head, relation, tail in statements]


def relation_ids(index: GraphIndex, names: Sequence[str]) -> set[int]:
    found = (index.relations.find(iri(name).value) for name in names)
    return {number for number in found if number is not None}


def triples_of(index: GraphIndex, node: int, found: Sequence[Edge]) -> tuple[Triple, ...]:
    own = node_from_key(index.nodes[node])
    triples: list[Triple] = []
    for group, neighbor in found:
        other, relation = node_from_key(index.nodes[neighbor]), index.relations[group.relation]
        head, tail = (own, other) if group.outgoing else (other, own)
        triples.append(Triple(head, iri(relation.removeprefix("http://example.org/")), tail))
    return tuple(triples)


@given(STATEMENTS, st.sampled_from(DIRECTIONS), st.one_of(st.none(), st.integers(1, 4)), st.integers(1, 7))
def test_pages_join_to_what_a_plain_reading_lists(
    statements: Statements, direction: Direction, limit_per_relation: int | None, limit: int
) -> None:
    index, everything = index_of(said(statements)), edges(*said(statements))
    for node in range(len(index.nodes)):
        around = Neighborhood(index, node, direction)
        shown, position = around.page(limit, limit_per_relation=limit_per_relation)
        while position is not None:
            assert around.holds(position, limit_per_relation)
            more, position = around.page(limit, limit_per_relation=limit_per_relation, position=position)
            shown += more
        own = node_from_key(index.nodes[node])
        expected = in_order(everything, own, direction, limit_per_relation=limit_per_relation)
        assert triples_of(index, node, shown) == expected
        assert around.total == len(in_order(everything, own, direction))
        assert around.drops(limit_per_relation) == (len(expected) < around.total)


@given(STATEMENTS, st.sampled_from(DIRECTIONS), st.one_of(st.none(), st.sets(st.sampled_from(["r0", "r1", "r9"]))))
def test_distinct_neighbors_are_counted_exactly(
    statements: Statements, direction: Direction, relations: set[str] | None
) -> None:
    index, everything = index_of(said(statements)), edges(*said(statements))
    wanted = None if relations is None else [iri(name) for name in relations]
    ids = None if relations is None else relation_ids(index, sorted(relations))
    for node in range(len(index.nodes)):
        own = node_from_key(index.nodes[node])
        listed = in_order(everything, own, direction, wanted)
        others = {end for triple in listed for end in (triple.head, triple.tail)} - {own}
        assert count_neighbors(index, node, direction, ids) == len(others)


@pytest.mark.parametrize(
    ("position", "limit_per_relation", "held"),
    [
        (START, None, True),
        ((0, 1), None, True),
        ((1, 1), None, True),
        ((1, 1), 1, False),
        ((1, 0), None, False),
        ((2, 1), None, False),
        ((0, 2), None, False),
    ],
)
def test_a_position_holds_an_edge_or_not(position: tuple[int, int], limit_per_relation: int | None, held: bool) -> None:
    index = index_of(["a likes b", "a knows b", "a likes c"])
    node = index.nodes.find(iri("a").value)
    assert node is not None
    assert Neighborhood(index, node, "both").holds(position, limit_per_relation) is held


NAMES = [
    Name(iri("tokyo"), "Tokyo", alias=False),
    Name(iri("tokyo"), "Edo", alias=True),
    Name(iri("tower"), "Tokyo Tower", alias=False),
    Name(iri("edo"), "Edo", alias=False),
    Name(iri("quebec"), "Québec City", alias=False),
    Name(iri("goethe"), "Johann Wolfgang von Goethe", alias=False),
    Name(iri("odd"), "?!", alias=False),
    Name(iri("nothing"), " \x00", alias=False),
]
INDEX = NameIndex(NAMES)


def accept_all(_: Node) -> bool:
    return True


def found(candidates: Iterable[Candidate]) -> list[Node]:
    return [candidate.entity for candidate in candidates]


@pytest.mark.parametrize("text", ["Tokyo", "tokyo", " TOKYO "])
def test_an_exact_name_has_the_full_score_and_comes_first(text: str) -> None:
    assert INDEX.search(text, 1, accept_all) == [Candidate(iri("tokyo"), 1.0, "label", "Tokyo")]


def test_a_label_comes_before_the_same_alias() -> None:
    assert INDEX.search("Edo", 2, accept_all) == [
        Candidate(iri("edo"), 1.0, "label", "Edo"),
        Candidate(iri("tokyo"), 1.0, "alias", "Edo"),
    ]


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("quebec city", "quebec"),
        ("Tokio Tower", "tower"),
        ("goethe johann wolfgang von", "goethe"),
        ("Johan Wolfgang von Göthe", "goethe"),
        ("Wolfgang Goethe", "goethe"),
        ("Johann W", "goethe"),
        ("Toky", "tokyo"),
        ("?!", "odd"),
    ],
)
def test_accents_slips_of_the_pen_order_missing_words_and_beginnings_are_forgiven(text: str, entity: str) -> None:
    assert found(INDEX.search(text, 1, accept_all)) == [iri(entity)]


def test_what_is_merely_alike_says_so_and_stays_below_the_exact_score() -> None:
    candidate = INDEX.search("Tokyoo", 1, accept_all)[0]
    assert (candidate.entity, candidate.matched_by, candidate.matched_text) == (iri("tokyo"), "text", "Tokyo")
    assert 0.55 < candidate.score < 1


def test_only_accepted_entities_are_found_and_each_once() -> None:
    candidates = INDEX.search("Tokyo", 5, lambda node: node != iri("tower"))
    assert found(candidates) == [iri("tokyo")]


@pytest.mark.parametrize("text", ["", "   ", "\x00", "zzqqxx", "\ud800"])
def test_what_names_nothing_finds_nothing(text: str) -> None:
    assert INDEX.search(text, 5, accept_all) == []


def test_an_index_without_names_finds_nothing() -> None:
    assert NameIndex([]).search("Tokyo", 5, accept_all) == []


@settings(deadline=None, derandomize=True)
@given(st.text(), st.integers(0, 3))
@example("\ud800\udfff", 3)
@example("Tokyo " * 100_000, 3)
def test_any_text_is_only_text(text: str, limit: int) -> None:
    candidates = INDEX.search(text, limit, accept_all)
    assert len(candidates) == len(set(found(candidates))) <= limit
    assert [c.score for c in candidates] == sorted((c.score for c in candidates), reverse=True)
