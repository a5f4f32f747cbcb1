"""Dates say as much as is known of them, quantities name their unit, and places read as people write them."""

import pytest

from kg_adapters.terms import XSD, Iri, Literal
from kg_adapters.wikidata.values import DATE, DECIMAL, date, plain, quantity

YEAR, MONTH = Iri(XSD + "gYear"), Iri(XSD + "gYearMonth")
DATE_TIME = Iri(XSD + "dateTime")
POINT = Iri("http://www.opengis.net/ont/geosparql#wktLiteral")


@pytest.mark.parametrize(
    ("value", "precision", "expected"),
    [
        ("1749-08-28T00:00:00Z", 11, Literal("1749-08-28", DATE)),
        ("1749-08-01T00:00:00Z", 10, Literal("1749-08", MONTH)),
        ("+1749-01-01T00:00:00Z", 9, Literal("1749", YEAR)),
        ("0079-10-24T00:00:00Z", 11, Literal("0079-10-24", DATE)),
        ("1969-07-20T20:17:00Z", 13, Literal("1969-07-20 20:17")),
        ("1740-01-01T00:00:00Z", 8, Literal("1740s")),
        ("1749-01-01T00:00:00Z", 7, Literal("18th century")),
        ("1800-01-01T00:00:00Z", 7, Literal("18th century")),
        ("1801-01-01T00:00:00Z", 7, Literal("19th century")),
        ("2050-01-01T00:00:00Z", 7, Literal("21st century")),
        ("1150-01-01T00:00:00Z", 7, Literal("12th century")),
        ("1066-01-01T00:00:00Z", 6, Literal("2nd millennium")),
        ("-0043-03-15T00:00:00Z", 11, Literal("44-03-15 BCE")),
        ("-0043-03-01T00:00:00Z", 10, Literal("44-03 BCE")),
        ("-0043-01-01T00:00:00Z", 9, Literal("44 BCE")),
        ("0000-01-01T00:00:00Z", 9, Literal("1 BCE")),
        ("-0043-01-01T00:00:00Z", 8, Literal("40s BCE")),
        ("-0499-01-01T00:00:00Z", 7, Literal("5th century BCE")),
        ("-66000000-01-01T00:00:00Z", 3, Literal("about 66,000,001 years BCE")),
        ("12000-01-01T00:00:00Z", 5, Literal("about 12,000 years CE")),
    ],
)
def test_a_date_says_as_much_as_is_known(value: str, precision: int, expected: Literal) -> None:
    assert date(value, precision) == expected


@pytest.mark.parametrize("value", ["", "yesterday", "1749-08-28", "99999999999999999999-01-01T00:00:00Z"])
def test_what_is_no_date_is_none(value: str) -> None:
    assert date(value, 11) is None


def test_a_quantity_names_its_unit_and_a_number_stays_one() -> None:
    assert quantity("+2194.07", "square kilometre") == Literal("2194.07 square kilometre")
    assert quantity("-3", None) == Literal("-3", DECIMAL)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (Literal("1749-08-28T00:00:00Z", DATE_TIME), Literal("1749-08-28", DATE)),
        (Literal("1749-08-28T12:00:00Z", DATE_TIME), Literal("1749-08-28T12:00:00Z", DATE_TIME)),
        (Literal("soonT00:00:00Z", DATE_TIME), Literal("soonT00:00:00Z", DATE_TIME)),
        (Literal("Point(139.69 35.68)", POINT), Literal("35.68° N, 139.69° E")),
        (Literal("POINT (-58.4 -34.6)", POINT), Literal("34.6° S, 58.4° W")),
        (
            Literal("<http://www.wikidata.org/entity/Q405> Point(23.4 0.67)", POINT),
            Literal("0.67° N, 23.4° E (globe Q405)"),
        ),
        (Literal("Polygon((0 0, 1 1))", POINT), Literal("Polygon((0 0, 1 1))", POINT)),
        (Literal("+13", DECIMAL), Literal("13", DECIMAL)),
        (Literal("Tokyo"), Literal("Tokyo")),
    ],
)
def test_a_literal_reads_as_people_write_it(said: Literal, shown: Literal) -> None:
    assert plain(said) == shown
