"""Conditions on dates: times as instants in every notation, days of UTC, years before Christ, and what stands apart."""

import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from mcp import Client

from calls import UNHURRIED, Reply, call, composed, refused, reply_of, rows
from fault_endpoint import serving
from kg_adapters.local.adapter import LocalAdapter
from kg_server.app import build_server
from remote_graphs import answering_from, tools_over

TIMES: Final = {
    "a": "2024-05-01T10:00:00+05:30",
    "b": "2024-05-01T06:00:00-04:00",
    "c": "2024-05-01T00:00:00Z",
    "d": "2024-04-30T23:30:00-01:00",
    "e": "2024-05-01T00:30:00+02:00",
    "f": "2024-05-01T07:00:00.250Z",
    "g": "2024-05-01T07:00:00.5+00:00",
    "h": "2024-02-29T23:59:59-12:00",
    "i": "2023-12-31T23:59:59.999-00:01",
    "j": "2024-01-01T00:30:00+01:00",
    "k": "2024-03-01T01:00:00+14:00",
    "l": "2024-05-01T09:00:00+02:00",
    "m": "2024-05-01T12:00:00",
    "n": "2024-05-01T00:00:00",
}
XSD: Final = "http://www.w3.org/2001/XMLSchema#"
STATED: Final = "".join(
    f'<http://example.org/{name}> <http://example.org/at> "{time}"^^<{XSD}dateTime> .\n'
    f"<http://example.org/{name}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/Event> .\n"
    for name, time in TIMES.items()
)
OPERATORS: Final = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
MOMENTS: Final = (
    ("<", "2024-05-01T07:00:00Z", "2024-05-01T07:00:00Z"),
    ("<", "2024-05-01T09:00:00+02:00", "2024-05-01T07:00:00Z"),
    ("=", "2024-05-01T09:00:00+02:00", "2024-05-01T07:00:00Z"),
    ("<", "2024-05-01 07:00Z", "2024-05-01T07:00:00Z"),
    ("<=", "2024-05-01 07:00 +00:00", "2024-05-01T07:00:00Z"),
    (">", "2024-05-01T07:00:00.25Z", "2024-05-01T07:00:00.250Z"),
    (">=", "2024-05-01T07:00:00.250000Z", "2024-05-01T07:00:00.250Z"),
    ("<", "2024-05-01T07:00:00.4999Z", "2024-05-01T07:00:00.499900Z"),
    ("=", "2024-05-01T07:00:00.5Z", "2024-05-01T07:00:00.500Z"),
    ("<", "2024-05-01T07:00", "2024-05-01T07:00:00Z"),
    (">", "2024-05-01T12:30+0530", "2024-05-01T07:00:00Z"),
    (">=", "2024-05-01T03:00-04", "2024-05-01T07:00:00Z"),
    ("=", "2024-05-01T00:00:00Z", "2024-05-01T00:00:00Z"),
    ("<", "2024-05-01T00:00:00Z", "2024-05-01T00:00:00Z"),
    ("=", "2024-05-01T24:00:00Z", "2024-05-02T00:00:00Z"),
    ("<", "2024-04-30T24:00:00Z", "2024-05-01T00:00:00Z"),
    ("!=", "2024-02-29T11:00:00Z", "2024-02-29T11:00:00Z"),
    ("<", "2024-05-01t07:00:00z", "2024-05-01T07:00:00Z"),
    ("<", "2024-05-01 0700 UTC", "2024-05-01T07:00:00Z"),
    ("<", "01.05.2024 07:00", "2024-05-01T07:00:00Z"),
)
PERIODS: Final = (
    ("<", "2024-05-01", "2024-05-01", "2024-05-02"),
    ("=", "2024-05-01", "2024-05-01", "2024-05-02"),
    ("=", "2024-04-30", "2024-04-30", "2024-05-01"),
    ("=", "2024-05", "2024-05-01", "2024-06-01"),
    ("!=", "2024-05", "2024-05-01", "2024-06-01"),
    ("=", "2024", "2024-01-01", "2025-01-01"),
    ("=", "2023", "2023-01-01", "2024-01-01"),
    (">", "2024-02", "2024-02-01", "2024-03-01"),
    ("<=", "2024-02-29", "2024-02-29", "2024-03-01"),
    ("<=", "29/02/2024", "2024-02-29", "2024-03-01"),
    (">=", "2024-03-01", "2024-03-01", "2024-03-02"),
    ("<", "2024", "2024-01-01", "2025-01-01"),
)


