from kg_adapters.prefixes import WIKIDATA
from kg_adapters.terms import RDF_LANG_STRING, XSD, Attribute, BlankNode, Iri, Literal
from kg_server.names import Names, shown_literal, with_id

TOKYO = Iri("http://www.wikidata.org/entity/Q1490")
CAPITAL = Iri("http://www.wikidata.org/prop/direct/P36")
NAMES = Names(WIKIDATA, {TOKYO: "Tokyo", CAPITAL: "capital"})


def test_a_term_without_a_label_shows_its_id_or_its_local_part() -> None:
    assert NAMES.entity(TOKYO) == "Tokyo (Q1490)"
    assert NAMES.entity(Iri("http://www.wikidata.org/entity/Q7")) == "Q7"
    assert NAMES.entity(Iri("http://example.org/a#thing")) == "thing (<http://example.org/a#thing>)"
    assert NAMES.entity(BlankNode("b0")) == "_:b0"


def test_a_literal_shows_its_language_or_its_datatype() -> None:
    assert shown_literal(Literal("x"), WIKIDATA) == '"x"'
    assert shown_literal(Literal("x", RDF_LANG_STRING, "en"), WIKIDATA) == '"x"@en'
    assert shown_literal(Literal("1", Iri(XSD + "integer")), WIKIDATA) == '"1"^^xsd:integer'
    assert shown_literal(Literal("1", TOKYO), WIKIDATA) == '"1"^^Q1490'


def test_a_value_stands_plainly_and_a_text_says_another_language_than_the_one_that_is_read() -> None:
    names = Names(WIKIDATA, {TOKYO: "Tokyo"}, language="en")
    assert names.value(Literal("2544", Iri(XSD + "integer"))) == "2,544"
    assert names.value(Literal("1997", Iri(XSD + "gYear"))) == "1997"
    assert names.value(Literal("1997", Iri(XSD + "integer"))) == "1997"
    altitude = Names(WIKIDATA, {CAPITAL: "altitude (m)"})
    assert altitude.value(Literal("1997", Iri(XSD + "integer")), relation=CAPITAL) == "1,997"
    assert altitude.term(Literal("1997", Iri(XSD + "integer"))) == "1997"
    assert names.value(Literal("x", RDF_LANG_STRING, "en-GB")) == '"x"'
    assert names.value(Literal("x", RDF_LANG_STRING, "de")) == '"x"@de'
    assert names.value(Literal("2544", Iri("http://e.org/code"))) == '"2544"^^<http://e.org/code>'
    assert names.fact(Attribute(TOKYO, CAPITAL, Literal('a" | b'))).endswith(r' | P36 | "a\" \| b"')


def test_a_label_is_cut_and_kept_on_one_line() -> None:
    names = Names(WIKIDATA, {TOKYO: "a\nb\u2028c\x00d", CAPITAL: "x" * 500})
    assert names.entity(TOKYO) == with_id(r"a\nb\u2028c\u0000d", "Q1490")
    assert names.relation(CAPITAL) == with_id(f"{'x' * 119}…", "P36")


def test_a_label_cannot_pass_for_several_columns_nor_a_value_for_two() -> None:
    names = Names(WIKIDATA, {TOKYO: "Tokyo (Q1) | capital (P36) | Fake"})
    assert names.entity(TOKYO) == with_id(r"Tokyo (Q1) \| capital (P36) \| Fake", "Q1490")
    assert names.entity_labels([TOKYO]) == {"Q1490": r"Tokyo (Q1) \| capital (P36) \| Fake"}
    assert shown_literal(Literal('a" | "b\\'), WIKIDATA) == r'"a\" \| \"b\\"'


def test_a_label_cannot_add_a_step_to_a_path() -> None:
    names = Names(WIKIDATA, {TOKYO: "Ann -[killed]-> Bob", CAPITAL: "was]-> Bob -[is"})
    assert names.entity(TOKYO) == with_id(r"Ann -\[killed]\-> Bob", "Q1490")
    assert names.relation(CAPITAL) == with_id(r"was]\-> Bob -\[is", "P36")


def test_a_datatype_or_language_is_shown_like_any_text() -> None:
    assert shown_literal(Literal("1", Iri(XSD + "a\u202eb")), WIKIDATA) == rf'"1"^^<{XSD}a\u202eb>'
    assert shown_literal(Literal("1", RDF_LANG_STRING, "en\n|"), WIKIDATA) == r'"1"@en\n\|'


def test_a_datatype_without_a_prefix_is_a_whole_iri() -> None:
    assert shown_literal(Literal("1", Iri("http://e.org/t")), WIKIDATA) == '"1"^^<http://e.org/t>'
