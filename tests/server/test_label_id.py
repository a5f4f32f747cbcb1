"""`label (id)`, as every answer prints things, is taken wherever an entity, relation, class or type is asked."""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

import pyoxigraph
import pytest

from calls import Reply, call, refusal, rows, several_graphs
from kg_adapters.importing.build import build_store
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import KGAdapter
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.queries import Queries
from kg_server.naming.labelled import with_ids
from small_graphs import shared_store
from sparql_stand_in import StandInEndpoint, parts_of
from tables import written

NAMESPACES: Final = {
    "e": "http://example.org/",
    "dbr": "http://dbpedia.org/resource/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
}
HEAD: Final = "\n".join(f"@prefix {prefix}: <{space}> ." for prefix, space in NAMESPACES.items())
TURTLE: Final = (
    HEAD
    + r"""
e:Planet rdfs:label "planet (class)" .
dbr:Mercury_\(planet\) rdfs:label "Mercury" ; a e:Planet ; e:orbits dbr:Sun ; e:mass 3 .
dbr:Venus rdfs:label "Venus" ; a e:Planet ; e:orbits dbr:Sun ; e:mass 5 ; <http://e.org/p#of> dbr:Sun .
dbr:Sun rdfs:label "Sun, the star [G2]" ; e:near e:dash ; e:note "bright" .
e:element rdfs:label "Mercury (element)" ; e:orbits dbr:Sun .
e:planet rdfs:label "Jupiter" ; e:orbits dbr:Sun .
e:saturn rdfs:label "Saturn (e:planet)" ; e:orbits dbr:Sun .
e:dash rdfs:label "-dash" ; e:orbits dbr:Sun .
<http://other.org/a,b> e:orbits dbr:Sun .
e:orbits rdfs:label "orbits/circles, roughly = around" .
e:mass rdfs:label "mass (kg)" .
e:near rdfs:label "near" .
<http://e.org/p#of> rdfs:label "-part of" .
"""
)
ORBITS: Final = "orbits/circles, roughly = around (e:orbits)"
SUN: Final = "Sun, the star [G2] (dbr:Sun)"
MERCURY: Final = "Mercury (dbr:Mercury_(planet))"

Arguments: TypeAlias = Mapping[str, object]


@pytest.fixture(params=["file", "endpoint"])
async def planets(request: pytest.FixtureRequest) -> AsyncIterator[KGAdapter]:
    """The same graph from a Turtle file and behind an endpoint."""
    if request.param == "file":
        async with aclosing(LocalAdapter(shared_store(TURTLE))) as graph:
            yield graph
    else:
        triples = pyoxigraph.parse(TURTLE, pyoxigraph.RdfFormat.TURTLE)
        lines = pyoxigraph.serialize(triples, format=pyoxigraph.RdfFormat.N_TRIPLES)
        assert lines is not None
        parts = parts_of(StandInEndpoint(lines.decode()), Queries.of(DIALECTS["standard"], Vocabulary()))
        async with aclosing(SparqlAdapter(replace(parts, prefixes=Prefixes(NAMESPACES, blank_nodes=False)))) as graph:
            yield graph


def answer(reply: Reply) -> dict[str, object]:
    """Return what an answer says apart from the texts that it was asked with."""
    assert not reply.is_error, reply.text
    return {name: value for name, value in reply.data.items() if name not in {"read", "knowledge", "parts"}}


