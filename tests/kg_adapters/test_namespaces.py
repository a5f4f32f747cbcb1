"""Which prefixes a graph gets."""

from collections.abc import Mapping

import pytest

from kg_adapters.prefixes import WIKIDATA, Prefixes, prefixes_in_use

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
MADE = {
    "b": "http://b.example#",
    "catalogue": "http://data.example/catalogue/2024/",
    "geonames": "http://sws.geonames.org/",
    "ns1": "http://1.example/2/",
    "shapes": "http://www.example.org/ns/shapes#",
    "x": "urn:x:",
}


@pytest.mark.parametrize(
    ("iris", "declared", "namespaces"),
    [
        ([], {"ex": "http://example.org/"}, {}),
        (["http://example.org/a"], {"ex": "http://example.org/"}, {"ex": "http://example.org/"}),
        (
            ["http://example.org/a"],
            {"ex": "http://example.org/", "no": "http://other.org/"},
            {"ex": "http://example.org/"},
        ),
        (
            ["http://example.org/a"],
            {"ex": "http://example.org/", "two": "http://example.org/"},
            {"ex": "http://example.org/"},
        ),
        (["http://example.org/item_7"], {"item": "http://example.org/item_"}, {"item": "http://example.org/item_"}),
        ([RDFS + "label"], {}, {"rdfs": RDFS}),
        ([RDFS + "label"], {"r": RDFS}, {"r": RDFS}),
        (["http://other.org/rdfs"], {"rdfs": "http://other.org/"}, {}),
        (["http://other.org/a"], {"rdf": "http://other.org/", "o": "http://other.org/"}, {"o": "http://other.org/"}),
        (["http://other.org/a", RDFS + "label"], {"rdfs": "http://other.org/"}, {"rdfs": RDFS}),
        (["http://other.org/geo"], {"geo": "http://other.org/"}, {"geo": "http://other.org/"}),
        (["http://example.org/a"], {"http": "http://example.org/", "1x": "http://example.org/"}, {}),
        (["http://example.org/a"], {"": "http://example.org/"}, {"": "http://example.org/"}),
        (["http://example.org/a"], {"ex": ""}, {}),
    ],
)
def test_only_usable_prefixes_of_namespaces_that_occur_are_kept(
    iris: list[str], declared: Mapping[str, str], namespaces: Mapping[str, str]
) -> None:
    assert prefixes_in_use(iris, declared) == Prefixes(namespaces)


def test_frequent_namespaces_without_a_prefix_are_called_by_their_own_parts() -> None:
    iris = [f"{namespace}{number}" for namespace in MADE.values() for number in (1, 2)]
    assert prefixes_in_use(sorted([*iris, "http://rare.example/1", "http://d.example"]), {}) == Prefixes(MADE)


def test_namespaces_of_one_name_are_numbered_whatever_else_the_graph_holds() -> None:
    spaces = ["http://a.example/city/", "http://b.example/city/", "http://example.org/dc/", "https://schema.org/"]
    iris = [f"{space}{number}" for space in spaces for number in (1, 2)]
    expected: dict[str, str] = dict(zip(("city", "city2", "dc1", "schema"), spaces, strict=True))
    for more in ([], [f"{spaces[1]}{number}" for number in range(3, 9)]):
        assert prefixes_in_use(sorted([*iris, *more]), {}) == Prefixes(expected)


def test_a_made_prefix_does_not_take_the_name_of_a_declared_one() -> None:
    found = prefixes_in_use(
        ["http://a.example/1", "http://a.example/2", "http://z.example/1"], {"a": "http://z.example/"}
    )
    assert found == Prefixes({"a": "http://z.example/", "a2": "http://a.example/"})


def test_no_more_than_twenty_are_made() -> None:
    iris = sorted(f"http://n{number}.example/{local}" for number in range(30) for local in "ab")
    assert len(prefixes_in_use(iris, {}).namespaces) == 20


@pytest.mark.parametrize("iri", ["http://www.wikidata.org/entity/Q1490", "http://www.wikidata.org/prop/direct/P36"])
def test_wikidata_brings_its_bare_ids_and_names_for_what_occurs(iri: str) -> None:
    found = prefixes_in_use([iri], {"w": "http://www.wikidata.org/entity/"})
    namespaces = {prefix: space for prefix, space in WIKIDATA.namespaces.items() if iri.startswith(space)}
    assert found == Prefixes(namespaces, WIKIDATA.entities, WIKIDATA.relations)
