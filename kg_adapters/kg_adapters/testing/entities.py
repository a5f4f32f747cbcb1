# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""Contract tests about single entities: labels, descriptions, values and search."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import pytest

from kg_adapters.models import Candidate, Count, Description, Feature, FeaturePage, NeighborPage
from kg_adapters.protocol import SupportsValueSearch
from kg_adapters.requests import FeatureRequest, NeighborRequest, SurroundingsRequest
from kg_adapters.surroundings import surroundings
from kg_adapters.terms import RDF_LANG_STRING, XSD, Attribute, Fact, Iri, Literal
from kg_adapters.testing.graphs import (
    DESCRIBED,
    NAMED,
    SEARCHABLE,
    UNICODE,
    VALUES,
    GraphOpening,
    edge,
    edges,
    feature_page,
    iri,
    typed,
)


def said(value: str, language: str) -> Literal:
    """Return a text in a language."""
    return Literal(value, RDF_LANG_STRING, language)


FEATURES = (
    Feature(iri("area"), typed("2194.07", "decimal")),
    Feature(iri("code"), Literal("T1", iri("code"))),
    Feature(iri("motto"), said('two\nlines, "quoted" \\ and back', "en")),
    Feature(iri("name"), Literal("Tokio")),
    Feature(iri("name"), said("Tokio", "de")),
    Feature(iri("name"), said("Tokio", "pl")),
    Feature(iri("name"), said("東京", "ja")),
    Feature(iri("opened"), typed("1889-05-01", "date")),
    Feature(iri("population"), typed("13960000", "integer")),
)