DOORS: Final[Mapping[str, tuple[str, Arguments, Arguments]]] = {
    "entity": ("GetNeighbor", {"entity": MERCURY}, {"entity": "dbr:Mercury_(planet)"}),
    "entity by its IRI": (
        "GetNeighbor",
        {"entity": "a,b (<http://other.org/a,b>)"},
        {"entity": "<http://other.org/a,b>"},
    ),
    "entity whose label is escaped": ("GetNeighbor", {"entity": r"\-dash (e:dash)"}, {"entity": "e:dash"}),
    "entity whose label is cut": ("GetNeighbor", {"entity": "Sun, the s… (dbr:Sun)"}, {"entity": "dbr:Sun"}),
    "entity with a label in quotes": ("GetNeighbor", {"entity": f'"{SUN[:-10]}" (dbr:Sun)'}, {"entity": "dbr:Sun"}),
    "entity in quotes": ("GetNeighbor", {"entity": f' "{MERCURY}" '}, {"entity": "dbr:Mercury_(planet)"}),
    "id in quotes": ("GetNeighbor", {"entity": "'dbr:Venus'"}, {"entity": "dbr:Venus"}),
    "relation": (
        "GetNeighbor",
        {"entity": "dbr:Sun", "relation": ORBITS, "direction": "in"},
        {"entity": "dbr:Sun", "relation": "e:orbits", "direction": "in"},
    ),
    "relation with a dash": (
        "GetNeighbor",
        {"entity": SUN, "relation": f"-{ORBITS}"},
        {"entity": "dbr:Sun", "relation": "e:orbits", "direction": "in"},
    ),
    "relation whose label begins with a dash": (
        "GetNeighbor",
        {"entity": "dbr:Venus", "relation": r"\-part of (<http://e.org/p#of>)"},
        {"entity": "dbr:Venus", "relation": "<http://e.org/p#of>"},
    ),
    "degree": (
        "Degree",
        {"entity": SUN, "relation": f"-{ORBITS}", "direction": "out"},
        {"entity": "dbr:Sun", "relation": "e:orbits", "direction": "in"},
    ),
    "degree with a dash alone": (
        "Degree",
        {"entity": "dbr:Sun", "relation": "-near (e:near)"},
        {"entity": "dbr:Sun", "relation": "e:near", "direction": "in"},
    ),
    "relation with a dash and its direction": (
        "GetNeighbor",
        {"entity": "dbr:Sun", "relation": "-e:orbits", "direction": "in"},
        {"entity": "dbr:Sun", "relation": "e:orbits", "direction": "in"},
    ),
    "feature": (
        "Feature",
        {"entity": "Venus (dbr:Venus)", "feature": "mass (kg) (e:mass)"},
        {"entity": "dbr:Venus", "feature": "e:mass"},
    ),
    "ends of a path": (
        "GetPath",
        {"source": "Venus (dbr:Venus)", "target": MERCURY},
        {"source": "dbr:Venus", "target": "dbr:Mercury_(planet)"},
    ),
    "observed entities": (
        "observe",
        {"question": "What is near?", "entities": ["Venus (dbr:Venus)", MERCURY]},
        {"question": "What is near?", "entities": ["dbr:Venus", "dbr:Mercury_(planet)"]},
    ),
    "what a schema is about": ("Schema", {"about": "planet (class) (e:Planet)"}, {"about": "e:Planet"}),
    "relation of a schema": ("Schema", {"about": ORBITS}, {"about": "e:orbits"}),
}


@pytest.mark.parametrize("door", DOORS)
async def test_a_label_with_its_id_is_answered_as_the_id_is(planets: KGAdapter, door: str) -> None:
    tool, shown, by_id = DOORS[door]
    assert answer(await call(planets, tool, **shown)) == answer(await call(planets, tool, **by_id))


