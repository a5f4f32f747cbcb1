"""What an answer says where something is not there: the graph says no, does not know, or knows only a part."""

from collections.abc import Callable, Collection, Mapping, Sequence

import pytest
import rdflib

from calls import call, rows
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.models import Count, Degree, Direction, NeighborPage
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri, Node
from kg_server.answers.coverage import MAX_COMPARED
from kg_server.names import plural

PREFIXES = (
    "@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
    "@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . "
)
FILMS = PREFIXES + (
    'e:Film rdfs:label "film" . e:director rdfs:label "director" . e:prize rdfs:label "prize" . '
    'e:captain rdfs:label "captain" . e:premiere rdfs:label "premiere" . e:Short rdfs:subClassOf e:Film . '
    + "".join(
        f'e:f{n} a e:Film ; rdfs:label "Film {n}" . '
        + (f'e:f{n} e:director e:d{n} ; e:premiere "19{n + 10}"^^xsd:gYear . ' if n else "")
        + (f"e:f{n} e:prize e:oscar . " if n in {1, 2, 3} else "")
        for n in range(20)
    )
    + "e:short a e:Short . e:ship e:captain e:ahab ."
)
FAMILY = PREFIXES + (
    'e:Person rdfs:label "person" . e:child rdfs:label "child" ; owl:inverseOf e:parent . '
    'e:parent rdfs:label "parent" . '
    "e:married a owl:SymmetricProperty . "
    + "".join(f"e:p{n} a e:Person . " for n in range(12))
    + "e:p0 e:child e:p1, e:p2, e:p3 . e:p1 e:parent e:p0 . e:p4 e:parent e:p0 . e:p5 e:parent e:p0 . "
    "e:p6 e:married e:p0 . e:p7 e:child e:p8 . e:p10 e:parent e:p9 ."
)


