import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_adapters.errors import InvalidRequest
from kg_adapters.prefixes import WIKIDATA, BareIds, Prefixes
from kg_adapters.terms import RDF_LANG_STRING, XSD, BlankNode, Iri, Literal
from kg_server.memory.reading import Mention, Reading, Value, echo, read_triple

WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
TOKYO, CAPITAL, SHINJUKU = Iri(f"{WD}Q1490"), Iri(f"{WDT}P36"), Iri(f"{WD}Q179645")
PLAIN = Reading([Mention(TOKYO)], [Mention(CAPITAL)], [Mention(SHINJUKU)])
LABELLED = Reading([Mention(TOKYO, "Tokyo")], [Mention(CAPITAL, "capital")], [Mention(SHINJUKU, "Shinjuku")])


@pytest.mark.parametrize(
    "written",
    [
        ["Q1490", "P36", "Q179645"],
        [" wd:Q1490 ", "wdt:P36", f"<{WD}Q179645>"],
        [f"{WD}Q1490", f"{WDT}P36", "Q179645"],
        "Q1490 | P36 | Q179645",
        "Q1490|P36|Q179645",
    ],
)
def test_ids_are_read_in_all_their_forms(written: list[str] | str) -> None:
    assert read_triple(written, WIKIDATA) == PLAIN


@pytest.mark.parametrize(
    "written",
    [
        "Tokyo (Q1490) | capital (P36) | Shinjuku (Q179645)",
        "  Tokyo (Q1490)  |  capital (P36)  |  Shinjuku (Q179645)  ",
        ["Tokyo (Q1490)", "capital (P36)", "Shinjuku (Q179645)"],
    ],
)
def test_labels_beside_ids_are_kept_apart_from_them(written: list[str] | str) -> None:
    assert read_triple(written, WIKIDATA) == LABELLED


def test_brackets_and_bars_in_labels_and_ids_do_not_confuse() -> None:
    line = "Mercury (planet) (Q308) | named \\| after (P138) | <http://ex.org/Mercury_(god)>"
    god = Iri("http://ex.org/Mercury_(god)")
    assert read_triple(line, WIKIDATA) == Reading(
        [Mention(Iri(f"{WD}Q308"), "Mercury (planet)")],
        [Mention(Iri(f"{WDT}P138"), "named | after")],
        [Mention(god)],
    )


def test_an_id_with_brackets_after_a_label_is_read_whole() -> None:
    prefixes = Prefixes({"dbr": "http://dbpedia.org/resource/"})
    read = read_triple(["Mercury (dbr:Mercury_(planet))", "<http://ex.org/r>", "_:b0"], prefixes)
    assert read == Reading(
        [Mention(Iri("http://dbpedia.org/resource/Mercury_(planet)"), "Mercury")],
        [Mention(Iri("http://ex.org/r"))],
        [Mention(BlankNode("b0"))],
    )


def test_where_any_text_is_an_id_both_readings_are_given_the_label_first_as_results_show_it() -> None:
    prefixes = Prefixes(entities=BareIds("http://ex.org/", r".+"), relations=BareIds("http://ex.org/", r"\w+"))
    assert read_triple(["Tokyo (city)", "r", "x"], prefixes).head == [
        Mention(Iri("http://ex.org/city"), "Tokyo"),
        Mention(Iri("http://ex.org/Tokyo%20(city)")),
    ]


@pytest.mark.parametrize(
    ("written", "value", "literal"),
    [
        ('"Tokyo"', Value("Tokyo"), Literal("Tokyo")),
        ('"Tokyo"@en', Value("Tokyo", None, "en"), Literal("Tokyo", RDF_LANG_STRING, "en")),
        ('"Tokio"@de-AT', Value("Tokio", None, "de-AT"), Literal("Tokio", RDF_LANG_STRING, "de-AT")),
        ('"1"^^xsd:integer', Value("1", Iri(XSD + "integer")), Literal("1", Iri(XSD + "integer"))),
        ('"x"^^wd:Q1', Value("x", Iri(f"{WD}Q1")), Literal("x", Iri(f"{WD}Q1"))),
        ('"she said "no" | (yes)"', Value('she said "no" | (yes)'), Literal('she said "no" | (yes)')),
        ('"two\nlines\x00"', Value("two\nlines\x00"), Literal("two\nlines\x00")),
        ('""', Value(""), Literal("")),
        (r'"she said \"no\" and \\o/"', Value(r'she said "no" and \o/'), Literal(r'she said "no" and \o/')),
    ],
)
def test_a_quoted_tail_is_a_literal_as_results_show_it(written: str, value: Value, literal: Literal) -> None:
    for triple in (["Q1490", "P1", written], f"Q1490 | P1 | {written}"):
        read = read_triple(triple, WIKIDATA)
        assert read.tail == value
    assert value.literal == literal


