"""Nodes without a name are shown with what they hold, as one hop."""

import re
from collections.abc import Callable

from calls import call, rows, texts
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.testing import EXAMPLE
from observers import CountingGraph
from sparql_stand_in import adapter_over, endpoint_of

CAREERS = (
    'town label "Bikmouth"@en',
    'zecho label "Zecho Fosbeiský"@en',
    'ada label "Ada Lom"@en',
    'mayor label "mayor"@en',
    'career label "career entry"@en',
    'at label "at"@en',
    'from label "from"@en',
    "zecho career S1",
    "zecho career _:b",
    "S1 type Entry",
    "S1 at town",
    "S1 role mayor",
    'S1 from "1988-03-27"^^<http://www.w3.org/2001/XMLSchema#date>',
    'S1 to "1993-04-06"^^<http://www.w3.org/2001/XMLSchema#date>',
    "_:b at town",
    "_:b role mayor",
    "_:b deputy _:c",
    "_:c held ada",
    "zecho knows P7",
    "ada knows P7",
    "P7 near town",
    "zecho knows lonely",
    "lonely near town",
    "lonely near ada",
)
ZECHO, TOWN = f"<{EXAMPLE}zecho>", f"<{EXAMPLE}town>"


def short(text: str) -> str:
    """Return a text in which ids are local names."""
    return text.replace("example:", "")


async def test_a_career_entry_is_shown_with_what_it_holds() -> None:
    reply = await call(CountingGraph(CAREERS), "GetNeighbor", entity=ZECHO)
    lines = [short(line) for line in reply.plain.lines]
    entry = "S1 [at Bikmouth; from 1988-03-27; role mayor; to 1993-04-06]"
    assert [line for line in lines if line.endswith(entry)]
    (nameless,) = [line for line in lines if "_:" in line]
    assert "[at Bikmouth; deputy _:" in nameless


async def test_what_refers_to_an_entry_comes_first_where_it_is_seen_from_its_other_end() -> None:
    reply = await call(CountingGraph(CAREERS), "GetNeighbor", entity=TOWN, direction="in", relation=f"<{EXAMPLE}at>")
    assert ("S1 [career entry of Zecho Fosbeiský; from 1988-03-27; role mayor; to 1993-04-06]") in [
        short(line) for line in reply.plain.lines
    ]


async def test_the_data_holds_what_is_behind_an_entry_as_rows_with_labels() -> None:
    reply = await call(CountingGraph(CAREERS), "GetNeighbor", entity=ZECHO)
    held = [[short(cell) for cell in row] for row in rows(reply.data["held"])]
    assert [row for row in held if row[0] == "S1"] == [
        ["S1", "at", "town"],
        ["S1", "from", "1988-03-27"],
        ["S1", "role", "mayor"],
        ["S1", "to", "1993-04-06"],
    ]
    assert {"Bikmouth", "mayor"} <= set(texts(reply.data["labels"]).values())


async def test_things_of_their_own_are_not_opened() -> None:
    reply = await call(CountingGraph(CAREERS), "GetNeighbor", entity=ZECHO, relation=f"<{EXAMPLE}knows>")
    assert [short(line).rpartition(" | ")[2] for line in reply.lines] == ["P7", "lonely"]
    assert "held" not in reply.data


async def test_opening_costs_one_request_and_none_where_nothing_is_to_be_opened() -> None:
    plain, entries = CountingGraph(CAREERS), CountingGraph(CAREERS)
    await call(plain, "GetNeighbor", entity=f"<{EXAMPLE}lonely>")
    await call(entries, "GetNeighbor", entity=ZECHO)
    assert [len(graph.frontiers) for graph in (plain, entries)] == [1, 2]


async def test_many_facts_of_a_blank_node_are_counted_and_the_first_shown() -> None:
    graph = CountingGraph(["a has _:b", *(f"_:b holds c{number:02}" for number in range(20))])
    reply = await call(graph, "GetNeighbor", entity=f"<{EXAMPLE}a>")
    (line,) = reply.lines
    assert line.endswith("; 21 facts in all]")
    assert len(rows(reply.data["held"])) == 11


async def test_what_blank_nodes_hold_comes_with_the_answer_where_no_request_can_be_about_them() -> None:
    endpoint, here = endpoint_of(CAREERS[:9] + CAREERS[14:16]), CountingGraph(CAREERS[:9] + CAREERS[14:16])
    there, before = adapter_over(endpoint), 0
    for tool, about, requests in (
        ("GetNeighbor", {"entity": ZECHO}, 3),  # The first blank node that is met costs one more.
        ("GetNeighbor", {"entity": TOWN, "direction": "in"}, 2),
        ("observe", {"question": "Whose role was it?", "entities": [ZECHO], "hops": 1}, 2),
        ("observe", {"question": "Whose role was it?", "entities": [TOWN], "hops": 2}, 3),
    ):
        theirs, mine = [await call(graph, tool, **about) for graph in (there, here)]
        assert [plain(line) for line in theirs.lines] == [plain(line) for line in mine.lines]
        assert "[" in theirs.text
        assert len(endpoint.asked) - before <= requests
        before = len(endpoint.asked)