class DescriptionContract(GraphOpening):
    """What the graph says about a term: its label, description, types, roles and features."""

    async def test_labels_follow_the_preferred_relation_and_then_the_preferred_language(self) -> None:
        async with self.opened(NAMED) as graph:
            names = ("tokyo", "bern", "oslo", "lima", "bath", "nara", "kobe", "nameless", "atlantis")
            found = await graph.labels([iri(name) for name in names])
        assert found == {
            iri("tokyo"): "Tokyo",
            iri("bern"): "Bern",
            iri("oslo"): "Oslo",
            iri("lima"): "Lima die Stadt",
            iri("bath"): "Bath",
            iri("nara"): "Nara",
            iri("kobe"): "神戸",
        }

    async def test_relations_have_labels_like_entities_and_those_beyond_ascii_arrive_whole(self) -> None:
        async with self.opened(UNICODE) as graph:
            assert await graph.labels([iri("東京")]) == {iri("東京"): "東京 🗼"}
        async with self.opened(DESCRIBED) as graph:
            assert await graph.labels([]) == {}
            assert await graph.labels([iri("country"), iri("tokyo"), iri("tokyo")]) == {
                iri("country"): "country",
                iri("tokyo"): "Tokyo",
            }

    async def test_a_description_has_label_text_sorted_types_and_roles(self) -> None:
        async with self.opened(DESCRIBED) as graph:
            found = await graph.describe([iri("tokyo"), iri("japan"), iri("City"), iri("tokyo")])
        types = (iri("Capital"), iri("City"), iri("Metropolis"))
        assert found == {
            iri("tokyo"): Description("Tokyo", "capital of Japan", types, frozenset({"entity"})),
            iri("japan"): Description(None, None, (), frozenset({"entity"})),
            iri("City"): Description(None, None, (), frozenset({"entity"})),
        }

    async def test_a_relation_is_described_with_its_role_and_an_unknown_term_is_not(self) -> None:
        async with self.opened(DESCRIBED) as graph:
            found = await graph.describe([iri("country"), iri("P31"), iri("type"), iri("atlantis")])
            assert await graph.describe([]) == {}
        assert found == {
            iri("country"): Description("country", None, (), frozenset({"entity", "relation"})),
            iri("P31"): Description(None, None, (), frozenset({"relation"})),
            iri("type"): Description(None, None, (), frozenset({"relation"})),
        }

    async def test_features_keep_datatypes_and_languages_and_are_sorted(self) -> None:
        async with self.opened(VALUES) as graph:
            assert await feature_page(graph, iri("tokyo")) == FeaturePage(FEATURES, Count(len(FEATURES)))

    async def test_features_over_one_relation_are_those_alone(self) -> None:
        async with self.opened(VALUES) as graph:
            names = await feature_page(graph, iri("tokyo"), relation=iri("name"))
            none = await feature_page(graph, iri("tokyo"), relation=iri("country"))
        assert names == FeaturePage(FEATURES[3:7], Count(4))
        assert none == FeaturePage((), Count(0))

    async def test_several_features_are_asked_for_at_once(self) -> None:
        relations = frozenset({iri("area"), iri("opened"), iri("name"), iri("unheardOf")})
        async with self.opened(VALUES) as graph:
            found = await graph.features(FeatureRequest((iri("tokyo"),), relations))
            fewer = await graph.features(FeatureRequest((iri("tokyo"),), relations, 2))
            assert await graph.features(FeatureRequest((iri("tokyo"),), frozenset())) == {}
        asked = (FEATURES[0], *FEATURES[3:8])
        assert found == {iri("tokyo"): FeaturePage(asked, Count(6))}
        assert fewer == {iri("tokyo"): FeaturePage(asked[:2], Count(6))}

    async def test_features_of_many_entities_come_in_one_answer_as_each_would_alone(self) -> None:
        others = [f'city{number} name "City {number}"@en' for number in range(30)]
        nodes = [iri(name) for name in ("atlantis", "tokyo", *(f"city{number}" for number in range(30)), "japan")]
        async with self.opened((*VALUES, *others)) as graph:
            together = await graph.features(FeatureRequest((*nodes, iri("tokyo")), limit=4))
            alone = [await graph.features(FeatureRequest((node,), limit=4)) for node in nodes]
            assert await graph.features(FeatureRequest(())) == {}
        assert together == {node: page for pages in alone for node, page in pages.items()}
        assert together.keys() == set(nodes) - {iri("atlantis"), iri("japan")}
        assert together[iri("tokyo")] == FeaturePage(FEATURES[:4], Count(len(FEATURES)))

    async def test_a_limit_cuts_the_features_and_the_total_says_so(self) -> None:
        async with self.opened(VALUES) as graph:
            assert await feature_page(graph, iri("tokyo"), limit=2) == FeaturePage(FEATURES[:2], Count(len(FEATURES)))


LIFE: Final = (
    'ada label "Ada Lovelace"@en',
    'ada altLabel "Augusta Ada King"@en',
    'ada description "mathematician"@en',
    'ada born "1815-12-10"^^<http://www.w3.org/2001/XMLSchema#date>',
    'ada height "1.65"^^<http://www.w3.org/2001/XMLSchema#decimal>',
    'ada motto "b"@en',
    'ada motto "b"',
    'ada motto "a"@fr',
    'ada known "not by everybody"',
    "ada known charles",
    "ada parent byron",
    "byron child ada",
    'byron born "1788-01-22"^^<http://www.w3.org/2001/XMLSchema#date>',
)
ADA: Final = iri("ada")


def attribute(relation: str, value: Literal, head: Iri = ADA) -> Attribute:
    """Return a statement that ends in a value."""
    return Attribute(head, iri(relation), value)


BORN: Final = attribute("born", typed("1815-12-10", "date"))
HEIGHT: Final = attribute("height", typed("1.65", "decimal"))
KNOWN: Final = attribute("known", Literal("not by everybody"))
MOTTOS: Final = (
    attribute("motto", Literal("a", RDF_LANG_STRING, "fr")),
    attribute("motto", Literal("b")),
    attribute("motto", Literal("b", RDF_LANG_STRING, "en")),
)
IN_TURNS: Final[Sequence[Fact]] = (
    BORN,
    HEIGHT,
    edge("ada known charles"),
    KNOWN,
    MOTTOS[0],
    edge("ada parent byron"),
    edge("byron child ada"),
    *MOTTOS[1:],
)


