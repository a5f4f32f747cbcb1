"""Terms: what is one, and what only looks like one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_adapters.errors import InvalidRequest
from kg_adapters.terms import RDF_LANG_STRING, BlankNode, Iri, Literal, Node, node_from_key, node_key

INVALID_IRIS = [
    "",
    "Tokyo",
    "http",
    ":",
    "//example.org/a",
    "1http://example.org/a",
    "http://example.org/a b",
    "http://example.org/a\n",
    "http://example.org/<a>",
    'http://example.org/"a"',
    "http://example.org/{a}",
    "http://example.org/a|b",
    "http://example.org/a^b",
    "http://example.org/`a`",
    "http://example.org/a\\b",
    "http://example.org/\x00",
    "http://example.org/\x7f",
    "http://example.org/\ud800",
    " http://example.org/a",
]
VALID_IRIS = [
    "http://example.org/",
    "HTTP://example.org/a?b=c&d#e",
    "urn:isbn:0451450523",
    "mailto:someone@example.org",
    "http://example.org/東京/🗼",
    "http://example.org/100%25(a)'b'*",
    "tag:",
]
BLANK_LABELS = ["b0", "0", "_a", "a.b", "a-b", "é", "a..b"]
INVALID_LABELS = ["", ".a", "a.", "_.", "-a", "a b", "a\n", "a:b", "a/b", "<a>", "\ud800"]

LETTERS = st.characters(exclude_categories=["Cs", "Cc", "Zs"], exclude_characters='<>"{}|^`\\')
iris = st.text(LETTERS).map(lambda text: Iri(f"http://example.org/{text}"))


@pytest.mark.parametrize("text", INVALID_IRIS)
def test_what_is_no_absolute_iri_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not an absolute IRI"):
        Iri(text)


@pytest.mark.parametrize("text", VALID_IRIS)
def test_an_absolute_iri_is_kept_as_it_is(text: str) -> None:
    assert (Iri(text).value, str(Iri(text))) == (text, text)


def test_a_long_refused_text_is_shortened_in_the_message() -> None:
    with pytest.raises(InvalidRequest) as caught:
        Iri("x" * 1_000_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("label", BLANK_LABELS)
def test_a_blank_node_is_written_as_in_n_triples(label: str) -> None:
    node = BlankNode(label)
    assert (str(node), node.local_part, node_from_key(node_key(node))) == (f"_:{label}", f"_:{label}", node)


@pytest.mark.parametrize("label", INVALID_LABELS)
def test_what_is_no_blank_node_label_is_refused(label: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a blank node label"):
        BlankNode(label)


@pytest.mark.parametrize(
    ("iri", "local_part"),
    [
        ("http://example.org/a/b", "b"),
        ("http://example.org/a#b", "b"),
        ("urn:isbn:1", "1"),
        ("http://example.org/a/", "a"),
        ("http://example.org", "example.org"),
        ("tag:", "tag"),
    ],
)
def test_the_local_part_is_what_people_would_read_last(iri: str, local_part: str) -> None:
    assert Iri(iri).local_part == local_part


@settings(deadline=None, derandomize=True)
@given(st.one_of(iris, st.sampled_from(BLANK_LABELS).map(BlankNode)))
def test_every_node_is_read_back_from_its_key(node: Node) -> None:
    assert node_from_key(node_key(node)) == node


@settings(deadline=None, derandomize=True)
@given(st.text())
def test_any_text_is_an_iri_or_refused_and_an_iri_can_be_encoded(text: str) -> None:
    try:
        iri = Iri(f"x:{text}")
    except InvalidRequest:
        return
    assert iri.value.encode().decode() == f"x:{text}"
    assert iri.local_part


def test_no_iri_sorts_among_blank_nodes() -> None:
    nodes: list[Node] = [Iri("a:x"), BlankNode("z"), Iri("Z:x"), BlankNode("a")]
    assert sorted(map(node_key, nodes)) == ["Z:x", "_:a", "_:z", "a:x"]


def test_a_literal_shows_its_text_and_is_told_apart_by_datatype_and_language() -> None:
    plain, other = Literal("7"), Literal("7", Iri("http://www.w3.org/2001/XMLSchema#integer"))
    assert (str(plain), plain == other, len({plain, other, Literal("7")})) == ("7", False, 2)


def test_a_literal_keeps_its_language_tag_as_written_and_equals_one_in_another_case() -> None:
    british, same = (Literal("colour", RDF_LANG_STRING, tag) for tag in ("en-GB", "EN-gb"))
    assert british == same
    assert hash(british) == hash(same)
    assert (british.language, same.language) == ("en-GB", "EN-gb")
    assert british != Literal("colour", RDF_LANG_STRING, "en")
    assert british != Literal("Colour", RDF_LANG_STRING, "en-GB")
    assert british != "colour"
