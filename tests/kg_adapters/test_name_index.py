"""Search by name over names in memory."""

from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kg_adapters.models import Candidate
from kg_adapters.name_index import Name, NameIndex
from kg_adapters.terms import Node
from kg_adapters.testing import iri

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
