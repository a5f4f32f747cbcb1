"""Values and entity cards as answers show them."""

import statistics
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calls import call, rows, texts
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.profile import EDTF
from kg_adapters.terms import RDF_LANG_STRING, XSD, Iri, Literal
from kg_server.answers.cards import CARD_TOKENS
from kg_server.answers.results import fitting, token_count
from kg_server.answers.values import may_mean, plain_value

PERIODS = {
    "-0399/-0300": "4th century BCE",
    "1801/1900": "19th century",
    "-1999/-1000": "2nd millennium BCE",
    "1950/1959": "1950s",
    "-0548/-0539": "540s BCE",
    "0001/0009": "0s",
    "-0008/0000": "0s BCE",
    "-0049/0050": "-0049/0050",
    "1977/1980": "1977/1980",
    "Y-4566999999~": "about 4,567,000,000 years BCE",
    "Y12000~": "about 12,000 years CE",
}
"""Periods and approximate years of EDTF, and how they are shown."""
WKT = Iri("http://www.opengis.net/ont/geosparql#wktLiteral")


def typed(text: str, kind: str) -> Literal:
    return Literal(text, Iri(XSD + kind))


@pytest.mark.parametrize(
    ("literal", "plain"),
    [
        (typed("1997-04-05", "date"), "1997-04-05"),
        (typed("-0043-03-15", "date"), "44-03-15 BCE"),
        (typed("-0043-03", "gYearMonth"), "44-03 BCE"),
        (typed("-0043-03-15T00:00:00Z", "dateTime"), "44-03-15 BCE"),
        (typed("0000", "gYear"), "1 BCE"),
        (typed("-4567000000", "gYear"), "-4567000000"),
        *((Literal(text, EDTF), plain) for text, plain in PERIODS.items()),
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
        (typed("-0043", "gYear"), "44 BCE"),
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


def name(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:03}")


MANY = "".join(f"<http://ex.org/{name(n)}> <http://ex.org/citizen> <http://ex.org/land> . " for n in range(70)) + (
    '<http://ex.org/land> <http://www.w3.org/2000/01/rdf-schema#label> "Land" ; <http://ex.org/area> 1250 ; '
    "<http://ex.org/borders> <http://ex.org/a> , <http://ex.org/b> ; <http://ex.org/held> [ <http://ex.org/by> "
    "<http://ex.org/aaa> ; <http://ex.org/until> 1990 ] ."
)


async def test_a_name_of_one_thing_is_answered_by_its_card(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "Retrieve", text="Tokyo")
    assert reply.plain.text == (
        "Exact: 'Tokyo' names one thing.\n"
        "Tokyo | capital of Japan | city\n"
        "population | 13,960,236\n"
        "country | Japan\n"
        "capital | Shinjuku\n"
        "-located in | Shinjuku\n"
        "-capital | Japan"
    )
    assert rows(reply.data["card"])[0] == ["out", "P1082", "1", "13,960,236"]
    assert texts(reply.data["labels"])["P36"] == "capital"


async def test_relations_are_counted_and_a_few_neighbours_named(graph_of: Callable[[str], LocalAdapter]) -> None:
    reply = await call(graph_of(MANY), "Retrieve", text="Land")
    shown = [line.replace("ex:", "") for line in reply.lines[1:]]
    assert shown[0].endswith("| 1250")
    assert shown[1].endswith("| 2: a, b")
    assert shown[2].endswith("[by aaa; until 1990]")
    assert shown[3].endswith("| 70: aaa, aab, aac, …")


def prefixed(*lines: str) -> str:
    head = "@prefix e: <http://e.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . "
    return f"{head}@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . e:land rdfs:label 'Land' . {' '.join(lines)}"


async def test_a_relation_of_which_the_page_held_a_part_is_counted(graph_of: Callable[[str], LocalAdapter]) -> None:
    """Four facts of each of fifty relations are more than a page: of the last ones it holds three."""
    graph = graph_of(prefixed(*(f"e:land e:r{name(n)} e:a, e:b, e:c, e:d, e:f ." for n in range(50))))
    reply = await call(graph, "Retrieve", text="Land")
    assert {row[2] for row in rows(reply.data["card"])} == {"5"}
    assert reply.lines[-1].startswith("also | ")
    assert {part.rsplit(" ", 1)[1] for part in reply.lines[-1].removeprefix("also | ").split("; ")[:-1]} == {"5"}


async def test_relations_that_no_longer_fit_on_the_page_are_counted_too(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph = graph_of(prefixed(*(f"e:land e:r{name(n)} e:a, e:b ." for n in range(200))))
    reply = await call(graph, "Retrieve", text="Land")
    shown = len(rows(reply.data["card"]))
    listed = reply.lines[-1].removeprefix("also | ").split("; ")
    assert {row[2] for row in rows(reply.data["card"])} == {"2"}
    assert listed[-1] == f"and {200 - shown - len(listed) + 1} more"


async def test_what_is_stored_both_ways_is_shown_once_and_counted_whole(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    towers = (f"e:t{name(n)} e:in e:land ." for n in range(12))
    graph = graph_of(prefixed("e:in owl:inverseOf e:has . e:land e:has e:taaa, e:taab, e:taac, e:taad .", *towers))
    reply = await call(graph, "Retrieve", text="Land")
    assert reply.lines[1:] == ["e:has | 12, 8 as -e:in: e:taaa, e:taab, e:taac, …"]


@pytest.mark.parametrize("arguments", [{"text": ["Tokyo", "Japan"]}, {"text": "Kyoto"}])
async def test_several_texts_and_what_is_not_here_have_no_card(
    tokyo: LocalAdapter, arguments: dict[str, object]
) -> None:
    assert "card" not in (await call(tokyo, "Retrieve", **arguments)).data


async def test_cards_are_short(sample: LocalAdapter) -> None:
    names = ["Albert Einstein", "Germany", "Johann Wolfgang von Goethe", "United States of America", "Berlin", "Japan"]
    sizes = [token_count("\n".join((await call(sample, "Retrieve", text=name)).lines[1:])) for name in names]
    assert statistics.median(sizes) <= 250
    assert max(sizes) <= CARD_TOKENS + 20
