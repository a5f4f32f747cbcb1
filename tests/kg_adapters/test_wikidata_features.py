"""What answers of the query service say of an entity's values, whatever is missing in them."""

from collections.abc import Collection, Mapping, Sequence

import pytest

from kg_adapters.models import NO_FEATURES, Count, Feature, FeaturePage
from kg_adapters.profile import EDTF
from kg_adapters.requests import FeatureRequest
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import RDF_LANG_STRING, XSD, BlankNode, Iri, Literal, Node, Term
from kg_adapters.wikidata.features import FeatureReader
from kg_adapters.wikidata.names import MAX_KNOWN, Whereabouts
from kg_adapters.wikidata.queries import MAX_ROWS, ValueQueries, id_of, queries_for
from kg_adapters.wikidata.values import DATE, DECIMAL, date, link, plain, quantity
from sparql_stand_in import CannedEndpoint
from wikidata_stand_in import wd, wdt

LABELS = {"P580": "start time", "Q64": "Berlin"}


async def labels(terms: Collection[Node]) -> Mapping[Node, str]:
    return {term: LABELS[name] for term in terms if (name := id_of(term)) in LABELS}


def number(value: int) -> Literal:
    return Literal(str(value), Iri(XSD + "integer"))


def decimal(value: str) -> Literal:
    return Literal(value, Iri(XSD + "decimal"))


def answer(variables: str, rows: Sequence[Sequence[Term | None]], *, truncated: bool = False) -> Solutions:
    return Solutions(tuple(variables.split()), tuple(tuple(row) for row in rows), truncated=truncated)


def reader(endpoint: CannedEndpoint, *, with_qualifiers: bool = False) -> FeatureReader:
    queries = queries_for(DIALECTS["standard"], ("en",), 1_000)
    asker = QueryAsker(endpoint, queries.dialect, 10.0)
    return FeatureReader(
        asker, ValueQueries(queries.dialect, queries.vocabulary), labels, with_qualifiers=with_qualifiers
    )


async def page_of(reader: FeatureReader) -> FeaturePage:
    return (await reader.features(FeatureRequest((wd("Q1"),)))).get(wd("Q1"), NO_FEATURES)


async def features_of(*rows: Sequence[Term | None], truncated: bool = False) -> FeaturePage:
    about = [(wd("Q1"), *row) for row in rows]
    endpoint = CannedEndpoint(answer("e p o precision unit name", about, truncated=truncated))
    return await page_of(reader(endpoint))


async def test_rows_without_a_relation_or_a_value_say_nothing() -> None:
    page = await features_of(
        (None, Literal("alone"), None, None, None),
        (wdt("P1"), None, None, None, None),
        (wdt("P1"), Literal("x"), None, None, None),
    )
    assert page == FeaturePage((Feature(wdt("P1"), Literal("x")),), Count(1))


async def test_a_unit_without_a_name_shows_its_id_and_one_is_no_unit() -> None:
    page = await features_of(
        (wdt("P2048"), decimal("+8848"), None, None, None),
        (wdt("P2048"), decimal("+8848"), None, wd("Q11573"), Literal("metre", RDF_LANG_STRING, "en")),
        (wdt("P2067"), decimal("+5"), None, wd("Q999"), None),
        (wdt("P1082"), decimal("+12"), None, wd("Q199"), None),
    )
    assert page == FeaturePage(
        (
            Feature(wdt("P1082"), decimal("12")),
            Feature(wdt("P2048"), Literal("8848 metre")),
            Feature(wdt("P2067"), Literal("5 Q999")),
        ),
        Count(3),
    )


async def test_a_date_whose_precision_makes_no_sense_of_it_stays_as_it_is() -> None:
    said = (wdt("P571"), Literal("some day"))
    page = await features_of((*said, None, None, None), (*said, number(9), None, None))
    assert page == FeaturePage((Feature(wdt("P571"), Literal("some day")),), Count(1))


async def test_an_answer_that_was_cut_has_at_least_what_came() -> None:
    page = await features_of((wdt("P1"), Literal("x"), None, None, None), truncated=True)
    assert page.total == Count(1, exact=False)


