"""Totals for each member and group, groups of dates, and what answers say their numbers are over, on every engine."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import rdflib
from mcp import Client

from calls import UNHURRIED, Reply, reply_of, rows
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_server.app import build_server
from small_graphs import WithoutSets, shared_store
from sparql_stand_in import StandInEndpoint, adapter_over

DATE = "^^xsd:date"
VISITS = (("v1", "rex", "2024-05-01", "10"), ("v2", "rex", "2024-05-20", "10.0"), ("v3", "mo", "2024-06-02", "15"))
CLINIC = "\n".join(
    (
        "@prefix e: <http://e.org/> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .",
        'e:rex a e:Animal ; rdfs:label "Rex" ; e:owner e:ann ; e:weight 20 .',
        'e:mo a e:Animal ; rdfs:label "Mo" ; e:owner e:ann ; e:weight 4.5 .',
        'e:pip a e:Animal ; rdfs:label "Pip" ; e:owner e:bo .',
        'e:zoe a e:Animal ; rdfs:label "Zoe" .',
        'e:ann rdfs:label "Ann Lee" . e:bo rdfs:label "Bo Berg" .',
        *(f'e:{name} rdfs:label "{name}" .' for name in ("owner", "weight", "fee", "animal", "load", "in")),
        'e:seen rdfs:label "seen at" . e:hall rdfs:label "Hall" .',
        *(
            f'e:{visit} a e:Visit ; e:animal e:{animal} ; e:seen "{seen}"{DATE} ; e:fee {fee} .'
            for visit, animal, seen, fee in VISITS
        ),
        'e:v4 a e:Visit ; e:animal e:mo ; e:seen "2025"^^xsd:gYear ; e:fee "waived" .',
        "e:v5 a e:Visit ; e:animal e:pip ; e:fee 12.5 .",
        'e:v6 a e:Visit ; e:seen "soon" ; e:fee 40 .',
        "e:v7 a e:Visit ; e:animal e:zoe .",
        'e:b1 a e:Box ; e:in e:hall ; e:load "3"^^e:kg . e:b2 a e:Box ; e:in e:hall ; e:load "4"^^e:kg .',
        'e:b3 a e:Crate ; e:in e:hall ; e:load "3"^^e:kg . e:b4 a e:Crate ; e:in e:hall ; e:load "4"^^e:lb .',
        *(f'e:{name} rdfs:label "{name.lower()}" .' for name in ("Animal", "Visit", "Box", "Crate", "Room")),
        f'e:r1 a e:Room ; e:width 3 ; e:paid "2024-05-01"{DATE} .',
        f'e:r2 a e:Room ; e:width 4 ; e:paid "2024-05-02"{DATE} .',
        'e:width rdfs:label "width (m)" . e:paid rdfs:label "paid by month" .',
    )
)


def local(_: Path) -> KGAdapter:
    return LocalAdapter(shared_store(CLINIC))


def without_sets(folder: Path) -> KGAdapter:
    return WithoutSets(local(folder))


def by_rdflib(_: Path) -> KGAdapter:
    return RdflibAdapter(rdflib.Graph().parse(data=CLINIC, format="turtle"))


def endpoint(_: Path) -> KGAdapter:
    triples = rdflib.Graph().parse(data=CLINIC, format="turtle").serialize(format="nt")
    return adapter_over(StandInEndpoint(triples))


ENGINES = pytest.mark.parametrize("opened", [local, without_sets, by_rdflib, endpoint])


async def answers(graph: KGAdapter, *expressions: str) -> list[Reply]:
    async with Client(build_server(graph, UNHURRIED)) as client:
        asked = [{"expression": each, "evidence": "none"} for each in expressions]
        replies = [reply_of(await client.call_tool("Compose", each)) for each in asked]
    await graph.aclose()
    return [reply.plain for reply in replies]


def told(reply: Reply) -> str:
    """Return an answer without ids."""
    return re.sub(r" \(<[^>]*>\)", "", reply.text)


ANSWERED = {
    "Group[Type[visit], animal, Sum[fee]]": (
        "3 groups. The sum of fee, over 4 values of 4 nodes. 1 node in groups has no fee, and 1 has a value that is "
        "not a number; they are not counted. 1 more group has no fee. 1 node has no animal and is not counted.\n"
        "Rex: 20 (2 values)\nMo: 15 (1 value)\nPip: 12.5 (1 value)"
    ),
    "Group[Type[animal], owner, Mean[-animal/fee]]": "2 groups.\nBo Berg: 12.5 (1 value)\nAnn Lee: 11.6667 (3 values)",
    "Group[Type[visit], animal/owner, Min[seen at]]": "Ann Lee: 2024-05-01 (4 values).",
    "Group[Type[visit], animal, Max[fee]]": "3 groups.\nMo: 15 (1 value)\nPip: 12.5 (1 value)\nRex: 10 (2 values)",
    "Group[Type[visit], animal, Count[fee]]": "3 groups.\nMo: 2\nRex: 2\nPip: 1",
    "Group[Type[animal], owner, Count[-animal]]": "2 groups.\nAnn Lee: 4\nBo Berg: 1",
    'Group[Type[visit], "seen at" by month]': (
        "3 groups. 2 nodes have no seen at, and 1 has a value that is not a date; they are not counted.\n"
        "2024-05: 2\n2024-06: 1\n2025: 1"
    ),
    "Group[Type[visit], seen at by year, Sum[fee]]": "2024: 35 (3 values). The sum of fee, over 3 values of 3 nodes.",
    "Group[Type[visit], seen at by day, Count[animal]]": (
        "4 groups.\n2024-05-01: 1\n2024-05-20: 1\n2024-06-02: 1\n2025: 1"
    ),
    "Top[Group[Type[visit], animal, Sum[fee]], 1]": "Rex: 20 (2 values). The largest of 3.",
    "Bottom[Group[Type[visit], animal, Sum[fee]], 1]": "Pip: 12.5 (1 value). The smallest of 3.",
    "Top[Type[animal], Sum[-animal/fee], 1]": (
        "Rex: 20 (2 values). Ranked by the sum of fee. 1 node also has a value that is not a number, which is not "
        "counted. 1 more has no fee and is not counted."
    ),
    "Bottom[Type[animal], Mean[-animal/fee], 1]": "Rex: 10 (2 values). Ranked by the mean of fee.",
    "Top[Type[animal], Min[-animal/seen at], 1]": "Mo: 2024-06-02 (2 values). Ranked by the first of seen at.",
    "Top[Type[animal], -animal/fee, 1]": (
        'Mo: 2: 15, "waived". Some nodes have several values of fee and are ranked by the greatest; '
        "Top[…, Sum[-animal/fee], 1] ranks by the sum; Mean and Min work alike."
    ),
    "Bottom[Type[animal], -animal/seen at, 1]": (
        "Some nodes have several values of seen at and are ranked by the first; "
        "Bottom[…, Max[-animal/seen at], 1] ranks by the last."
    ),
    "Table[Type[animal], Sum[-animal/fee], Count[-animal]]": (
        "4 rows. Column 1: the sum of fee. Column 2: the number of nodes over animal.\n"
        "Mo | 15 (1 value) | 2\nPip | 12.5 (1 value) | 1\nRex | 20 (2 values) | 2\nZoe | none | 1"
    ),
    "Sum[Type[animal], -animal/fee]": (
        "47.5. Of 4 values of 3 nodes. 1 node also has a value that is not a number, which is not counted. "
        "1 more has no fee and is not counted."
    ),
    "Max[Type[visit], fee]": "40. 1 more has no fee, and 1 has a value that is not a number; they are not counted.",
    "Sum[Type[room], width]": "7. In m.",
    "Count[Where[Type[visit], fee > Mean[Type[visit], fee]]]": "1. Compared with 17.5, over 5 nodes.",
    "Count[Where[Type[room], width < Mean[Type[room], width]]]": "1. Compared with 3.5, over 2 nodes. In m.",
    "Group[Type[box], in, Sum[load]]": 'Hall: "7"^^e:kg (2 values).',
}


@ENGINES
async def test_totals_and_what_they_are_over_are_the_same_on_every_engine(
    opened: Callable[[Path], KGAdapter], tmp_path: Path
) -> None:
    found = await answers(opened(tmp_path), *ANSWERED)
    for reply, (expression, wanted) in zip(found, ANSWERED.items(), strict=True):
        summary, *lines = told(reply).replace("^^<http://e.org/kg>", "^^e:kg").splitlines()
        sentences, *wanted_lines = wanted.splitlines()
        for sentence in sentences.split(". "):
            assert sentence.removesuffix(".") in summary, (expression, summary)
        if wanted_lines:
            assert [line for line in lines if not line.startswith("in all")] == wanted_lines, expression


async def test_a_total_is_a_number_in_the_rows_for_programs() -> None:
    (grouped, ranked, table) = await answers(
        by_rdflib(Path()),
        "Group[Type[visit], animal, Sum[fee]]",
        "Top[Type[box], Max[load]]",
        "Table[Type[animal], Count[-animal/fee]]",
    )
    assert rows(grouped.data["results"])[0] == ["1", "e:rex", "e:animal", "20", "number"]
    assert rows(ranked.data["results"])[0][1:] == ["e:b2", "e:load", "4", "e:kg"]
    assert [row[1:] for row in rows(table.data["results"])][-1] == ["e:zoe", "", "0", "number"]


async def test_a_condition_on_several_values_says_that_any_of_them_may_meet_it() -> None:
    several, single, remote = (
        *await answers(
            by_rdflib(Path()), "Count[Where[Type[animal], -animal/fee > 9]]", "Count[Where[Type[visit], fee > 9]]"
        ),
        *await answers(endpoint(Path()), "Count[Where[Type[animal], -animal/fee > 9]]"),
    )
    assert several.text.endswith(" 2 have several values of fee: any of them may meet the condition.")
    assert "several" not in single.text
    assert told(remote).endswith("Of several values of one node any may meet the condition on fee.")


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        (
            "Group[Union[Type[box], Type[crate]], in, Sum[load]]",
            "load has values in different units, which are not",
        ),
        ("Group[Type[visit], animal, Sum[seen at]]", "Dates have no sum and no mean"),
        ("Group[Type[visit], fee by month]", "fee has numbers, and only dates are grouped by month."),
        ("Top[Type[animal], Sum[-animal], 1]", "animal leads to nodes, which have no Sum: Count[-animal] counts them."),
        ("Group[Type[visit], animal, fee]", "Expected Sum, Mean, Min, Max or Count of a feature."),
        ("Group[Type[visit], animal, Sum[Type[visit], fee]]", "Expected the path alone within Group;"),
        ("Sum[Group[Type[visit], animal], fee]", "One for each group or member: Group[set, relation, Sum[path]]"),
        ("Where[Type[animal], Sum[-animal/fee] > 9]", "One for each group or member: Group[set, relation, Sum[path]]"),
        ("Sum[Type[animal], Mean[-animal/fee]]", "One for each group or member: Group[set, relation, Sum[path]]"),
    ],
)
async def test_what_cannot_be_added_up_is_refused_with_what_can(expression: str, problem: str) -> None:
    (reply,) = await answers(by_rdflib(Path()), expression)
    assert problem in told(reply)


async def test_a_relation_whose_name_ends_like_a_part_of_a_date_is_that_relation() -> None:
    paid, whole, part = await answers(
        by_rdflib(Path()),
        "Group[Type[room], paid by month]",
        'Group[Type[room], "paid by month"]',
        'Group[Type[room], "paid by month" by year]',
    )
    assert paid.lines == whole.lines == ["2024-05-01: 1", "2024-05-02: 1"]
    assert told(part).startswith("2024: 2.")
