"""Values as people write them, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_adapters.terms import RDF_LANG_STRING, XSD, Iri, Literal
from kg_server.answers.results import fitting, token_count
from kg_server.answers.values import may_mean, plain_value

WKT = Iri("http://www.opengis.net/ont/geosparql#wktLiteral")


def typed(text: str, kind: str) -> Literal:
    return Literal(text, Iri(XSD + kind))


@pytest.mark.parametrize(
    ("literal", "plain"),
    [
        (typed("1997-04-05", "date"), "1997-04-05"),
        (typed("-0044-03-15", "date"), "-0044-03-15"),
        (typed("1997-04-05T00:00:00Z", "dateTime"), "1997-04-05"),
        (typed("1997-04-05T00:00:00", "dateTime"), "1997-04-05"),
        (typed("1997-04-05T08:30:00Z", "dateTime"), "1997-04-05T08:30:00Z"),
        (typed("1997-04-05T00:00:00+02:00", "dateTime"), "1997-04-05T00:00:00+02:00"),
        (typed("1997", "gYear"), "1997"),
        (typed("1997-04", "gYearMonth"), "1997-04"),
        (typed("08:30:00", "time"), "08:30:00"),
        (typed("2544", "integer"), "2,544"),
        (typed("1927", "integer"), "1927"),
        (typed("1927.5", "decimal"), "1,927.5"),
        (typed("2101", "integer"), "2,101"),
        (Literal("2544", Iri("http://dbpedia.org/datatype/kilometre")), "2,544 kilometre"),
        (Literal("long", Iri("http://dbpedia.org/datatype/kilometre")), None),
        (Literal("Point(13.405 52.52)", WKT), "52.52, 13.405"),
        (Literal("POINT (-0.1 -51)", WKT), "-51, -0.1"),
        (Literal("<http://www.wikidata.org/entity/Q405> Point(1 2)", WKT), None),
        (typed("+13960236", "decimal"), "13,960,236"),
        (typed("-12.50", "decimal"), "-12.50"),
        (typed("1.5E3", "double"), "1,500"),
        (typed("12", "nonNegativeInteger"), "12"),
        (typed("1", "boolean"), "true"),
        (typed("false", "boolean"), "false"),
        (typed("perhaps", "boolean"), None),
        (typed("soon", "date"), None),
        (typed("many", "integer"), None),
        (typed("NaN", "double"), None),
        (typed("1E999999", "double"), None),
        (typed("4186.799999999999665056000000000028", "decimal"), "4,186.799999999999665056000000000028"),
        (typed("9" * 251, "integer"), None),
        (typed("973", "gYear"), "973"),
        (typed("0794", "gYear"), "794"),
        (typed("-0044", "gYear"), "-44"),
        (typed("1997-05:00", "gYear"), "1997-05:00"),
        (Literal("2544"), None),
        (Literal("1997-04-05", RDF_LANG_STRING, "en"), None),
        (Literal("2544", Iri("http://example.org/metre")), None),
    ],
)
def test_dates_numbers_and_truth_values_are_plain_and_texts_are_not(literal: Literal, plain: str | None) -> None:
    assert plain_value(literal) == plain


def test_a_quantity_of_four_digits_has_a_comma_where_it_is_known_to_be_one() -> None:
    assert plain_value(typed("1927", "integer"), quantity=True) == "1,927"
    assert may_mean("1,927", typed("1927", "integer"))


@pytest.mark.parametrize(
    ("text", "literal", "meant"),
    [
        ("2,544", typed("2544", "integer"), True),
        ("2544.0", typed("+2544", "decimal"), True),
        ("2,54", typed("254", "integer"), False),
        ("2544", typed("many", "integer"), False),
        ("2544", Literal("2544"), True),
        ("2,544", Literal("2544"), False),
        ("1997-04-05", typed("1997-04-05T00:00:00Z", "dateTime"), True),
        ("1997", typed("1997-04-05", "date"), False),
        ("true", typed("1", "boolean"), True),
        ("52.52, 13.405", Literal("Point(13.405 52.52)", WKT), True),
    ],
)
def test_a_text_may_mean_a_value(text: str, literal: Literal, meant: bool) -> None:
    assert may_mean(text, literal) is meant


@given(
    st.one_of(st.integers().map(str), st.decimals().map(str), st.text("0123456789-+.,:TZE", max_size=25), st.dates())
)
def test_what_is_written_plainly_may_mean_the_value(text: object) -> None:
    for kind in ("integer", "decimal", "double", "date", "dateTime", "gYear", "time", "boolean"):
        literal = typed(str(text), kind)
        plain = plain_value(literal)
        if plain is not None:
            assert may_mean(plain, literal)


def test_tokens_are_estimated_from_above_by_bytes() -> None:
    assert [token_count(text) for text in ("", "a", "abc", "abcd", "\u6771\u4eac")] == [0, 1, 1, 2, 2]


def test_only_whole_lines_fit() -> None:
    assert fitting(["12345", "12345", "12345"], max_tokens=4) == 2
    assert fitting(["1" * 100], max_tokens=4) == 0
    assert fitting([], max_tokens=4) == 0
    assert fitting(["1", "2"], max_tokens=4) == 2


def test_lines_are_made_until_one_is_too_many() -> None:
    lines = iter(["12345", "12345", "12345", "12345"])
    assert fitting(lines, max_tokens=4) == 2
    assert list(lines) == ["12345"]