async def test_what_nearly_all_of_a_class_have_is_denied_where_missing(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    for tool, said in (("GetNeighbor", "has no director here; of"), ("Degree", "Of")):
        reply = await call(graph_of(FILMS), tool, entity="e:f0", relation="director")
        assert f"{said} 21 films 19 have one, so it seems to have none." in reply.plain.summary
        assert reply.data["knowledge"] == "denied"


@pytest.mark.parametrize(("having", "knowledge"), [(10, "unknown"), (17, "unknown"), (18, "denied"), (19, "denied")])
async def test_absence_is_a_denial_only_where_at_least_nine_of_ten_have_a_relation(
    graph_of: Callable[[str], LocalAdapter], having: int, knowledge: str
) -> None:
    films = "".join(f"e:f{n} a e:Film . " + (f"e:f{n} e:director e:d{n} . " if n < having else "") for n in range(20))
    graph = graph_of(f'{PREFIXES}e:Film rdfs:label "film" . e:director rdfs:label "director" . {films}')
    for tool in ("GetNeighbor", "Degree"):
        reply = await call(graph, tool, entity="e:f19", relation="director")
        assert (reply.data["status"], reply.data["knowledge"]) == ("empty", knowledge)


async def test_a_value_that_nearly_all_have_is_missing_and_not_denied(graph_of: Callable[[str], LocalAdapter]) -> None:
    reply = await call(graph_of(FILMS), "Feature", entity="e:f0", feature="premiere")
    assert reply.plain.summary.startswith(
        "Film 0 has no value of premiere here; of 21 films 19 have one, so its own is missing. "
    )
    assert reply.data["knowledge"] == "unknown"


async def test_what_no_instance_of_a_class_has_is_a_kind_of_thing_that_the_graph_does_not_know(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    reply = await call(graph_of(FILMS), "GetNeighbor", entity="e:f1", relation="captain")
    assert "no film here has one, so the graph does not know this kind of thing." in reply.summary
    assert reply.data["knowledge"] == "unknown"


async def test_a_class_with_few_instances_is_judged_by_the_wider_one(graph_of: Callable[[str], LocalAdapter]) -> None:
    reply = await call(graph_of(FILMS), "Degree", entity="e:short", relation="prize")
    assert reply.summary.endswith("Of 21 films 3 have one, so its absence proves nothing.")


async def test_an_edge_asked_for_as_a_value_and_a_value_asked_for_as_an_edge_are_shown_the_way(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    edge = await call(graph_of(FILMS), "Feature", entity="e:f1", feature="director")
    value = await call(graph_of(FILMS), "Degree", entity="e:f1", relation="premiere")
    assert "it leads to 1 node, which GetNeighbor shows" in edge.summary
    assert "It has 1 value of it, which Feature shows" in value.summary
    assert (edge.data["knowledge"], value.data["knowledge"]) == ("stated", "stated")


async def test_a_count_says_when_few_have_any(graph_of: Callable[[str], LocalAdapter]) -> None:
    rare = await call(graph_of(FILMS), "Degree", entity="e:f1", relation="prize")
    usual = await call(graph_of(FILMS), "Degree", entity="e:f1", relation="director")
    assert rare.plain.summary == (
        "Film 1 has 1 distinct neighbour over prize. Of 21 films 3 have one at all, so there may be "
        "more than the graph knows."
    )
    assert usual.plain.summary == "Film 1 has 1 distinct neighbour over director."


async def test_only_a_count_of_what_a_relation_leads_to_says_when_few_have_any(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph = graph_of(FAMILY)
    outgoing = await call(graph, "Compose", expression="Count[Neighbor[e:p7, child]]")
    incoming = await call(graph, "Compose", expression="Count[Neighbor[e:p8, -child]]")
    degree = await call(graph, "Degree", entity="e:p8", relation="child", direction="in")
    assert "child: of 12 people 3 have one at all, so there may be more" in outgoing.plain.summary
    assert incoming.plain.summary.startswith("1.")
    assert "at all" not in incoming.plain.summary
    assert "at all" not in degree.plain.summary


async def test_a_count_takes_what_is_stored_either_way_and_says_so(graph_of: Callable[[str], LocalAdapter]) -> None:
    reply = await call(graph_of(FAMILY), "Degree", entity="e:p0", relation="child", direction="out")
    assert reply.plain.summary.startswith(
        "e:p0 has 5 distinct outgoing neighbours over child, 2 of them stored only the other way, as parent. "
        "Lines that overlap, as inverses: child out and parent in."
    )
    assert (reply.data["neighbors"], reply.data["outgoing"], reply.data["incoming"]) == (
        5,
        {"e:child": 3},
        {"e:parent": 3},
    )


async def test_a_symmetric_relation_counts_from_either_side(graph_of: Callable[[str], LocalAdapter]) -> None:
    reply = await call(graph_of(FAMILY), "Degree", entity="e:p0", relation="e:married", direction="out")
    assert reply.data["neighbors"] == 1
    assert "over e:married, stored only in the other direction." in reply.summary
    both = await call(graph_of(FAMILY), "Degree", entity="e:p0", relation="e:married")
    assert (both.data["neighbors"], both.data["incoming"]) == (1, {"e:married": 1})


async def test_only_what_is_stored_backwards_counts_too(graph_of: Callable[[str], LocalAdapter]) -> None:
    reply = await call(graph_of(FAMILY), "Degree", entity="e:p8", relation="parent", direction="out")
    assert (reply.data["neighbors"], reply.data["knowledge"], reply.data["incoming"]) == (1, "stated", {"e:child": 1})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LocalAdapter:
    return LocalAdapter(open_sample(tmp_path_factory.mktemp("cache"), "sample:world"))


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("Wandering Tower (2016)", "captain"),
        ("Stohrau Glassworks", "telephone number"),
        ("Guvčá III", "retail price"),
        ("Bujian Vlekrümann", "blood group"),
    ],
)
async def test_a_question_that_the_fictional_world_cannot_answer_is_told_by_a_typed_field(
    world: LocalAdapter, name: str, asked: str
) -> None:
    entity = world.prefixes.shorten((await world.search(name, limit=1))[0].entity)
    for tool, argument in (("GetNeighbor", "relation"), ("Feature", "feature")):
        assert (await call(world, tool, entity=entity, **{argument: asked})).data["knowledge"] == "unknown"


async def test_no_path_is_not_known(graph_of: Callable[[str], LocalAdapter]) -> None:
    reply = await call(graph_of(FILMS), "GetPath", source="e:f1", target="e:ahab")
    assert (reply.data["status"], reply.data["knowledge"]) == ("empty", "unknown")
    linked = await call(graph_of(FILMS), "GetPath", source="e:f1", target="e:f2")
    assert linked.data["knowledge"] == "stated"


@pytest.mark.parametrize(
    ("noun", "several"),
    [
        ("human", "humans"),
        ("city", "cities"),
        ("day", "days"),
        ("big person", "big people"),
        ("church", "churches"),
        ("television series", "television series"),
        ("flights", "flights"),
        ("class", "classes"),
        ("city of the United States", "cities of the United States"),
        ("mountain (peak)", "mountains (peak)"),
    ],
)
def test_nouns_are_put_into_the_plural(noun: str, several: str) -> None:
    assert plural(noun) == several


async def test_neighbours_that_are_stored_only_the_other_way_round_are_shown(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    reply = await call(graph_of(FAMILY), "GetNeighbor", entity="e:p8", relation="parent")
    assert reply.plain.text == "e:p7 | child | e:p8, stored only the other way, as child."
    assert reply.data["triples"] == [["e:p7", "e:child", "e:p8"]]


async def test_neighbours_are_shown_once_whichever_way_they_are_stored(graph_of: Callable[[str], LocalAdapter]) -> None:
    reply = await call(graph_of(FAMILY), "GetNeighbor", entity="e:p0", relation="child")
    assert reply.plain.summary == ("e:p0 has 5 child, 2 of them stored only the other way, as parent:")
    heads_and_tails = {head if tail == "e:p0" else tail for head, _, tail in rows(reply.data["triples"])}
    assert (len(reply.plain.lines), len(heads_and_tails)) == (5, 5)


async def test_pages_go_on_from_what_is_stored_one_way_to_what_is_stored_the_other(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph, found, cursor = graph_of(FAMILY), list[list[str]](), dict[str, object]()
    for size in (2, 2, 1):
        page = await call(graph, "GetNeighbor", entity="e:p0", relation="child", limit=2, **cursor)
        assert (len(rows(page.data["triples"])), page.data["total"]) == (size, 5)
        found += rows(page.data["triples"])
        cursor = {"cursor": page.data.get("cursor")}
    whole = await call(graph, "GetNeighbor", entity="e:p0", relation="child")
    assert (sorted(found), cursor) == (sorted(rows(whole.data["triples"])), {"cursor": None})


async def test_a_symmetric_relation_is_shown_from_either_side_and_once(graph_of: Callable[[str], LocalAdapter]) -> None:
    graph = graph_of(FAMILY + "e:p20 e:married e:p21 . e:p21 e:married e:p20 .")
    one_way = await call(graph, "GetNeighbor", entity="e:p0", relation="e:married")
    assert "stored only in the other direction" in one_way.summary
    for arguments in ({}, {"relation": "e:married"}, {"relation": "e:married", "direction": "in"}):
        both = await call(graph, "GetNeighbor", entity="e:p20", **{"direction": "both", **arguments})
        ends = ["e:p21", "e:p20"] if arguments.get("direction") == "in" else ["e:p20", "e:p21"]
        assert [row for row in rows(both.data["triples"]) if row[1] == "e:married"] == [[ends[0], "e:married", ends[1]]]
        assert both.data["total"] == 1


async def test_the_inverse_of_a_hub_is_named_where_it_is_not_walked(graph_of: Callable[[str], LocalAdapter]) -> None:
    many = " ".join(f"e:p0 e:child e:kid{number} ." for number in range(MAX_COMPARED + 1))
    reply = await call(graph_of(FAMILY + many), "GetNeighbor", entity="e:p0", relation="child", limit=3)
    assert reply.plain.summary.endswith('More may be stored the other way, as parent: direction="in".')
    assert len(rows(reply.data["triples"])) == 3


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("GetNeighbor", {"entity": "e:p0"}, ". Stored the other way only: 2 of child as -parent."),
        ("GetNeighbor", {"entity": "e:p0", "direction": "in"}, ". Stored the other way only: 2 of -parent as child."),
        ("GetNeighbor", {"entity": "e:p1"}, "shows 1 more: child 1."),
        ("Sparql", {"query": "SELECT * { e:p0 e:child ?x }"}, "parent, holds 3 more links in all: (e:child|^e:parent)"),
        ("Sparql", {"query": "SELECT * { e:p0 e:child|^e:parent ?x }"}, "5 rows, all here."),
        ("Sparql", {"query": "SELECT (COUNT(*) AS ?n) { ?x e:parent ?y }"}, "child, holds 3 more links in all: "),
        ("Sparql", {"query": "SELECT * { ?x @'parent' ?y }"}, "parent includes child the other way round. 7 rows"),
    ],
)
async def test_facts_of_one_direction_name_the_inverse_that_holds_more(
    graph_of: Callable[[str], LocalAdapter], tool: str, arguments: dict[str, str], told: str
) -> None:
    assert told in (await call(graph_of(FAMILY), tool, **arguments)).plain.summary


async def test_a_card_names_each_triple_as_it_is_stored(graph_of: Callable[[str], LocalAdapter]) -> None:
    reply = await call(graph_of(FAMILY.replace("e:p2, e:p3", "e:p2")), "Retrieve", text="e:p0")
    assert "child (e:child) | 4, 2 as -parent (e:parent): e:p1, e:p2, e:p4, …" in reply.lines
    assert rows(reply.data["card"])[:2] == [["out", "e:child", "4", "e:p1", "e:p2"], ["in", "e:parent", "4", "e:p4"]]


MIXED = PREFIXES + (
    "e:made owl:inverseOf e:maker . e:eve e:made e:r9 . e:r0 a e:Car . "
    + "".join(f"e:r{n} a {'e:Boat' if n < 6 else 'e:Car'} ; e:seenBy e:eve ; e:maker e:eve . " for n in range(9))
)


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        (
            "Degree",
            {"entity": "e:eve", "relation": "seenBy"},
            ", 6 of e:Boat and 4 of e:Car, some of several of these.",
        ),
        (
            "Compose",
            {"expression": "Count[Neighbor[e:eve, -seenBy]]"},
            "6 of e:Boat and 4 of e:Car, some of several of these.",
        ),
        ("Schema", {"about": "seenBy"}, "| 9: 6 of e:Boat and 4 of e:Car, some of several of these, e.g."),
        # Those that are stored the other way would be missing.
        ("Degree", {"entity": "e:eve", "relation": "maker"}, ", 1 of them stored only the other way, as e:made."),
    ],
)
async def test_what_is_of_two_classes_is_not_counted_twice_in_silence(
    graph_of: Callable[[str], LocalAdapter], tool: str, arguments: dict[str, str], told: str
) -> None:
    assert told in (await call(graph_of(MIXED), tool, **arguments)).plain.text