def plain(text: str) -> str:
    """Return a text in which ids are local names, and no blank node has a name."""
    return re.sub(r"\b(ex|example):", "", re.sub(r"_:[\w-]+", "_:", text))


async def test_where_blank_nodes_are_not_opened_the_answer_says_so() -> None:
    graph = adapter_over(endpoint_of(CAREERS), edge_namespace=EXAMPLE)
    listed = await call(graph, "GetNeighbor", entity=ZECHO)
    seen = await call(graph, "observe", question="Whose career was it?", entities=[ZECHO])
    for reply in (listed, seen):
        assert "What some nodes without a name (_:…) hold is not here" in reply.plain.summary
    assert any("ex:S1 [at Bikmouth; " in line for line in listed.plain.lines)
    path = await call(graph, "GetPath", source=ZECHO, target=f"<{EXAMPLE}lonely>", avoid_hubs=False, max_hops=2)
    assert "Not all nodes without a name (_:…) can be passed through here" in path.plain.summary
    assert path.data["exhaustive"] is False


ENTRIES = """
@prefix e: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
e:ada rdfs:label "Ada Lom" ; e:career _:one , e:S2 ; e:motto "Onwards" . e:mayor rdfs:label "mayor" .
e:career rdfs:label "career entry" . e:role rdfs:label "role" . e:from rdfs:label "from" . e:Entry rdfs:label "entry" .
_:one a e:Entry ; e:role e:mayor ; e:from "1988-03-27"^^xsd:date .
e:S2 a e:Entry ; e:role e:mayor ; e:from "1993-04-06"^^xsd:date .
"""
OF_ADA = "career entry of Ada Lom; from"


async def test_no_tool_shows_a_node_without_a_name_by_its_id_alone(graph_of: Callable[[str], LocalAdapter]) -> None:
    graph = graph_of(ENTRIES)
    alone = await call(graph, "Sparql", query="SELECT ?c { e:ada e:career ?c } ORDER BY ?c")
    beside = await call(graph, "Sparql", query="SELECT ?c ?r ?w { ?w e:career ?c . ?c e:role ?r } ORDER BY ?c")
    nodes = [row[0] for row in rows(alone.data["rows"])]
    dates = ["1988-03-27", "1993-04-06"]
    assert alone.plain.lines[1:] == [
        f"{node} [{OF_ADA} {date}; role mayor]" for node, date in zip(nodes, dates, strict=True)
    ]
    # What the row itself says is not in the brackets.
    assert beside.plain.lines[1:] == [
        f"{node} [from {date}] | mayor | Ada Lom" for node, date in zip(nodes, dates, strict=True)
    ]
    named = await call(graph, "Retrieve", text=nodes)
    instances = await call(graph, "GetNeighbor", entity="entry", direction="in")
    found = [line for line in named.plain.lines if line.startswith(tuple(nodes))]
    assert len(found) == len(nodes)
    for line in (*found, *instances.plain.lines):
        assert re.search(r"(?:_:|e:S)\w+ \[career entry of Ada Lom", line), line


async def test_intermediate_nodes_are_listed_in_the_order_of_their_dates(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    more = (
        'e:ada e:career e:S1 , e:S3 , e:S4 . e:S1 e:role e:mayor ; e:at "Bank" . e:S3 e:role e:mayor ; e:from '
        '"1951"^^xsd:gYear . e:S4 e:role e:mayor ; e:from "1988-03-27"^^xsd:date ; e:to "1999-01-01"^^xsd:date .'
    )
    graph = graph_of(ENTRIES + more)
    for reply in (
        await call(graph, "GetNeighbor", entity="Ada Lom", relation="career entry"),
        await call(graph, "Compose", expression="Neighbor[Ada Lom, career entry]", evidence="none"),
    ):
        nodes = [line.partition(" ")[0] for line in reply.plain.lines]
        assert [node if node.startswith("e:") else "_:" for node in nodes] == ["e:S3", "_:", "e:S4", "e:S2", "e:S1"]


async def test_rows_that_fit_only_without_what_their_nodes_hold_are_all_shown(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    many = "\n".join(f'e:ada e:career [ e:role e:mayor ; e:from "{year}" ; e:x "{year}" ] .' for year in range(80))
    query = "SELECT ?c ?year { ?c e:x ?year }"
    reply = await call(graph_of(ENTRIES + many), "Sparql", query=query)
    assert reply.summary == "80 rows, all here."


async def test_a_line_with_a_value_ends_with_the_value(graph_of: Callable[[str], LocalAdapter]) -> None:
    reply = await call(graph_of(ENTRIES), "Feature", entity="Ada Lom", feature="e:motto")
    assert reply.plain.text == 'Ada Lom | e:motto | "Onwards"'