async def test_more_qualifiers_than_are_read_are_left_out_and_counted_so() -> None:
    row = (wd("Q1"), wd("statement-1"), wdt("P39"), wd("Q64"), wd("Q64"), wd("P580"), Literal("x"))
    few, many = answer("e statement p o v q w", [row]), answer("e statement p o v q w", [row] * MAX_ROWS)

    class OneThenMany(CannedEndpoint):
        async def query(self, text: str, **options: object) -> Solutions:
            await super().query(text)
            return few if len(self.asked) == 1 else many

    endpoint = OneThenMany(few)
    page = await page_of(reader(endpoint, with_qualifiers=True))
    assert page.features == (Feature(wdt("P39"), link(wd("Q64"))),)
    assert page.total == Count(1, exact=False)


async def test_a_statement_shows_its_qualifiers_in_a_fixed_order() -> None:
    rows: list[tuple[Term | None, ...]] = [
        (wd("Q1"), wd("s1"), wdt("P39"), wd("Q64"), wd("P580"), Literal("1998")),
        (wd("Q1"), wd("s1"), wdt("P39"), wd("Q64"), wd("P1365"), wd("Q7")),
        (wd("Q1"), wd("s1"), wdt("P39"), wd("Q64"), wd("P1365"), BlankNode("b1")),
        (wd("Q1"), wd("s2"), wdt("P39"), wd("Q64"), None, Literal("nothing said")),
    ]
    endpoint = CannedEndpoint(answer("e statement p v q w", rows))
    page = await page_of(reader(endpoint, with_qualifiers=True))
    assert Feature(wdt("P39"), Literal("Berlin (P1365: Q7, unknown; start time: 1998)")) in page.features
    assert [each for each in page.features if "nothing said" in each.value.value] == []


def test_a_link_is_an_address_or_an_unknown_value() -> None:
    page = "https://example.org/page"
    assert link(Iri(page)) == Literal(page, Iri(XSD + "anyURI"))
    assert link(BlankNode("t1")) == Literal("unknown value")
    assert link(Iri("http://www.wikidata.org/.well-known/genid/0b")) == Literal("unknown value")


def test_whereabouts_are_bounded_and_forget_what_they_learned_first() -> None:
    places = Whereabouts()
    places.learn_merged({wd(f"Q{n}"): wd("Q1") for n in range(MAX_KNOWN + 1)})
    places.learn_scholarly(wd(f"Q{n}") for n in range(2, MAX_KNOWN + 3))
    assert [places.current(wd(f"Q{n}")) for n in (0, 5)] == [wd("Q0"), wd("Q1")]
    assert [places.is_scholarly(wd(f"Q{n + MAX_KNOWN}")) for n in (1, 2, 3)] == [True, True, False]
    assert places.is_scholarly(wd("Q2")) is False


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
        ("1969-07-20T20:17:00Z", 13, Literal("1969-07-20T20:17:00Z", DATE_TIME)),
        ("1740-01-01T00:00:00Z", 8, Literal("1740/1749", EDTF)),
        ("1749-01-01T00:00:00Z", 7, Literal("1701/1800", EDTF)),
        ("1800-01-01T00:00:00Z", 7, Literal("1701/1800", EDTF)),
        ("1801-01-01T00:00:00Z", 7, Literal("1801/1900", EDTF)),
        ("2050-01-01T00:00:00Z", 7, Literal("2001/2100", EDTF)),
        ("1150-01-01T00:00:00Z", 7, Literal("1101/1200", EDTF)),
        ("1066-01-01T00:00:00Z", 6, Literal("1001/2000", EDTF)),
        ("-0043-03-15T00:00:00Z", 11, Literal("-0043-03-15", DATE)),
        ("-0043-03-01T00:00:00Z", 10, Literal("-0043-03", MONTH)),
        ("-0043-01-01T00:00:00Z", 9, Literal("-0043", YEAR)),
        ("0000-01-01T00:00:00Z", 9, Literal("0000", YEAR)),
        ("-0043-01-01T00:00:00Z", 8, Literal("-0048/-0039", EDTF)),
        ("-0499-01-01T00:00:00Z", 7, Literal("-0499/-0400", EDTF)),
        ("-66000000-01-01T00:00:00Z", 3, Literal("Y-66000000~", EDTF)),
        ("12000-01-01T00:00:00Z", 5, Literal("Y12000~", EDTF)),
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
