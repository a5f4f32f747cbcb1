"""How Compose finds entities, relations and features by name, and what it says where a name means several things."""

import random
import string
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calls import composed, refused, rows
from kg_adapters.local.adapter import LocalAdapter
from kg_server.compose.syntax import Call, EntityRef, Function, Leg, Mark, Operand, Route, Words
from kg_server.naming.refusals import MisreadExpression
from set_expressions import NOWHERE, parse

WORLD = """
@prefix ex: <http://ex.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
ex:seat rdfs:label "capital" .
ex:money rdfs:label "Capital" .
ex:height rdfs:label "size" .
ex:area rdfs:label "size" .
ex:japan rdfs:label "Japan"@en ; ex:seat ex:tokyo ; ex:size 1 ; ex:area 378000 ; ex:motto "first" .
ex:france rdfs:label "France"@en ; ex:seat ex:paris ; ex:height 4810 ; ex:area 640000 ; ex:motto "equal"@fr .
ex:utopia rdfs:label "Utopia"@en ; ex:motto "equal"@en .
ex:tokyo rdfs:label "Tokyo"@en ; ex:near ex:yokohama .
ex:paris rdfs:label "Paris"@en .
ex:paris_texas rdfs:label "Paris"@en .
ex:firm ex:money ex:bank ; ex:seat ex:paris .
ex:yokohama ex:near ex:tokyo .
"""


@pytest.fixture
def world(graph_of: Callable[[str], LocalAdapter]) -> LocalAdapter:
    """Countries with capitals, and names that mean several things."""
    return graph_of(WORLD)


async def test_all_of_one_name_take_part_and_are_listed(world: LocalAdapter) -> None:
    reply = await composed(world, "Retrieve[paris]")
    assert reply.plain.summary == "2 nodes. 'paris' names 2 things, all taken: Paris; Paris."
    assert sorted(reply.plain.lines) == ["Paris", "Paris"]


async def test_a_misspelt_name_is_read_and_said(world: LocalAdapter) -> None:
    reply = await composed(world, "Degree[Retrieve[Yokohamma]]")
    assert reply.summary == "ex:yokohama: 1. 'Yokohamma' read as ex:yokohama, one letter off."
    assert reply.data["read"] == {"Yokohamma": "ex:yokohama"}


async def test_a_name_of_several_relations_means_all_of_them_and_an_id_means_one(world: LocalAdapter) -> None:
    reply = await composed(world, "Neighbor[ex:firm, CAPITAL]")
    one = await composed(world, "Neighbor[ex:firm, ex:seat]")
    values = await composed(world, "Feature[ex:france, size]")
    backwards = await composed(world, "Neighbor[ex:bank, -capital]")
    none = await composed(world, "Neighbor[ex:yokohama, capital]")
    assert {row[3] for row in rows(reply.data["results"])} == {"ex:bank", "ex:paris"}
    assert {row[3] for row in rows(one.data["results"])} == {"ex:paris"}
    assert "'CAPITAL' names 2 relations, all taken: ex:seat, 3 facts; ex:money, 1 fact." in reply.summary
    assert "names" not in one.summary
    assert {row[2] for row in rows(values.data["results"])} == {"ex:area", "ex:height"}
    assert backwards.data["results"] == [["1", "ex:bank", "-ex:money", "ex:firm", "node"]]
    assert none.data["results"] == []


async def test_an_unknown_name_is_refused_with_similar_ones_and_those_that_are_there(tokyo: LocalAdapter) -> None:
    relation = await refused(tokyo, "Neighbor[Q17, captial]")
    feature = await refused(tokyo, "Feature[Union[Q17, Q1490], popullation]")
    unknown_id = await refused(tokyo, "Neighbor[Q999, P9999]")
    assert relation.startswith(
        "No relation of this graph is called 'captial'. Did you mean capital? Japan has country, capital."
    )
    assert feature.startswith(
        "No feature of this graph is called 'popullation'. Did you mean population? The first 2 entities "
        "that it is asked of have "
        "rdfs:label, schema:description, skos:altLabel, population."
    )
    assert "This graph has no relation 'P9999'." in unknown_id