EXPRESSIONS: Final[Mapping[str, str]] = {
    f"Neighbor[{MERCURY}, {ORBITS}]": "Neighbor[dbr:Mercury_(planet), e:orbits]",
    f'Neighbor["Sun, the star [G2]" (dbr:Sun), -{ORBITS}]': "Neighbor[dbr:Sun, -e:orbits]",
    "Neighbor[Venus (dbr:Venus), ~near (e:near)]": "Neighbor[dbr:Venus, ~e:near]",
    "Neighbor[Venus (dbr:Venus), e:orbits/near (e:near)]": "Neighbor[dbr:Venus, e:orbits/e:near]",
    'Neighbor[Venus (dbr:Venus), "orbits/circles, roughly = around" (e:orbits)+]': "Neighbor[dbr:Venus, e:orbits+]",
    "Feature[Venus (dbr:Venus), mass (kg) (e:mass)]": "Feature[dbr:Venus, e:mass]",
    "Count[Type[planet (class) (e:Planet)]]": "Count[Type[e:Planet]]",
    "Where[Type[planet (class) (e:Planet)], mass (kg) (e:mass) > 4]": "Where[Type[e:Planet], e:mass > 4]",
    'Where[Type[e:Planet], "orbits/circles, roughly = around" (e:orbits) = "Sun, the star [G2]" (dbr:Sun)]': (
        "Where[Type[e:Planet], e:orbits = dbr:Sun]"
    ),
    "Top[Type[planet (class) (e:Planet)], mass (kg) (e:mass), 1]": "Top[Type[e:Planet], e:mass, 1]",
    'Group[Type[e:Planet], "orbits/circles, roughly = around" (e:orbits)]': "Group[Type[e:Planet], e:orbits]",
    "Table[Type[e:Planet], mass (kg) (e:mass), rdf:type]": "Table[Type[e:Planet], e:mass, rdf:type]",
    f"Union[{MERCURY}, Venus (dbr:Venus)]": "Union[dbr:Mercury_(planet), dbr:Venus]",
    f"Retrieve[{SUN}]": "Retrieve[dbr:Sun]",
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
async def test_a_label_with_its_id_stands_everywhere_in_an_expression(planets: KGAdapter, expression: str) -> None:
    shown = await call(planets, "Compose", expression=expression)
    by_id = await call(planets, "Compose", expression=EXPRESSIONS[expression])
    assert (shown.is_error, shown.text) == (False, by_id.text)


async def test_a_label_with_its_id_stands_for_an_id_in_a_query(planets: KGAdapter) -> None:
    named = f'SELECT ?x {{ ?x a @"planet (class) (e:Planet)" ; @"{ORBITS}" @"{SUN}" }} ORDER BY ?x'
    by_id = "SELECT ?x { ?x a e:Planet ; e:orbits dbr:Sun } ORDER BY ?x"
    found = await call(planets, "Sparql", query=named)
    assert (found.is_error, found.text) == (False, (await call(planets, "Sparql", query=by_id)).text)


async def test_a_label_with_its_id_is_exactly_that_thing_among_its_type(planets: KGAdapter) -> None:
    found = await call(planets, "Retrieve", text=[MERCURY, "Venus (dbr:Venus)"], type="planet (class) (e:Planet)")
    assert (found.data["matches"], [row[0] for row in rows(found.data["candidates"])]) == (
        {MERCURY: "exact", "Venus (dbr:Venus)": "exact"},
        ["dbr:Mercury_(planet)", "dbr:Venus"],
    )
    listed = await call(planets, "Retrieve", text=f"{MERCURY}, Venus (dbr:Venus)")
    assert [row[0] for row in rows(listed.data["candidates"])] == ["dbr:Mercury_(planet)", "dbr:Venus"]
    other = await call(planets, "Retrieve", text=SUN, type="e:Planet")
    assert other.data["match"] != "exact"


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("Mercury (element)", "e:element"),
        ("Mercury (element) (e:element)", "e:element"),
        ("dbr:Mercury_(planet)", "dbr:Mercury_(planet)"),
        ("planet (class)", "e:Planet"),
        ("Jupiter (e:planet)", "e:planet"),
        ("Saturn (e:planet)", "e:saturn"),
    ],
)
async def test_a_name_or_id_that_ends_in_parentheses_is_read_as_a_whole(
    planets: KGAdapter, text: str, node: str
) -> None:
    found = await call(planets, "Retrieve", text=text)
    assert (found.data["match"], rows(found.data["candidates"])[0][0]) == ("exact", node)


