"""Which text becomes the label."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_adapters.labels import RDF_TYPE, WIKIDATA_TYPES, Vocabulary
from kg_adapters.terms import RDF_LANG_STRING, Iri, Literal

LABEL, PREF_LABEL = Vocabulary().labels[:2]


def said(value: str, language: str | None) -> Literal:
    return Literal(value) if language is None else Literal(value, RDF_LANG_STRING, language)


IN_ORDER = ["en", "en-GB", "mul", "mul-x", None, "de", "fr"]


@settings(deadline=None, derandomize=True)
@given(st.permutations(IN_ORDER))
def test_the_preferred_language_wins_whatever_the_order_of_the_texts(languages: list[str | None]) -> None:
    for place, preferred in enumerate(IN_ORDER):
        texts = [said("name", language) for language in languages if language not in IN_ORDER[:place]]
        assert Vocabulary().label({LABEL: texts}) == said("name", preferred)


def test_among_texts_of_one_language_the_alphabetically_first_wins() -> None:
    assert Vocabulary().label({LABEL: [said("b", "en"), said("a", "en"), said("c", "en")]}) == said("a", "en")


def test_the_first_relation_with_a_text_wins_over_a_better_language() -> None:
    texts = {PREF_LABEL: [said("Kobe", "en")], LABEL: [said("神戸", "ja")]}
    assert Vocabulary().label(texts) == said("神戸", "ja")
    assert Vocabulary().label({LABEL: [], PREF_LABEL: [said("Kobe", "en")]}) == said("Kobe", "en")


def test_an_entity_without_texts_has_no_label_and_no_description() -> None:
    other = {Iri("http://example.org/motto"): [said("x", "en")]}
    assert (Vocabulary().label({}), Vocabulary().label(other), Vocabulary().description(other)) == (None, None, None)


def test_descriptions_follow_the_same_preference() -> None:
    texts = {Vocabulary().descriptions[1]: [said("Stadt", "de"), said("city", "en")]}
    assert Vocabulary().description(texts) == said("city", "en")


@pytest.mark.parametrize("configured", ["pt-BR", "PT-br", "pt-br"])
@pytest.mark.parametrize("tag", ["pt-BR", "pt-br", "PT-BR"])
def test_language_tags_compare_without_case(configured: str, tag: str) -> None:
    vocabulary = Vocabulary(languages=(configured, "en"))
    assert vocabulary.label({LABEL: [said("Tokyo", "en"), said("Tóquio", tag)]}) == said("Tóquio", tag)


def test_a_region_counts_as_its_language_after_the_language_itself() -> None:
    vocabulary = Vocabulary(languages=("de", "en"))
    ranks = [vocabulary.rank(language) for language in ("de", "de-AT", "en", "en-US", None, "fr")]
    assert ranks == [0, 1, 2, 3, 4, 5]


def test_without_preferred_languages_an_untagged_text_wins() -> None:
    assert Vocabulary(languages=()).label({LABEL: [said("a", "en"), said("b", None)]}) == said("b", None)


def test_type_and_subclass_relations_are_not_walked() -> None:
    subclass = Iri("http://www.w3.org/2000/01/rdf-schema#subClassOf")
    assert Vocabulary().unwalked == {RDF_TYPE, subclass, *WIKIDATA_TYPES}