async def test_two_relations_in_one_call_are_refused_with_the_way_to_write_them(tokyo: LocalAdapter) -> None:
    text = await refused(tokyo, "Neighbor[Q1490, capital, country]")
    assert "One call takes one relation: write several calls, side by side or inside Union[…, …]." in text


async def test_a_direction_behind_a_relation_is_refused_with_the_mark_for_it(tokyo: LocalAdapter) -> None:
    text = await refused(tokyo, "Neighbor[Q1490, capital, in]")
    assert "A direction is a mark: capital leads away, -capital leads to it, ~capital both ways." in text


async def test_a_feature_is_no_relation_and_a_relation_no_feature(tokyo: LocalAdapter) -> None:
    for name in ("population", "P1082"):
        text = await refused(tokyo, f"Neighbor[Q1490, {name}]")
        assert text.startswith("population has values, not nodes: use Feature[node, P1082].")
    for name in ("capital", "P36"):
        text = await refused(tokyo, f"Feature[Q1490, {name}]")
        assert text.startswith("capital leads to nodes, not values: use Neighbor[node, P36].")


async def test_a_relation_goes_by_the_last_part_of_its_iri_and_by_its_prefixed_name(world: LocalAdapter) -> None:
    for name in ("NEAR", "ex:near"):
        reply = await composed(world, f"Neighbor[ex:tokyo, {name}]")
        assert rows(reply.data["results"])[0][3] == "ex:yokohama"
    reply = await composed(world, "Feature[ex:tokyo, RDFS:Label]")
    assert rows(reply.data["results"])[0][3:] == ["Tokyo", "en"]


async def test_values_are_the_same_in_one_language_only(world: LocalAdapter) -> None:
    reply = await composed(
        world,
        "Count[Intersect[Feature[ex:france, motto], Feature[ex:utopia, motto]]], "
        "Count[Union[Feature[ex:japan, motto], Feature[ex:france, motto]]]",
    )
    assert [row[3:] for row in rows(reply.data["results"])] == [["0", "number"], ["2", "number"]]


