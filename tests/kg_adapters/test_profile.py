"""Profiles: what is looked up in them, how values are ordered, and that arrays and statements are counted alike."""

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kg_adapters.definition_files import profile_text, read_profile
from kg_adapters.index.block_files import Damage
from kg_adapters.index.graph_index import Dictionary, GraphIndex, bare_relations
from kg_adapters.index.profiling import profile_of_index
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.profile import (
    MAX_CLASSES,
    MAX_DATATYPES,
    MAX_PROPERTIES,
    ClassProfile,
    Coverage,
    GraphProfile,
    InverseRelations,
    PropertyProfile,
    ValueRange,
    kind_of,
    unit_in,
    unknown_profile,
)
from kg_adapters.terms import XSD, XSD_STRING, Iri, Literal, Node
from kg_adapters.testing import iri, typed
from kg_adapters.values import order_of
from plain_profile import Statement, profile_of
from small_graphs import index_of

FILM, DIRECTOR = iri("Film"), iri("director")
WORLD = "http://world.example/"


def film(*, complete: bool = True) -> ClassProfile:
    director = PropertyProfile(DIRECTOR, "out", "director", instances=90, facts=120)
    return ClassProfile(FILM, "film", 100, 100, (), (director,), complete=complete)


def counted(index: GraphIndex) -> GraphProfile:
    """Return the profile of an index as the plain counting of its statements gives it."""
    names = Dictionary(index)
    entities = {names.node(number) for number in np.flatnonzero(~bare_relations(index)).tolist()}

    def label(node: Node) -> str | None:
        number = names.node_id(node)
        return None if number is None else names.label(number)

    return profile_of(statements_of(index), Vocabulary(), entities=entities, label=label)


def statements_of(index: GraphIndex) -> Iterator[Statement]:
    names, out = Dictionary(index), index.out
    for head in range(len(index.nodes)):
        for group in range(int(out.groups[head]), int(out.groups[head + 1])):
            for tail in out.neighbors[int(out.starts[group]) : int(out.starts[group + 1])].tolist():
                yield names.node(head), names.relation(int(out.relations[group])), names.node(tail)
        for row in range(int(index.features.starts[head]), int(index.features.starts[head + 1])):
            feature = names.feature(row)
            yield names.node(head), feature.relation, feature.value


def any_graph(seed: int) -> list[str]:
    """Return a small graph with classes above and below each other, in cycles too, and values of many forms."""
    chance = random.Random(seed)  # noqa: S311 - a test graph is no secret
    things, classes = [f"n{number}" for number in range(24)], [f"C{number}" for number in range(6)]
    numbers = ("7", "-3.5", "1e3", "007", "7.0", "lots", "1e999", "INF", "9" * 40, "")
    dates = ("1987-03-01", "1987", "-0044-03-15", "12000-01-01", "1987-03-01T10:00:00Z", "1987-13-99", "soon", "198x")
    graph = [f"{chance.choice(things)} type {chance.choice(classes)}" for _ in range(30)]
    graph += [f"{chance.choice(classes)} subClassOf {chance.choice(classes)}" for _ in range(6)]
    graph += [f"{chance.choice(things)} r{chance.randrange(4)} {chance.choice(things)}" for _ in range(90)]
    graph += [f'{chance.choice(things)} v0 "{chance.choice(numbers)}"^^<{XSD}decimal>' for _ in range(20)]
    graph += [f'{chance.choice(things)} v1 "{chance.choice(dates)}"^^<{XSD}date>' for _ in range(20)]
    graph += [f'{chance.choice(things)} r0 "{chance.choice(dates)}"^^<{XSD}gYear>' for _ in range(5)]
    graph += [f'{chance.choice(things)} v1 "{chance.choice(numbers)}"' for _ in range(5)]
    units = ("km", "mile", "mile2")
    graph += [
        f'{chance.choice(things)} v2 "{chance.choice(numbers)}"^^<http://example.org/{chance.choice(units)}>'
        for _ in range(14)
    ]
    graph += [
        f'{chance.choice(things)} {over} "{chance.choice(numbers)}"^^<http://example.org/mile>'
        for over in ("v0", "v3", "label")
    ]
    return [*graph, 'r0 label "a relation (km)"', "r1 inverseOf r2", 'C1 label "class"@en']


@pytest.mark.parametrize("seed", range(12))
def test_arrays_and_single_statements_give_the_same_profile(seed: int) -> None:
    index = index_of(any_graph(seed))
    assert profile_of_index(index, Vocabulary()) == counted(index)