def instant(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


INSTANTS: Final = {name: instant(text) for name, text in TIMES.items()}


def within(name: str, first: str, after: str) -> int:
    """Return -1 for an event before a period, 1 for one after it, and 0 for one within."""
    return -1 if INSTANTS[name] < instant(first) else 1 if INSTANTS[name] >= instant(after) else 0


CONDITIONS: Final = {
    **{
        f"at {sign} {text}": {name for name in TIMES if OPERATORS[sign](INSTANTS[name], instant(moment))}
        for sign, text, moment in MOMENTS
    },
    **{
        f"at {sign} {text}": {name for name in TIMES if OPERATORS[sign](within(name, first, after), 0)}
        for sign, text, first, after in PERIODS
    },
}
"""Which events meet each condition, as Python compares them."""


def local(names: list[str]) -> set[str]:
    return {re.split("[:/]", name)[-1] for name in names}


async def test_times_are_instants_in_the_index_over_an_endpoint_and_in_the_sparql_of_both(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path
) -> None:
    async with (
        serving(answering_from(STATED)) as server,
        tools_over(server, tmp_path, settings=UNHURRIED) as remote,
        Client(build_server(graph_of(f"@prefix ex: <http://example.org/> .\n{STATED}"), UNHURRIED)) as here,
    ):

        async def ask(client: Client, tool: str, **arguments: object) -> Reply:
            reply = reply_of(await client.call_tool(tool, arguments))
            assert not reply.is_error, (arguments, reply.text)
            return reply

        for place, (condition, wanted) in enumerate(CONDITIONS.items()):
            arguments = {"expression": f"Where[Type[ex:Event], {condition}]", "evidence": "none"}
            found = await ask(here, "Compose", **arguments, explain=True)
            ((_, query),) = rows(found.data["sparql"])
            explained = await ask(here, "Sparql", query=query)
            assert local([row[3] for row in rows(found.data["results"])]) == wanted, condition
            assert local([row[0] for row in rows(explained.data["rows"])]) == wanted, condition
            if place % 4 == 0:
                afar = await ask(remote, "Compose", **arguments)
                assert local([row[3] for row in rows(afar.data["results"])]) == wanted, condition
        for expression, answer in (
            ("Max[Type[ex:Event], at]", TIMES[max(INSTANTS, key=INSTANTS.__getitem__)]),
            ("Min[Type[ex:Event], at]", TIMES[min(INSTANTS, key=INSTANTS.__getitem__)]),
        ):
            for client in (here, remote):
                assert (await ask(client, "Compose", expression=expression)).text.startswith(answer), expression
        order = sorted(INSTANTS, key=lambda name: (INSTANTS[name], name))
        for client in (here, remote):
            bottom = await ask(client, "Compose", expression="Bottom[Type[ex:Event], at, 5]", evidence="none")
            assert [re.split("[:/]", row[1])[-1] for row in rows(bottom.data["results"])] == order[:5]


AGES: Final = """
@prefix e: <http://e.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix edtf: <http://id.loc.gov/datatypes/edtf/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:caesar a e:P ; rdfs:label "Caesar" ; e:died "-0043-03-15"^^xsd:date .
e:homer a e:P ; rdfs:label "Homer" ; e:died "-0799/-0700"^^edtf:EDTF .
e:livy a e:P ; rdfs:label "Livy" ; e:died "0017"^^xsd:gYear .
e:bede a e:P ; rdfs:label "Bede" ; e:died "0735-05-26"^^xsd:date .
e:otto a e:P ; rdfs:label "Otto" ; e:died "973"^^xsd:gYear .
e:mary a e:P ; rdfs:label "Mary" ; e:died "0000"^^xsd:gYear .
e:earth a e:P ; rdfs:label "Earth" ; e:died "-4567000000-01-01T00:00:00Z"^^xsd:dateTime .
e:moon a e:P ; rdfs:label "Moon" ; e:died "Y-4400000000~"^^edtf:EDTF .
"""


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("< 44 BCE", "earth homer moon"),
        ("= 44 BCE", "caesar"),
        ("= 44 BC", "caesar"),
        ("= -0043", "caesar"),
        ("= 44-03 BCE", "caesar"),
        ("= 44-03-15 BCE", "caesar"),
        ("< 100 BC", "earth homer moon"),
        ("= 1 B.C.", "mary"),
        ("<= 1 BCE", "caesar earth homer mary moon"),
        ("= AD 17", "livy"),
        ("> 17 CE", "bede otto"),
        ("= 8th century BCE", "homer"),
        ("= 8th century", "bede"),
        ("< 1st century", "caesar earth homer mary moon"),
        ("= 730s", "bede"),
        ("< 1st millennium BCE", "earth moon"),
        ('< "-2500000000"', "earth moon"),
        ("< -4500000000", "earth"),
        ("> -13800000000", "bede caesar earth homer livy mary moon otto"),
    ],
)
async def test_dates_before_christ_and_of_many_digits_are_dates(
    graph_of: Callable[[str], LocalAdapter], condition: str, wanted: str
) -> None:
    graph = graph_of(AGES)
    reply = await call(graph, "Compose", expression=f"Where[Type[e:P], died {condition}]", explain=True)
    ((_, query),) = rows(reply.data["sparql"])
    explained = await call(graph, "Sparql", query=query)
    assert local([row[3] for row in rows(reply.data["results"])]) == set(wanted.split())
    assert local([row[0] for row in rows(explained.data["rows"])]) == set(wanted.split())