class ValuesContract(GraphOpening):
    """Values beside edges: in `neighbors` and in surroundings, where they are asked for, and in `contains`."""

    async def test_values_are_groups_behind_the_edges_of_their_relation(self) -> None:
        async with self.opened(LIFE) as graph:
            found = await graph.neighbors(NeighborRequest((ADA,), values=True))
        assert found == {ADA: NeighborPage(tuple(IN_TURNS), Count(len(IN_TURNS)), truncated=False)}
        assert found[ADA].triples == edges("ada known charles", "ada parent byron", "byron child ada")

    async def test_values_count_only_where_they_are_asked_for_and_never_when_looking_backwards(self) -> None:
        async with self.opened(LIFE) as graph:
            edges_alone = await graph.neighbors(NeighborRequest((ADA,)))
            incoming = await graph.neighbors(NeighborRequest((ADA,), "in", values=True))
        assert edges_alone[ADA].facts == edges("ada known charles", "ada parent byron", "byron child ada")
        assert incoming == {ADA: NeighborPage((edge("byron child ada"),), Count(1), truncated=False)}

    async def test_names_and_descriptions_are_values_only_where_they_are_named(self) -> None:
        label, born = iri("label"), iri("born")
        async with self.opened(LIFE) as graph:
            found = await graph.neighbors(NeighborRequest((ADA,), "out", frozenset({label, born}), values=True))
            without = await graph.neighbors(NeighborRequest((ADA,), "out", frozenset({label, born})))
        name = attribute("label", Literal("Ada Lovelace", RDF_LANG_STRING, "en"))
        assert set(found[ADA].facts) == {BORN, name}
        assert without == {ADA: NeighborPage((), Count(0), truncated=False)}

    async def test_pages_with_values_join_to_the_same_sequence(self) -> None:
        async with self.opened(LIFE) as graph:
            pages = [(await graph.neighbors(NeighborRequest((ADA,), limit=2, values=True)))[ADA]]
            while (cursor := pages[-1].cursor) is not None:
                found = await graph.neighbors(NeighborRequest((ADA,), limit=2, values=True, cursor=cursor))
                pages.append(found[ADA])
        assert tuple(chain.from_iterable(page.facts for page in pages)) == tuple(IN_TURNS)
        assert {page.total for page in pages} == {Count(len(IN_TURNS))}

    async def test_a_limit_per_relation_holds_for_values_too(self) -> None:
        request = NeighborRequest((ADA,), limit_per_relation=1, values=True)
        async with self.opened(LIFE) as graph:
            found = await graph.neighbors(request)
        assert found == {ADA: NeighborPage(tuple(IN_TURNS[:-2]), Count(len(IN_TURNS)), truncated=True)}

    async def test_surroundings_hold_values_where_they_are_asked_for(self) -> None:
        around = (ADA, iri("byron"), iri("charles"))
        async with self.opened(LIFE) as graph:
            found = await surroundings(graph, SurroundingsRequest(around, 9, 99, values=True))
            fewer = await surroundings(graph, SurroundingsRequest((ADA,), 1, 3, values=True))
            without = await surroundings(graph, SurroundingsRequest(around, 9, 99))
        ada: list[Fact] = [
            BORN,
            HEIGHT,
            edge("ada known charles"),
            KNOWN,
            *MOTTOS,
            *edges("ada parent byron", "byron child ada"),
        ]
        byron = [attribute("born", typed("1788-01-22", "date"), iri("byron"))]
        assert [found.fact(place) for place in range(len(found))] == [
            *ada,
            *byron,
            *edges("byron child ada", "ada parent byron", "ada known charles"),
        ]
        far_ends: list[int] = found.far.tolist()
        texts = [found.far_labels[far] for far in far_ends if far >= len(found.far_nodes)]
        assert texts == ["1815-12-10", "1.65", "not by everybody", "a", "b", "b", "1788-01-22"]
        assert ([fewer.fact(place) for place in range(len(fewer))], fewer.sampled) == (ada[:3], (ADA,))
        assert [without.fact(place) for place in range(len(without))] == [
            without.triple(place) for place in range(len(without))
        ]

    async def test_attributes_are_there_with_their_value_language_and_datatype_alone(self) -> None:
        absent = [
            attribute("born", Literal("1815-12-10")),
            attribute("born", typed("1788-01-22", "date")),
            attribute("motto", Literal("b", RDF_LANG_STRING, "fr")),
            attribute("height", typed("1.650", "decimal")),
            attribute("unheardOf", Literal("b")),
            attribute("motto", Literal("b"), iri("atlantis")),
        ]
        there: list[Fact] = [BORN, HEIGHT, KNOWN, *MOTTOS, edge("ada known charles")]
        async with self.opened(LIFE) as graph:
            asked: list[Fact] = [*there, *absent, edge("charles known ada")]
            assert await graph.contains(asked) == frozenset(there)

    async def test_language_tags_are_compared_without_regard_to_case(self) -> None:
        def named(value: str, language: str) -> Attribute:
            return attribute("name", Literal(value, RDF_LANG_STRING, language), iri("oslo"))

        stated = {named("Christiania", "nb-NO"), named("Kristiania", "EN")}
        asked = [*stated, named("Christiania", "nb-no"), named("Christiania", "NB-NO"), named("Kristiania", "en")]
        absent = [named("Christiania", "nb"), named("Kristiania", "en-GB")]
        async with self.opened(('oslo name "Christiania"@nb-NO', 'oslo name "Kristiania"@EN')) as graph:
            assert await graph.contains([*asked, *absent]) == stated
            page = await feature_page(graph, iri("oslo"))
        assert {Attribute(iri("oslo"), each.relation, each.value) for each in page.features} == stated


