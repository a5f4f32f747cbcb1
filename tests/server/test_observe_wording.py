import pytest

from kg_adapters.terms import BlankNode, Iri
from kg_server.observation.scoring import edge_text, question_about, spoken


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


def test_an_edge_says_from_which_end_it_is_seen() -> None:
    assert edge_text("capital", "Shinjuku", inverse=False) == "capital Shinjuku"
    assert edge_text("capital", "Japan", inverse=True) == "inverse of capital Japan"


def test_what_has_no_label_is_said_by_its_local_part() -> None:
    assert spoken(Iri("http://dbpedia.org/resource/S%C3%A3o_Paulo"), None) == "São Paulo"
    assert spoken(Iri("http://example.org/x"), "a name") == "a name"
    assert spoken(BlankNode("b0"), None) == ""