async def test_dates_before_christ_are_ordered_and_written_as_people_do(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph = graph_of(AGES)
    ordered = await composed(graph, "Bottom[Type[e:P], died, 8]")
    names = ["Earth", "Moon", "Homer", "Caesar", "Mary", "Livy", "Bede", "Otto"]
    assert [line.partition(" ")[0] for line in ordered.lines] == names
    shown = [line.rpartition(": ")[2] for line in ordered.lines]
    assert shown[1:5] == ["about 4,400,000,001 years BCE", "8th century BCE", "44-03-15 BCE", "1 BCE"]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("2024-05-01T25:00", "is not a date"),
        ("2024-05-01T24:30", "is not a date"),
        ("2024-05-01T07:60Z", "is not a date"),
        ("2024-05-01T07:00+15:00", "is not a date"),
        ("2024-02-30", "is not a date"),
        ("03/05/2024", "is not a date"),
        ("0 BCE", "is not a date"),
        ("0th century", "is not a date"),
        ("2024-5-1", "Write 1977, 1977-05, 1977-05-01, 1977-05-01T09:30:00+02:00 or 44 BCE."),
    ],
)
async def test_what_is_no_date_is_refused_with_the_forms_that_are(
    graph_of: Callable[[str], LocalAdapter], written: str, problem: str
) -> None:
    assert problem in await refused(graph_of(AGES), f"Where[Type[e:P], died > {written}]")


ZONES: Final = """
@prefix e: <http://e.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
e:a a e:V ; e:bare "2024-05-01T07:00:00"^^xsd:dateTime ; e:utc "2024-05-01T07:00:00Z"^^xsd:dateTime ;
    e:far "2024-05-01T07:00:00+02:00"^^xsd:dateTime ; e:mixed "2024-05-01T07:00:00"^^xsd:dateTime .
e:b a e:V ; e:bare "2024-05-01T08:00:00"^^xsd:dateTime ; e:utc "2024-05-01T08:00:00Z"^^xsd:dateTime ;
    e:far "2024-05-01T08:00:00+02:00"^^xsd:dateTime ; e:mixed "2024-05-01T08:00:00+02:00"^^xsd:dateTime .
"""
BARE: Final = "without a zone, read as UTC."
GIVEN: Final = "has no zone and is read as UTC."