HOSTILE: Final = (
    "mercury AND (",
    '"unclosed',
    "label:* ~9 ^3 [a TO",
    "+-&&||!(){}[]^\"~*?:\\/'",
    '" } } UNION { ?s ?p ?o } #',
    "\x00\x07\x1b\x7f",
    "\ud800",
    "水星 عطارد ☿ 🪐",
    "a\u0301\u0301\u0301" * 200,
    "mercury " * 20_000,
    "x" * 1_000_000,
)


def exact(candidates: Sequence[Candidate], name: str) -> list[Candidate]:
    """Return the candidates with exactly this name, with their scores set aside."""
    return [Candidate(c.entity, 1.0, c.matched_by, c.matched_text) for c in candidates if c.matched_text == name]


class SearchContract(GraphOpening):
    """Search: names lead to entities, whatever the text holds."""

    async def test_a_label_finds_its_entities_first(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search("Earth", limit=5)
        assert exact(found[:1], "Earth") == [Candidate(iri("earth"), 1.0, "label", "Earth")]

    async def test_case_and_blanks_around_do_not_matter(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search("  eARTH ", limit=5)
        assert exact(found[:1], "Earth") == [Candidate(iri("earth"), 1.0, "label", "Earth")]

    async def test_an_alias_finds_its_entity_and_says_so(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search("quicksilver", limit=5)
        assert exact(found[:1], "quicksilver") == [Candidate(iri("element"), 1.0, "alias", "quicksilver")]

    async def test_entities_of_one_name_are_all_found(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search("Mercury", limit=5)
        assert {candidate.entity for candidate in exact(found, "Mercury")} == {iri("planet"), iri("element")}

    async def test_a_type_leaves_only_its_instances(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search("Mercury", limit=5, type=iri("Planet"))
            nothing = await graph.search("Mercury", limit=5, type=iri("Nonsense"))
        assert exact(found, "Mercury") == [Candidate(iri("planet"), 1.0, "label", "Mercury")]
        assert {candidate.entity for candidate in found} <= {iri("planet"), iri("earth")}
        assert list(nothing) == []

    async def test_no_more_than_the_limit_is_found_and_the_best_come_first(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search("Mercury", limit=5)
            cut = await graph.search("Mercury", limit=1)
        scores = [candidate.score for candidate in found]
        assert list(cut) == list(found[:1])
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)

    async def test_an_entity_is_found_once_however_many_of_its_names_match(self) -> None:
        async with self.opened([*SEARCHABLE, 'earth altLabel "Earth"@de', 'earth altLabel "earth"@en']) as graph:
            found = await graph.search("earth", limit=5)
        assert [candidate.entity for candidate in found].count(iri("earth")) == 1

    async def test_a_text_that_names_nothing_finds_nothing(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            assert [list(await graph.search(text, limit=5)) for text in ("zzqqxxvv", "", "  \t\n")] == [[], [], []]
        async with self.opened([]) as graph:
            assert list(await graph.search("Mercury", limit=5)) == []

    async def test_a_name_full_of_syntax_is_found_as_it_is(self) -> None:
        name = 'the "odd" one {?x} \\ <b>'
        async with self.opened(SEARCHABLE) as graph:
            found = await graph.search(name, limit=5)
        assert exact(found[:1], name) == [Candidate(iri("odd"), 1.0, "label", name)]

    async def test_hostile_text_is_only_text(self) -> None:
        async with self.opened(SEARCHABLE) as graph:
            for text in HOSTILE:
                assert len(await graph.search(text, limit=3)) <= 3
            assert exact(await graph.search("Earth", limit=1), "Earth") != []


VALUED: Final = (
    'ann label "Ann"',
    'ann town "Bad Mühl"',
    f'ann since "2011"^^<{XSD}integer>',
    'bob town "Bad Mühl"@en',
    'bob nick "Ann"',
    'cid town "Bad Mühl Nord"',
    'cid birthplace "Bad Mühl"',
)


class ValueSearchContract(GraphOpening):
    """What a graph promises that finds entities by their values."""

    async def uses(self, *texts: str, limit: int = 10) -> Mapping[str, Sequence[tuple[str, str, list[str], int]]]:
        """Return relation, value, bearers and count of each use of some texts; skip graphs that find none."""
        async with self.opened(VALUED) as graph:
            if not isinstance(graph, SupportsValueSearch):
                pytest.skip("this adapter does not find values")
            found = await graph.uses_of_values(texts, limit=limit)
        return {
            text: [
                (use.relation.local_part, use.value.value, [node.local_part for node in use.bearers], use.count.value)
                for use in uses
            ]
            for text, uses in found.items()
        }

    async def test_a_whole_value_finds_those_who_have_it_the_most_frequent_relation_first(self) -> None:
        assert await self.uses("Bad Mühl") == {
            "Bad Mühl": [("town", "Bad Mühl", ["ann", "bob"], 2), ("birthplace", "Bad Mühl", ["cid"], 1)]
        }

    async def test_case_does_not_matter_for_values_and_numbers_are_values(self) -> None:
        assert {text: [use[0] for use in uses] for text, uses in (await self.uses("bad mühl", "2011")).items()} == {
            "bad mühl": ["town", "birthplace"],
            "2011": ["since"],
        }

    async def test_a_name_is_no_value_unless_it_is_also_one(self) -> None:
        assert await self.uses("Ann", "Mühl", "", "zzqqxxvv", *HOSTILE) == {"Ann": [("nick", "Ann", ["bob"], 1)]}

    async def test_no_more_bearers_than_the_limit_are_named_and_all_are_counted(self) -> None:
        assert (await self.uses("Bad Mühl", limit=1))["Bad Mühl"][0] == ("town", "Bad Mühl", ["ann"], 2)