@pytest.fixture
def marks(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    """A graph in which names look like ids of other things with brackets, parentheses or quotation marks."""
    return graph_of(
        f"{HEAD}\n"
        """
e:Sun rdfs:label "Helios" ; a e:Thing ; e:near e:x . e:star rdfs:label "Sun [G2]" ; a e:Thing ; e:near e:x .
e:DEU rdfs:label "Germany" ; a e:Thing ; e:near e:x . e:boat rdfs:label "DEU" ; e:near e:x .
e:two rdfs:label "John" ; e:near e:x . e:one rdfs:label "John (two)" ; e:near e:x .
e:draft rdfs:label "e:Sun [draft]" ; e:near e:x ; e:close e:Sun ; e:far e:DEU .
e:quote rdfs:label 'say "yes", Bob' ; e:near e:x .
e:near rdfs:label "near" . e:close rdfs:label "near (e:near)" . e:far rdfs:label "e:near [m]" .
"""
    )


@pytest.mark.parametrize("kind", [None, "e:Thing"])
async def test_a_name_comes_before_the_id_of_something_else_that_it_looks_like(
    marks: LocalAdapter, kind: str | None
) -> None:
    for text, match, node in (
        ("Sun [G2]", "exact", "e:star"),
        ('"Sun [G2]"', "close", "e:star"),
        ("e:Sun [G2]", "exact", "e:Sun"),
        ("'e:Sun'", "exact", "e:Sun"),
        ("Germany (DEU)", "exact", "e:DEU"),
        ("Germany (DEU) [one]", "exact", "e:DEU"),
        *((("John (two)", "exact", "e:one"), ("e:Sun [draft]", "exact", "e:draft")) if kind is None else ()),
        *((('"DEU"', "close", "e:boat"), ("'DEU'", "close", "e:boat")) if kind is None else ()),
    ):
        found = await call(marks, "Retrieve", text=text, type=kind)
        assert (text, found.data["match"], rows(found.data["candidates"])[0][0]) == (text, match, node)


async def test_a_memory_reads_a_name_before_the_id_that_it_looks_like(marks: LocalAdapter) -> None:
    for head, shown in (("e:Sun [draft]", "e:Sun [draft]"), ("Sun [G2]", "Sun [G2]"), ("e:Sun [one]", "Helios")):
        kept = (await call(marks, "memory-append", triples=[[head, "near (e:near)", "e:x"]])).plain
        assert kept.lines == [f"{shown} -[near]-> e:x"]


@pytest.mark.parametrize(
    ("expression", "summary"),
    [
        ("Neighbor[Sun [G2] (e:star), near (e:near)]", "e:x."),
        ("Count[Union[Sun [G2] (e:star), Helios (e:Sun)]]", '2. Namely Helios, "Sun [G2]".'),
        (
            "Neighbor[e:x, -near], Count[Sun [G2] (e:star)]",
            '2 parts, worked out side by side. Part 2: Namely "Sun [G2]".',
        ),
        ("Count[Where[Type[e:Thing], near = Sun [G2] (e:star)]]", "0."),
    ],
)
async def test_a_label_that_holds_brackets_is_no_call(marks: LocalAdapter, expression: str, summary: str) -> None:
    found = (await call(marks, "Compose", expression=expression)).plain
    assert (found.is_error, found.summary[: len(summary)]) == (False, summary)


async def test_a_name_that_holds_quotation_marks_is_proposed_as_an_expression_takes_it(marks: LocalAdapter) -> None:
    refused = await refusal(marks, "Compose", expression='Neighbor[say "yes", Bob, near (e:near)]')
    name = refused.partition(" Write ")[2].partition(", in quotation marks.")[0]
    found = await call(marks, "Compose", expression=f"Neighbor[{name}, near (e:near)]")
    assert (name, found.summary) == (r'"say \"yes\", Bob"', "e:x.")


@pytest.mark.parametrize(
    ("relation", "tail"),
    [
        ("near (e:near) (e:close)", "Helios"),
        ("near (e:near)", "e:x"),
        ("e:near [m]", "Germany"),
        ("e:near [one]", "e:x"),
    ],
)
async def test_a_relation_is_read_as_it_is_printed(marks: LocalAdapter, relation: str, tail: str) -> None:
    found = (await call(marks, "GetNeighbor", entity="e:draft", relation=relation)).plain
    assert (found.is_error, found.text.endswith(f" | {tail}.")) == (False, True), found.text
    composed = (await call(marks, "Compose", expression=f"Neighbor[e:draft, {relation}]")).plain
    assert (composed.is_error, composed.summary) == (False, f"{tail}.")


MISREAD: Final[Mapping[str, tuple[str, Arguments, str]]] = {
    "entity": ("GetNeighbor", {"entity": "Mars (dbr:Venus)"}, "'Mars (dbr:Venus)' read as Venus, by its id"),
    "entity of another's label": (
        "GetNeighbor",
        {"entity": "Jupiter (dbr:Venus)"},
        "'Jupiter (dbr:Venus)' is read as Venus, not Jupiter.",
    ),
    "found": ("Retrieve", {"text": "Mars (dbr:Venus)"}, "Close: read 'Mars (dbr:Venus)' as Venus"),
    "type": (
        "Retrieve",
        {"text": "Venus", "type": "moon (e:Planet)"},
        "'moon (e:Planet)' read as planet (class), by its",
    ),
    "relation": (
        "GetNeighbor",
        {"entity": "Venus", "relation": "near (e:orbits)"},
        "'near (e:orbits)' is read as orbits/circles, roughly = around, by its id, not by its label.",
    ),
    "feature": (
        "Feature",
        {"entity": "Venus", "feature": "weight (e:mass)"},
        "'weight (e:mass)' is read as mass (kg), by",
    ),
    "schema": ("Schema", {"about": "moon (e:Planet)"}, "'moon (e:Planet)' read as planet (class), by its id"),
    "nodes": ("Compose", {"expression": "Feature[Mars (dbr:Venus), e:mass]"}, "'Mars (dbr:Venus)' read as Venus, by"),
    "class": ("Compose", {"expression": "Type[moon (e:Planet)]"}, "'moon (e:Planet)' read as planet (class), by"),
    "relation in an expression": (
        "Compose",
        {"expression": "Feature[Venus, weight (e:mass)]"},
        "'weight (e:mass)' is read as mass (kg), by its id",
    ),
    "query": ("Sparql", {"query": 'SELECT ?x { ?x e:orbits @"moon (dbr:Sun)" }'}, "'moon (dbr:Sun)' read as Sun"),
    "fact": (
        "memory-append",
        {"triples": ["moon (dbr:Venus) | e:orbits | dbr:Sun"]},
        "dbr:Venus is Venus in this graph, not moon; the id counts.",
    ),
}


@pytest.mark.parametrize("door", MISREAD)
async def test_an_id_counts_and_the_label_of_something_else_is_reported(planets: KGAdapter, door: str) -> None:
    tool, arguments, reported = MISREAD[door]
    found = await call(planets, tool, **arguments)
    assert not found.is_error, found.text
    assert re.sub(r" \((?:e|dbr):\w+\)(?!')", "", reported) in re.sub(r" \((?:e|dbr):\w+\)(?!')", "", found.text)


@pytest.mark.parametrize(
    "text", ["Venus (e:nothing)", f"Venus (dbr:Venus), {MERCURY}", "Venus (dbr:Venus) | near (e:near)"]
)
async def test_an_id_of_nothing_and_several_ids_are_no_single_thing(planets: KGAdapter, text: str) -> None:
    assert (await refusal(planets, "GetNeighbor", entity=text)).startswith("No entity matches")


@pytest.mark.parametrize(
    "text",
    ['"' * 1_000, "a" + " []" * 300, "'" + " (a" * 300 + ")'", '""', "()"],
    ids=["quotes", "brackets", "open", "empty", "parentheses"],
)
async def test_marks_around_nothing_are_nobodys_name(planets: KGAdapter, text: str) -> None:
    found = await call(planets, "Retrieve", text=text)
    assert found.data["match"] in {"none", "loose"}
    assert (await call(planets, "Compose", expression=f"Feature[{text}, mass]")).is_error
    refused = await refusal(planets, "memory-append", triples=[[text, "mass (kg)", "3"]])
    assert refused.startswith("No triple was kept")


async def test_an_id_as_the_data_has_it_counts_behind_the_label_of_its_row(tmp_path: Path) -> None:
    tables = {"people.csv": "id,name,boss\n1,John (2),2\n2,Mary,3\n3,Ann (boss),1\n"}
    build_store(written(tmp_path, tables), tmp_path / "store", ImportOptions())
    async with aclosing(LocalAdapter(open_store(tmp_path / "store"))) as graph:
        for text, row in (("Mary (2)", "2"), ("John (2)", "1"), ("John (2) (1)", "1"), ("Ann (boss)", "3")):
            found = await call(graph, "Retrieve", text=text)
            assert (found.data["match"], rows(found.data["candidates"])[0][0]) == ("exact", f"people:{row}")
        assert (await call(graph, "Retrieve", text="Nobody (2)")).data["match"] == "none"


async def test_an_alias_with_the_id_is_no_mistake(tokyo: KGAdapter) -> None:
    found = await call(tokyo, "GetNeighbor", entity="Edo (Q1490)", relation="Country (P17)")
    assert found.text == "Tokyo (Q1490) | country (P17) | Japan (Q17)."


async def test_a_relation_in_the_place_of_an_entity_is_told_to_be_one(tokyo: KGAdapter) -> None:
    assert (await refusal(tokyo, "GetNeighbor", entity="capital (P36)")).endswith("give it as the relation.")


async def test_a_memory_reads_a_name_in_parentheses_as_every_tool_does(planets: KGAdapter) -> None:
    lines = [f"{each} | {ORBITS} | {SUN}" for each in (MERCURY, "Mercury (element)", "Saturn (e:planet)")]
    kept = await call(planets, "memory-append", triples=lines)
    assert [line.partition(" -[")[0] for line in kept.lines] == [
        MERCURY,
        "Mercury (element) (e:element)",
        "Saturn (e:planet) (e:saturn)",
    ]


async def test_the_mark_of_a_graph_behind_a_fact_is_no_part_of_its_name(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    told = {
        "one": '<http://e.org/a> rdfs:label "Ann" ; e:knows e:b . e:b rdfs:label "Bob" . e:knows rdfs:label "knows" .',
        "two": '<http://e.org/a> rdfs:label "Ann" ; e:likes e:b . e:b rdfs:label "Bob" . e:likes rdfs:label "likes" .',
    }
    graphs = several_graphs({name: graph_of(f"{HEAD}\n{text}") for name, text in told.items()})
    both = {"graph": ["one", "two"]}
    walked = await call(graphs, "GetPath", source="Ann (<http://e.org/a>)", target="Bob (e:b)", **both)
    assert "-[knows (e:knows) [one]]->" in walked.text
    for relation in ("knows (e:knows) [one]", "likes (e:likes) [two]"):
        found = await call(graphs, "Compose", expression=f"Neighbor[Ann (<http://e.org/a>), {relation}]", **both)
        assert (found.is_error, found.summary) == (False, "Bob (e:b).")
    one = await call(graphs, "GetNeighbor", entity="Ann", relation="knows (e:knows) [one]", graph="one")
    assert one.text.endswith("| knows (e:knows) | Bob (e:b).")


@pytest.mark.parametrize("name", ["sample", "sample:world"])
async def test_what_an_answer_prints_is_taken_back_in_every_sample(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("samples")
    async with aclosing(LocalAdapter(open_sample(folder, name))) as graph:
        largest = (await graph.schema()).classes[0]
        assert largest.label is not None
        short = graph.prefixes.shorten(largest.iri)
        counted = await call(graph, "Compose", expression=f"Count[Type[{largest.label} ({short})]]")
        assert counted.summary == (await call(graph, "Compose", expression=f"Count[Type[{short}]]")).summary
        members = await call(graph, "Compose", expression=f"Type[{short}]")
        shown = [line for line in members.lines if with_ids(line)][:20]
        assert len(shown) == 20
        found = await call(graph, "Retrieve", text=shown, type=f"{largest.label} ({short})")
        matches = found.data["matches"]
        assert matches == dict.fromkeys(shown, "exact")
        for line in (await call(graph, "GetNeighbor", entity=shown[0])).lines:
            relation, bar, tail = line.partition(" | ")
            if bar and with_ids(relation) and with_ids(tail):
                again = await call(graph, "Compose", expression=f"Count[Neighbor[{shown[0]}, {relation}]]")
                assert (again.is_error, again.summary[0].isdigit()) == (False, True), again.text
