# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""What the contract says about labels, descriptions and features."""

from kg_adapters.models import Count, Description, Feature, FeaturePage
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import RDF_LANG_STRING, Literal
from kg_adapters.testing.graphs import DESCRIBED, NAMED, TOWNS, UNICODE, VALUES, feature_page, iri, typed
from kg_adapters.testing.opening import GraphOpening


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

    async def test_labels_beyond_ascii_arrive_whole(self) -> None:
        async with self.opened(UNICODE) as graph:
            assert await graph.labels([iri("東京")]) == {iri("東京"): "東京 🗼"}
            assert await graph.labels([]) == {}

    async def test_relations_have_labels_like_entities(self) -> None:
        async with self.opened(DESCRIBED) as graph:
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

    async def test_a_relation_is_described_with_its_role(self) -> None:
        async with self.opened(DESCRIBED) as graph:
            found = await graph.describe([iri("country"), iri("P31"), iri("type")])
        assert found == {
            iri("country"): Description("country", None, (), frozenset({"entity", "relation"})),
            iri("P31"): Description(None, None, (), frozenset({"relation"})),
            iri("type"): Description(None, None, (), frozenset({"relation"})),
        }

    async def test_what_the_graph_does_not_mention_is_not_described(self) -> None:
        async with self.opened(DESCRIBED) as graph:
            assert await graph.describe([iri("atlantis")]) == {}
            assert await graph.describe([]) == {}

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

    async def test_an_unknown_entity_and_one_without_literals_have_no_features(self) -> None:
        async with self.opened(TOWNS) as graph:
            assert await feature_page(graph, iri("atlantis")) == FeaturePage((), Count(0))
            assert await feature_page(graph, iri("kyoto")) == FeaturePage((), Count(0))