async def test_a_name_with_commas_is_refused_with_its_spelling_in_quotation_marks(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    prefixes = "@prefix ex: <http://ex.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
    graph = graph_of(f'{prefixes} ex:river rdfs:label "Moselle, Lower, left" ; ex:near ex:town .')
    text = await refused(graph, "Neighbor[moselle, lower, left, near]")
    assert text == (
        "No entity matches 'moselle'. Near, not the same: \"Moselle, Lower, left\". "
        'Write "Moselle, Lower, left", in quotation marks.'
    )
    found = await composed(graph, 'Neighbor["Moselle, Lower, left", near]')
    assert found.data["results"] == [["1", "ex:river", "ex:near", "ex:town", "node"]]
    assert "quotation marks" not in await refused(graph, "Neighbor[danube, upper, near]")


NEIGHBOR = ("Neighbor", "Neighbour", "GetNeighbor", "GetNeighbour")
PLAIN = string.ascii_letters + string.digits + "_.-:()'\u6771 "
texts = st.text(st.sampled_from(PLAIN + '[],"\\\n<>'), min_size=1, max_size=12).filter(lambda text: text.strip() != "")
plain_ids = st.text(st.sampled_from(string.ascii_letters + string.digits + ":_.()"), min_size=1, max_size=8)


@dataclass(frozen=True)
class Spelling:
    """Chooses, call by call, one of the legal ways to write a tree."""

    # There are hundreds of choices for each tree: drawn one by one, they would take most of the time.
    chosen: random.Random

    def expression(self, calls: list[Call]) -> str:
        return self._blanks() + ",".join(self._operand(call) + self._blanks() for call in calls)

    def _operand(self, operand: Operand) -> str:
        if isinstance(operand, EntityRef):
            return self._id(operand.text)
        arguments = [self._words(operand.words.text)] if operand.function == "Retrieve" else []
        arguments += [self._operand(each) for each in operand.operands] + [self._route(each) for each in operand.routes]
        inner = f"{self._blanks()},{self._blanks()}".join(arguments)
        return f"{self._name(operand.function)}[{self._blanks()}{inner}{self._blanks()}]"

    def _route(self, route: Route) -> str:
        legs = ("".join((leg.mark, self._blanks(), self._leg(leg), "+" * leg.repeated)) for leg in route.legs)
        return f"{self._blanks()}/{self._blanks()}".join(legs)

    def _leg(self, leg: Leg) -> str:
        plain = leg.name.text[:1] not in {"-", "~"} and not set("/+") & set(leg.name.text)
        return self._words(leg.name.text) if plain else self._quoted(leg.name.text)

    def _name(self, function: Function) -> str:
        name = self.chosen.choice(NEIGHBOR if function == "Neighbor" else (function,))
        return self.chosen.choice([name, name.lower(), name.upper()]) + self._blanks()

    def _words(self, text: str) -> str:
        plain = set(text) <= set(PLAIN) and text == text.strip() and text[0] not in "'-"
        return text + self._blanks() if plain and self.chosen.random() < 0.5 else self._quoted(text)

    def _id(self, text: str) -> str:
        plain = set(text) <= set(PLAIN) - set("' ")
        return text if plain and self.chosen.random() < 0.5 else self._quoted(text)

    def _quoted(self, text: str) -> str:
        mark = self.chosen.choice("\"'")
        escaped = text.replace("\\", "\\\\").replace(mark, f"\\{mark}")
        if self.chosen.random() < 0.5:
            escaped = escaped.replace("\n", "\\n")
        return f"{mark}{escaped}{mark}{self._blanks()}"

    def _blanks(self) -> str:
        return self.chosen.choice(["", "", " ", "\n", "\t "])


no_place = st.just(NOWHERE)
some_words = st.builds(Words, texts, no_place)
marks: st.SearchStrategy[Mark] = st.sampled_from(("", "-", "~"))
legs = st.builds(Leg, some_words, marks, st.booleans())
routes = st.tuples(st.builds(Route, st.lists(legs, min_size=1, max_size=3).map(tuple), no_place))
retrieving: st.SearchStrategy[Function] = st.just("Retrieve")
starts = st.builds(EntityRef, plain_ids | texts, no_place) | st.builds(Call, retrieving, no_place, words=some_words)


def of(
    functions: tuple[Function, ...], operands: st.SearchStrategy[Operand], by: st.SearchStrategy[tuple[Route, ...]]
) -> st.SearchStrategy[Operand]:
    return st.builds(Call, st.sampled_from(functions), no_place, st.tuples(operands), by)


def around(nodes: st.SearchStrategy[Operand]) -> st.SearchStrategy[Operand]:
    sets = st.lists(nodes, min_size=2, max_size=3).map(tuple)
    functions: st.SearchStrategy[Function] = st.sampled_from(("Union", "Intersect", "Minus"))
    return of(("Neighbor",), nodes, routes) | st.builds(Call, functions, no_place, sets)


node_sets: st.SearchStrategy[Operand] = st.recursive(starts, around, max_leaves=6)
measured = of(("Feature", "Degree"), node_sets, routes)
counts = of(("Count",), node_sets | measured, st.just(()))
calls = st.one_of(node_sets, measured, of(("Degree",), node_sets, st.just(())), counts)


@st.composite
def trees_and_spellings(draw: st.DrawFn) -> tuple[list[Call], str]:
    drawn = draw(st.lists(calls, min_size=1, max_size=3))
    chosen = [Call("Count", NOWHERE, (each,)) if isinstance(each, EntityRef) else each for each in drawn]
    return chosen, Spelling(draw(st.randoms(use_true_random=True))).expression(chosen)


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(trees_and_spellings())
def test_a_tree_in_any_legal_spelling_is_read_back(pair: tuple[list[Call], str]) -> None:
    chosen, text = pair
    assert parse(text, max_depth=20, max_calls=500) == tuple(chosen)


fragments = st.sampled_from(
    (
        *("Retrieve", "Feature[", "neighbor [", "Degree[", "Count[", "Union[", "Minus", "[", "]", ",", " ", "-", "'"),
        *('"', "\\", "<", ">", "\n", "Q1", "wd:Q2", "x", "\u6771", "\ud800", "\x00"),
    )
)


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(st.text() | st.lists(fragments, max_size=30).map("".join))
def test_any_text_gives_a_tree_or_an_error_with_a_place_in_it(text: str) -> None:
    try:
        assert parse(text)
    except MisreadExpression as error:
        place, message = error.position, str(error)
    else:
        place, message = 0, "^"
    assert 0 <= place <= len(text)
    assert message.endswith("^")