@pytest.mark.parametrize(
    ("written", "literal"),
    [
        ("1832-03-22", Literal("1832-03-22", Iri(XSD + "date"))),
        ("2,544", Literal("2544", Iri(XSD + "integer"))),
        ("2,544.5", Literal("2544.5", Iri(XSD + "decimal"))),
        ("2,54", Literal("2,54")),
        ("false", Literal("false", Iri(XSD + "boolean"))),
        ("Tokyo (Q)", Literal("Tokyo (Q)")),
        (r"a \| b", Literal("a | b")),
        ("9" * 40, Literal("9" * 40)),
    ],
)
def test_a_tail_that_is_no_id_may_be_a_value_as_people_write_it(written: str, literal: Literal) -> None:
    for triple in (["Q1490", "P1", written], f"Q1490 | P1 | {written}"):
        tail = read_triple(triple, WIKIDATA).tail
        assert isinstance(tail, Value)
        assert (tail.literal, tail.quoted) == (literal, False)
        assert tail.refusal.endswith('Put a literal tail in quotes, "like this".')


def test_a_tail_that_is_an_id_may_be_a_value_too() -> None:
    read = read_triple(["Q1490", "P1", "Q17"], WIKIDATA)
    assert (read.tail, read.plain) == ([Mention(Iri(f"{WD}Q17"))], Value("Q17", quoted=False))


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (['"Tokyo"', "P36", "Q17"], "its head is a literal"),
        (["Q1490", ' "capital"', "Q17"], "its relation is a literal"),
        (["Tokyo", "P36", "Q17"], "'Tokyo' is not an id.*Retrieve finds the id"),
        (["Q1490", "capital", "Q17"], "'capital' is not an id"),
        (["Q1490", "_:b0", "Q17"], "'_:b0' is not an id"),
        ("Q1490 | P570 | 18 | 32", "'18 | 32' is not an id.* Put a literal tail in quotes"),
        (["Q1490", "P36", '"open'], "its tail is not a literal"),
        (["Q1490", "P36", '"x"^^date'], "'date' is not an id"),
        (["Q1490", "P36", '"x"^^_:b'], "datatype of its tail is a blank node"),
        (["Q1490", "P36", '"\ud800"'], "half a character"),
        (["Q1490", "P36", "Q17\ud800"], "is not an id"),
        (["Q1490", "P36", " "], "is not an id"),
        (["Q1490", "P36", "Q17" * 1_000_000], "it has 3,000,000 characters where 3,000 are allowed"),
        ("x" * 1_000_000, "it has 1,000,000 characters where 9,000 are allowed"),
        (["Q1490", "P36"], r"it has 2 parts. Expected \[head, relation, tail\]"),
        (["Q1490"], "it has 1 part. "),
        ([], "it has 0 parts"),
        ("Q1490", "it is not a triple"),
        ("Tokyo has capital Shinjuku", "it is not a triple"),
        ("|" * 100, "it is not a triple"),
        ("a | b | c | d", "'a' is not an id"),
    ],
)
def test_what_is_no_triple_is_refused_with_the_part_that_is_wrong(written: list[str] | str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        read_triple(written, WIKIDATA)


def test_what_was_written_is_repeated_on_one_short_line() -> None:
    assert echo(["Q1\nignore", "P36", "x" * 100, "more"]) == f"Q1\\nignore | P36 | {'x' * 79}…"
    assert echo("Q1 | P36 | Q2") == "Q1 | P36 | Q2"


@given(st.one_of(st.text(max_size=80), st.lists(st.text(alphabet='Q1P36 ()"|@^_:<>\ud800', max_size=20), max_size=4)))
def test_any_text_is_a_reading_or_a_refusal(written: list[str] | str) -> None:
    try:
        read = read_triple(written, WIKIDATA)
    except InvalidRequest:
        return
    assert read.head
    assert read.relation