class Interrupted(RdflibAdapter):
    """Counted nothing to the end, and knows no incoming edge; as an endpoint that sends a part of its answers."""

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        found = await super().degrees(entities, direction=direction, relations=relations)
        return {node: Degree(Count(0, exact=False), ()) for node in found}

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        found = await super().neighbors(request)
        return {node: await self._cut(page, request.direction) for node, page in found.items()}

    async def _cut(self, page: NeighborPage, direction: Direction) -> NeighborPage:
        return NeighborPage((), Count(0, exact=False), truncated=True) if direction == "in" else page


@pytest.mark.parametrize(
    ("tool", "arguments", "said", "wrong"),
    [
        ("GetNeighbor", {"entity": "e:f1", "direction": "out"}, 'direction="in" shows', "nothing leads"),
        ("GetNeighbor", {"entity": "e:d1", "direction": "out"}, "neighbours it has is not known", "no neighbours at"),
        ("GetNeighbor", {"entity": "e:d1", "direction": "in"}, "an unknown number of incoming facts; 0 here", "has no"),
        ("GetNeighbor", {"entity": "e:f0", "relation": "e:director"}, "not all of its neighbours", "to have none"),
        ("Degree", {"entity": "e:f1"}, "an unknown number of distinct neighbours", "has 0"),
        ("Degree", {"entity": "e:f0", "relation": "e:director"}, "an unknown number of distinct", "to have none"),
        ("Degree", {"entity": "e:f0", "relation": "nothing so"}, "No relation of this graph", "has no relations"),
        ("GetPath", {"source": "e:f1", "target": "e:f2"}, "Paths may pass through hubs", "exhaustive"),
        ("Compose", {"expression": "Type[e:Short]"}, "gives its subclasses", "no subclasses"),
        ("memory-append", {"triples": [["e:f0", "e:prize", "e:oscar"]]}, "Not all of its relations", "of no triple"),
    ],
)
async def test_what_was_not_counted_to_the_end_proves_nothing(
    tool: str, arguments: dict[str, object], said: str, wrong: str
) -> None:
    graph = Interrupted(rdflib.Graph().parse(data=FILMS.replace("e:short a e:Short . ", ""), format="turtle"))
    reply = await call(graph, tool, **arguments)
    assert said in reply.text
    assert wrong not in reply.text
    assert reply.is_error or (reply.data["knowledge"], reply.data.get("exact", False)) != ("denied", True)