def test_sets_of_very_many_classes_are_told_apart_by_each_of_their_classes() -> None:
    sizes = {"a": 40, "b": 40, "c": 41, "d": 39, "e": 1}
    crowd = [f"{node} type C{number}" for node, size in sizes.items() for number in range(size)]
    index = index_of([*crowd, "a knows b", "c knows d", "e knows a", *(f"C{n} subClassOf C{n + 1}" for n in range(50))])
    assert profile_of_index(index, Vocabulary()) == counted(index)


def test_in_little_memory_only_the_rarest_classes_are_counted_as_targets_and_the_profile_is_approximate() -> None:
    crowd = [f"n{node} type C{number}" for node in range(20) for number in range(31 - node)]
    index = index_of([*crowd, *(f"n{node} r{number} n0" for node in range(20) for number in range(60))])
    exact, found = (profile_of_index(index, Vocabulary(), memory_mb=memory_mb) for memory_mb in (None, 1))
    assert (exact.approximate, exact) == (False, counted(index))
    assert (found.approximate, found.complete) == (True, True)
    assert [without_targets(each) for each in found.classes] == [without_targets(each) for each in exact.classes]
    exactly, rarely = (each.everything.property(iri("r1")) for each in (exact, found))
    assert exactly is not None and rarely is not None  # noqa: PT018
    assert (exactly.targets[0], {count for _, count in rarely.targets}) == ((iri("C0"), 20), {20})
    assert iri("C0") not in dict(rarely.targets)


def without_targets(known: ClassProfile) -> ClassProfile:
    return replace(known, properties=tuple(replace(each, targets=()) for each in known.properties))


def test_in_little_memory_classes_far_above_an_instance_are_not_counted_and_sizes_are_lower_bounds() -> None:
    chain = [f"C{number} subClassOf C{(number + 1) % 250}" for number in range(250)]
    index = index_of([*chain, *(f"n{number} type C{number}" for number in range(250))])
    exact, found = (profile_of_index(index, Vocabulary(), memory_mb=memory_mb) for memory_mb in (None, 1))
    assert (exact.approximate, exact) == (False, counted(index))
    assert (found.approximate, found.complete) == (True, False)
    assert all(each.at_least and each.instances < 250 for each in found.classes)
    assert read_profile(profile_text(found).encode()) == found


def test_nodes_with_thousands_of_edges_between_them_do_not_keep_inverses_of_others_from_being_found() -> None:
    dense = [f"{one} r{number} {two}" for number in range(1_500) for one, two in (("a", "b"), ("b", "a"))]
    owned = [f"town{n} owns farm{n}" for n in range(30)] + [f"farm{n} ownedBy town{n}" for n in range(30)]
    found = profile_of_index(index_of([*dense, *owned]), Vocabulary())
    assert found.approximate
    assert [(each.relation, each.inverse) for each in found.inverses] == [(iri("ownedBy"), iri("owns"))]


def test_of_very_many_datatypes_the_most_frequent_are_listed() -> None:
    units = [f'a v "{number}"^^<http://example.org/u{number}>' for number in range(MAX_DATATYPES + 5)]
    known = profile_of_index(index_of([*units, 'b v "7"^^<http://example.org/u104>']), Vocabulary()).everything
    values = known.properties[0].values
    assert values is not None
    assert (len(values.datatypes), values.datatypes[0], values.least) == (
        MAX_DATATYPES,
        iri("u104"),
        Literal("7", iri("u104")),
    )


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"\xff\xfe"])
def test_a_damaged_profile_is_told(text: bytes) -> None:
    with pytest.raises(Damage, match=r"profile\.json cannot be read"):
        read_profile(text)


def test_a_profile_of_many_classes_says_that_it_lists_only_the_largest() -> None:
    crowd = [f"n{number} type C{number}" for number in range(MAX_CLASSES + 5)]
    found = profile_of_index(index_of([*crowd, "extra type C7"]), Vocabulary())
    assert (len(found.classes), found.complete) == (MAX_CLASSES, False)
    assert (found.classes[0].iri, found.classes[0].instances) == (iri("C7"), 2)


def test_a_class_with_many_relations_says_that_it_lists_only_the_most_frequent() -> None:
    wide = [f"thing r{number} other" for number in range(MAX_PROPERTIES + 5)]
    known = profile_of_index(index_of(["thing type C", *wide]), Vocabulary()).profile_of(iri("C"))
    assert known is not None
    assert (len(known.properties), known.complete) == (MAX_PROPERTIES, False)
    assert known.coverage(iri("never")) is None


def test_coverage_counts_who_has_a_relation_and_is_none_where_that_is_not_known() -> None:
    profile = GraphProfile(film(), (film(),), (), ())
    assert profile.coverage(FILM, DIRECTOR) == Coverage(FILM, "film", DIRECTOR, "out", 100, 90)
    assert profile.coverage(FILM, iri("captain")) == Coverage(FILM, "film", iri("captain"), "out", 100, 0)
    assert GraphProfile(film(), (film(complete=False),), (), ()).coverage(FILM, iri("captain")) is None
    assert unknown_profile().coverage(None, DIRECTOR) is None


