"""Short ids: what results show can be passed back, and nothing is guessed."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kg_adapters.errors import InvalidRequest
from kg_adapters.prefixes import WIKIDATA, BareIds, Position, Prefixes, is_prefix
from kg_adapters.terms import BlankNode, Iri, Node
from kg_boundary.shown import shown

TOKYO = Iri("http://www.wikidata.org/entity/Q1490")
CAPITAL = Iri("http://www.wikidata.org/prop/direct/P36")
NAMES = Prefixes(
    namespaces={"ex": "http://example.org/", "": "http://empty.example/", "exa": "http://example.org/a/"},
    entities=BareIds("http://graph.example/node/", r"(?s:.+)"),
    relations=BareIds("http://graph.example/relation/", r"(?s:.+)"),
)


@pytest.mark.parametrize(
    ("text", "position", "node"),
    [
        ("Q1490", "entity", TOKYO),
        (" Q1490\n", "entity", TOKYO),
        ("wd:Q1490", "entity", TOKYO),
        ("wd:Q1490", "relation", TOKYO),
        ("<http://www.wikidata.org/entity/Q1490>", "entity", TOKYO),
        ("http://www.wikidata.org/entity/Q1490", "entity", TOKYO),
        ("P36", "relation", CAPITAL),
        ("wdt:P36", "entity", CAPITAL),
        ("urn:isbn:1", "entity", Iri("urn:isbn:1")),
        *((text, "entity", Iri(text)) for text in ("URN:x", "uRN:x", "h2:x", "a+b:x", "a.b:x", "a-b:x")),
        ("_:b0", "entity", BlankNode("b0")),
    ],
)
def test_an_id_is_read_in_each_of_its_forms(text: str, position: Position, node: Node) -> None:
    assert WIKIDATA.expand(text, position) == node


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("Tokyo", "entity"),
        ("P36", "entity"),
        ("Q1490", "relation"),
        ("q1490", "entity"),
        ("Q01", "entity"),
        ("Q1490 Tokyo", "entity"),
        ("", "entity"),
        (" ", "entity"),
        ("<", "entity"),
        ("<>", "entity"),
        ("<Tokyo>", "entity"),
        ("<urn:ab", "entity"),
        ("aurn:x>", "entity"),
        ("wd", "entity"),
        ("wd:a b", "entity"),
        ("_:", "entity"),
        ("_:b0", "relation"),
        ("Q1490\x00", "entity"),
        ("http://example.org/a b", "entity"),
        ("http://example.org/\ud800", "entity"),
        ("wd:\ud800", "entity"),
    ],
)
def test_what_is_no_id_is_refused_with_what_is_expected(text: str, position: Position) -> None:
    step = "Schema lists the relations" if position == "relation" else "Retrieve finds the id of a name"
    with pytest.raises(InvalidRequest) as caught:
        WIKIDATA.expand(text, position)
    assert str(caught.value) == (
        f"'{shown(text)}' is not an id. Expected a bare id as results show it, a prefixed name "
        f"(wd:…, wdt:…, p:…, ps:…), or a full IRI (<http://…>). {step}."
    )


def test_a_graph_without_prefixes_expects_a_full_iri() -> None:
    with pytest.raises(InvalidRequest) as caught:
        Prefixes().expand("Tokyo")
    assert str(caught.value) == (
        "'Tokyo' is not an id. Expected a full IRI (<http://…>). Retrieve finds the id of a name."
    )


def test_a_text_too_long_for_an_id_is_refused_without_repeating_it() -> None:
    with pytest.raises(InvalidRequest) as caught:
        WIKIDATA.expand("Q" * 1_000_000)
    assert str(caught.value) == "An id has at most 2,000 characters; this one has 1,000,000."


def test_an_id_of_the_greatest_length_is_one() -> None:
    assert WIKIDATA.expand("urn:".ljust(2_000, "x")) == Iri("urn:".ljust(2_000, "x"))


def test_blank_nodes_that_change_their_names_are_refused_and_nothing_else_is_called_one() -> None:
    renamed = Prefixes(blank_nodes=False)
    for text, position, is_blank in (("_:b0", "entity", True), ("_:b0", "relation", False), ("Tokyo", "entity", False)):
        with pytest.raises(InvalidRequest) as caught:
            renamed.expand(text, "entity" if position == "entity" else "relation")
        assert ("is a blank node, which this graph renames" in str(caught.value)) is is_blank


def test_a_refused_text_is_shortened_in_the_message() -> None:
    with pytest.raises(InvalidRequest) as caught:
        WIKIDATA.expand("x" * 1_999)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("prefixes", "node", "position", "text"),
    [
        (WIKIDATA, TOKYO, "entity", "Q1490"),
        (WIKIDATA, TOKYO, "relation", "wd:Q1490"),
        (WIKIDATA, CAPITAL, "relation", "P36"),
        (WIKIDATA, CAPITAL, "entity", "wdt:P36"),
        (WIKIDATA, Iri("http://www.wikidata.org/entity/"), "entity", "<http://www.wikidata.org/entity/>"),
        (WIKIDATA, Iri("urn:x:1"), "entity", "<urn:x:1>"),
        (WIKIDATA, BlankNode("b0"), "entity", "_:b0"),
        (NAMES, Iri("http://example.org/a/b"), "entity", "exa:b"),
        (NAMES, Iri("http://example.org/b"), "entity", "ex:b"),
        (NAMES, Iri("http://empty.example/b"), "entity", ":b"),
        (NAMES, Iri("http://graph.example/node/%E6%9D%B1"), "entity", "東"),
        (NAMES, Iri("http://graph.example/node/a%20b"), "entity", "a b"),
    ],
)
def test_the_shortest_id_is_shown(prefixes: Prefixes, node: Node, position: Position, text: str) -> None:
    assert prefixes.shorten(node, position) == text


@settings(deadline=None, derandomize=True)
@given(st.text(min_size=1, max_size=30))
@example("ex:tokyo")
@example(":b")
@example("_:b0")
@example("<http://example.org/>")
@example(" padded ")
@example("tokyo\u3000")
@example("100%")
@example("%41")
@example("a/b?c#d")
def test_a_bare_id_of_any_characters_survives_the_way_to_its_iri_and_back(text: str) -> None:
    assert NAMES.entities is not None
    iri = NAMES.entities.expand(text)
    if iri is None:
        assert any("\ud800" <= letter <= "\udfff" for letter in text)
    else:
        assert NAMES.entities.shorten(iri) == text
        assert NAMES.expand(NAMES.shorten(iri)) == iri


SPACES = ["http://example.org/", "http://example.org/a/", "http://graph.example/node/", "urn:", "http://empty.example/"]


@settings(deadline=None, derandomize=True)
@given(st.sampled_from(SPACES), st.text(max_size=20), st.sampled_from(["entity", "relation"]))
@example("http://example.org/", "tokyo\u3000", "entity")
@example("http://example.org/", "tokyo\u00a0", "relation")
@example("http://graph.example/node/", "%41", "entity")
def test_every_iri_is_read_back_from_what_is_shown(namespace: str, local: str, position: Position) -> None:
    try:
        iri = Iri(namespace + local)
    except InvalidRequest:
        return
    assert NAMES.expand(NAMES.shorten(iri, position), position) == iri


@settings(deadline=None, derandomize=True)
@given(st.text(), st.sampled_from(["entity", "relation"]))
@example("\ud800", "entity")
def test_any_text_is_an_id_or_refused(text: str, position: Position) -> None:
    try:
        node = NAMES.expand(text, position)
    except InvalidRequest:
        return
    assert NAMES.expand(NAMES.shorten(node, position), position) == node


@pytest.mark.parametrize(
    ("iri", "text"),
    [
        ("http://www.wikidata.xxx/entity/Q1490", "<http://www.wikidata.xxx/entity/Q1490>"),
        ("http://www.wikidata.org/entity/Statement1", "wd:Statement1"),
        ("http://www.wikidata.org/entity/Q1490x", "wd:Q1490x"),
    ],
)
def test_only_what_a_bare_id_stands_for_is_shown_as_one(iri: str, text: str) -> None:
    assert WIKIDATA.shorten(Iri(iri)) == text


@pytest.mark.parametrize("local", ["Ann%20(Q42", "%22Ann%22", "-a", "a%E2%80%AEb"])
def test_what_could_pass_for_something_else_is_no_bare_id(local: str) -> None:
    assert NAMES.shorten(Iri(f"http://graph.example/node/{local}")) == f"<http://graph.example/node/{local}>"


def test_a_graph_without_bare_ids_shows_prefixed_names() -> None:
    assert Prefixes({"ex": "http://example.org/"}).shorten(Iri("http://example.org/a")) == "ex:a"


def test_an_iri_whose_escapes_are_not_ours_is_not_shown_as_a_bare_id() -> None:
    assert NAMES.shorten(Iri("http://graph.example/node/%41")) == "<http://graph.example/node/%41>"
    assert NAMES.shorten(Iri("http://graph.example/node/%FF")) == "<http://graph.example/node/%FF>"


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("Bob (b)", "Bob%20(b)"),
        ('"x"@en', "%22x%22@en"),
        ("-capital", "-capital"),
        ("a|b", "a%7Cb"),
        ("a\\b", "a%5Cb"),
        ("a\nb", "a%0Ab"),
        ("a\u202eb", "a%E2%80%AEb"),
    ],
)
def test_a_bare_id_that_could_pass_for_something_else_gives_way_to_its_iri(text: str, local: str) -> None:
    node = NAMES.expand(text)
    assert NAMES.shorten(node) == f"<http://graph.example/node/{local}>"
    assert NAMES.expand(NAMES.shorten(node)) == node


def test_an_iri_with_an_unseen_mark_is_told_from_the_one_that_is_percent_encoded() -> None:
    unseen, encoded = Iri("http://example.org/a\u202eb"), Iri("http://example.org/a%E2%80%AEb")
    assert NAMES.shorten(unseen) == r"<http://example.org/a\u202eb>"
    assert NAMES.shorten(encoded) == "ex:a%E2%80%AEb"
    assert [NAMES.expand(NAMES.shorten(each)) for each in (unseen, encoded)] == [unseen, encoded]


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("ex", True),
        ("", True),
        ("Ex", True),
        ("a-", True),
        ("a1-b.c", True),
        ("-a", False),
        ("ｅx", False),  # noqa: RUF001 - a letter that only looks like one of ASCII
        ("a.", False),
        ("1a", False),
        ("a b", False),
    ],
)
def test_a_prefix_is_what_turtle_takes_for_one(text: str, claim: bool) -> None:
    assert is_prefix(text) is claim