@pytest.mark.parametrize(
    ("expression", "remark"),
    [
        ("Where[Type[e:V], mixed > 2024-05-01T06:30Z]", f"1 has a time {BARE}"),
        ("Where[Type[e:V], bare > 2024-05-01T06:30Z]", f"2 have times {BARE}"),
        ("Where[Type[e:V], far > 2024-05-01T05:30]", f"2024-05-01T05:30:00 {GIVEN}"),
        ("Where[Type[e:V], utc > 2024-05-01T05:30]", f"2024-05-01T05:30:00 {GIVEN}"),
        ("Where[Type[e:V], far = 2024-05-01]", f"2024-05-01 {GIVEN}"),
        ("Count[Where[Type[e:V], far = 2024-05-01]]", f"2024-05-01 {GIVEN}"),
        ("Max[Type[e:V], mixed]", f"1 has a time {BARE}"),
        ("Top[Type[e:V], mixed, 1]", f"1 has a time {BARE}"),
        ("Where[Type[e:V], mixed = 2024-05-01]", "1 has a time without a zone, read as UTC, and so is 2024-05-01."),
        ("Group[Type[e:V], far by day]", "2 times are in another zone than UTC and count by the date that is written."),
        ("Group[Type[e:V], utc by day]", None),
        ("Where[Type[e:V], utc = 2024-05-01]", None),
        ("Where[Type[e:V], bare > 2024-05-01T06:30]", None),
        ("Where[Type[e:V], far > 2024-05-01T06:30+02:00]", None),
        ("Max[Type[e:V], bare]", None),
        ("Max[Type[e:V], far]", None),
    ],
)
async def test_a_time_without_a_zone_beside_zoned_ones_is_said_to_be_read_as_utc(
    graph_of: Callable[[str], LocalAdapter], expression: str, remark: str | None
) -> None:
    reply = await composed(graph_of(ZONES), expression)
    assert (remark or "UTC") in reply.summary if remark else "UTC" not in reply.text


BORN: Final = """
<http://example.org/{0}> <http://example.org/born> "{1}"^^<http://www.w3.org/2001/XMLSchema#{2}> .
<http://example.org/{0}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/Person> .
"""
PEOPLE: Final = "".join(
    BORN.format(*each)
    for each in (("ann", "1958-03-02", "date"), ("bob", "1988", "gYear"), ("cid", "1988-06", "gYearMonth"))
)


@pytest.mark.parametrize(
    ("condition", "wanted", "maybe"),
    [
        ("<= 1988-06-01", "ann", "2 may meet it, as their dates are less precise than 1988-06-01: "),
        ("= 1988-06-01", "", "2 may meet it"),
        ("!= 1988-06-01", "ann", "2 may meet it"),
        ("<= 1988-06-30", "ann cid", "1 may meet it, as its date is less precise than 1988-06-30: bob 1988."),
        (">= 1988-01-01", "bob cid", None),
        ("<= 1988-12-31", "ann bob cid", None),
        ("> 1988-12-31", "", None),
        ("= 1988", "bob cid", None),
        ("< 1988-06", "ann", "1 may meet it, as its date is less precise than 1988-06: bob 1988."),
    ],
)
async def test_a_date_less_precise_than_the_question_stands_apart(
    graph_of: Callable[[str], LocalAdapter], tmp_path: Path, condition: str, wanted: str, maybe: str | None
) -> None:
    expression = f"Where[Type[ex:Person], born {condition}]"
    here = await composed(graph_of(f"@prefix ex: <http://example.org/> .\n{PEOPLE}"), expression)
    async with (
        serving(answering_from(PEOPLE)) as server,
        tools_over(server, tmp_path, settings=UNHURRIED) as client,
    ):
        afar = reply_of(await client.call_tool("Compose", {"expression": expression}))
    for reply in (here, afar):
        assert local([row[3] for row in rows(reply.data["results"])]) == set(wanted.split())
        assert (maybe in reply.plain.text.replace("ex:", "")) if maybe else "may meet" not in reply.text