def test_the_share_of_no_instances_is_nothing() -> None:
    assert Coverage(None, None, DIRECTOR, "out", 0, 0).share == 0.0
    assert Coverage(None, None, DIRECTOR, "out", 4, 1).share == 0.25


def test_an_inverse_is_found_from_either_side() -> None:
    pair = InverseRelations(iri("child"), iri("parent"), True, 3, 1, 0)
    profile = GraphProfile(film(), (), (pair,), ())
    assert (profile.inverse_of(iri("child")), profile.inverse_of(iri("parent"))) == (iri("parent"), iri("child"))
    assert profile.inverses_of(iri("parent")) is pair
    assert (pair.symmetric, pair.partial) == (False, True)
    assert profile.inverse_of(DIRECTOR) is None


@pytest.mark.parametrize(
    ("datatype", "kind"),
    [
        (Iri(XSD + "gYear"), "date"),
        (Iri(XSD + "integer"), "number"),
        (Iri(XSD + "boolean"), "boolean"),
        (Iri(XSD + "anyURI"), "text"),
        (XSD_STRING, "text"),
        (Iri("http://www.opengis.net/ont/geosparql#wktLiteral"), "coordinates"),
    ],
)
def test_datatypes_have_kinds(datatype: Iri, kind: str) -> None:
    assert kind_of(datatype) == kind


def test_the_kinds_of_a_range_are_named_once_and_in_order() -> None:
    assert ValueRange((XSD_STRING, Iri(XSD + "date"), Iri(XSD + "gYear"))).kinds == ("date", "text")
    miles = Literal("7", iri("mile"))
    assert ValueRange((iri("mile"), XSD_STRING, iri("km")), miles, miles).kinds == ("number", "text")
    assert ValueRange((iri("colour"),)).kinds == ("text",)


@pytest.mark.parametrize(
    ("label", "unit"),
    [
        ("length (km)", "km"),
        ("turnover (million krunock)", "million krunock"),
        ("(m)", "m"),
        ("area", None),
        (None, None),
        ("odd ()", None),
        ("a)", None),
    ],
)
def test_the_unit_stands_in_the_last_brackets_of_a_label(label: str | None, unit: str | None) -> None:
    assert unit_in(label) == unit


def test_dates_and_numbers_are_ordered_and_other_values_are_not() -> None:
    dates = [
        "-0044-03-15",
        "-0043",
        "0000",
        "79",
        "973",
        "973-05",
        "1987",
        "1987-03",
        "1987-03-01",
        "1987-03-01T00:00:01Z",
        "12000-01-01",
    ]
    orders = [order_of(typed(date, "date")) for date in dates]
    known = [order for order in orders if order is not None]
    assert (len(known), known) == (len(dates), sorted(known))
    assert [order_of(typed(text, "date")) for text in ("31-12-2020", "05-06-07", "soon")] == [None] * 3
    assert [order_of(typed(number, "decimal")) for number in ("+7", ".5", "1e3")] == [7.0, 0.5, 1000.0]
    assert order_of(Literal("7")) is None
    assert [order_of(Literal(text, iri("mile"))) for text in ("7", "-1e3", "far")] == [7.0, -1000.0, None]
    assert [order_of(typed(text, "integer")) for text in ("seven", "1_000", "NaN", "7" * 400_000 + "x")] == [None] * 4
    assert [order_of(typed(text, "decimal")) for text in ("7" * 33, "-1e999")] == [float("7" * 33), -math.inf]


async def test_the_profile_of_the_fictional_world_knows_lengths_inverses_and_what_no_bridge_has(tmp_path: Path) -> None:
    graph = LocalAdapter(open_sample(tmp_path, "sample:world"))
    profile = await graph.profile()
    bridge = profile.profile_of(Iri(f"{WORLD}K64"))
    assert bridge is not None
    length = bridge.property(Iri(f"{WORLD}R140"))
    assert length is not None
    assert (bridge.label, bridge.instances, length.instances) == ("bridge", 120, 120)
    assert length.values == ValueRange(
        (Iri(XSD + "decimal"),), typed("27.4", "decimal"), typed("1397.3", "decimal"), "m"
    )
    assert bridge.coverage(Iri(f"{WORLD}R42")) == Coverage(bridge.iri, "bridge", Iri(f"{WORLD}R42"), "out", 120, 0)
    assert profile.inverses_of(Iri(f"{WORLD}R57")) == InverseRelations(
        Iri(f"{WORLD}R198"), Iri(f"{WORLD}R57"), True, both=49, only_relation=82, only_inverse=74
    )
    assert await graph.profile() is profile
