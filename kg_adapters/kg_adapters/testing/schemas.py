# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""Contract tests about the schema: classes, profiles and relations."""

from dataclasses import replace

import anyio
import pytest

from kg_adapters.models import (
    ClassSummary,
    Count,
    FeatureSummary,
    GraphSchema,
    NeighborPage,
    RelationCandidate,
    RelationSummary,
)
from kg_adapters.profile import (
    ClassProfile,
    Coverage,
    GraphProfile,
    InverseRelations,
    PropertyProfile,
    ValueCount,
    ValueRange,
)
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import RDF_LANG_STRING, XSD, Iri, Literal, Node
from kg_adapters.testing.entities import HOSTILE
from kg_adapters.testing.graphs import CALLED, HUB, NAMES, SUMMED, TANGLE, GraphOpening, edges, iri, typed


def without_examples(schema: GraphSchema) -> GraphSchema:
    """Return a schema with its examples set aside: any of the graph's own will do."""
    return replace(
        schema,
        classes=tuple(replace(item, example=None) for item in schema.classes),
        relations=tuple(replace(item, example=None) for item in schema.relations),
        features=tuple(replace(item, example=None) for item in schema.features),
    )


class SchemaContract(GraphOpening):
    """The graph as a whole, and many calls at once."""

    async def test_it_is_an_adapter_with_a_name(self) -> None:
        async with self.opened(SUMMED) as graph:
            assert isinstance(graph, KGAdapter)
            assert graph.name.strip()

    async def test_the_schema_counts_classes_relations_and_features(self) -> None:
        async with self.opened(SUMMED) as graph:
            found = without_examples(await graph.schema())
            prefixes = graph.prefixes
        assert found == GraphSchema(
            entities=found.entities,
            triples=Count(6),
            classes=(
                ClassSummary(iri("City"), "city", Count(2), None),
                ClassSummary(iri("Port"), None, Count(1), None),
            ),
            relations=(
                RelationSummary(iri("type"), None, Count(3), None),
                RelationSummary(iri("country"), None, Count(2), None),
                RelationSummary(iri("near"), "near", Count(1), None),
            ),
            features=(
                FeatureSummary(iri("label"), None, Count(2), None),
                FeatureSummary(iri("population"), None, Count(1), None),
            ),
            prefixes=prefixes,
        )

    async def test_the_schema_counts_entities_whether_they_have_names_or_not(self) -> None:
        async with self.opened([*TANGLE, 'hermit label "A hermit"@en']) as graph:
            assert (await graph.schema()).entities == Count(13)

    async def test_the_examples_of_the_schema_are_from_the_graph(self) -> None:
        async with self.opened(SUMMED) as graph:
            found = await graph.schema()
        assert all(item.example in {iri("kyoto"), iri("osaka")} for item in found.classes)
        assert all(item.example in edges(*SUMMED[:6]) for item in found.relations)
        assert all(item.example is not None and item.example.relation == item.iri for item in found.relations)
        assert [item.example for item in found.features if item.iri == iri("population")] == [
            typed("2700000", "integer")
        ]

    async def test_an_empty_graph_has_an_empty_schema(self) -> None:
        async with self.opened([]) as graph:
            found = await graph.schema()
            assert found == GraphSchema(Count(0), Count(0), (), (), (), graph.prefixes)

    async def test_many_calls_at_once_give_what_each_gives_alone(self) -> None:
        nodes = [iri(f"n{number % 12}") for number in range(36)]
        async with self.opened(TANGLE) as graph:
            alone = [await graph.neighbors(NeighborRequest((node,), limit=7)) for node in nodes]
            together: dict[int, tuple[Iri, object]] = {}

            async def ask(turn: int, node: Iri) -> None:
                together[turn] = (node, await graph.neighbors(NeighborRequest((node,), limit=7)))

            async with anyio.create_task_group() as tasks:
                for turn, node in enumerate(nodes):
                    tasks.start_soon(ask, turn, node)
        assert [together[turn] for turn in range(36)] == list(zip(nodes, alone, strict=True))

    async def test_calls_of_every_kind_run_side_by_side(self) -> None:
        pages: list[NeighborPage | None] = []
        japan: Node = iri("japan")
        async with self.opened(HUB) as graph:

            async def look_around() -> None:
                pages.append((await graph.neighbors(NeighborRequest((japan,), direction="in", limit=3))).get(japan))

            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(graph.schema)
                    tasks.start_soon(graph.degrees, [japan])
                    tasks.start_soon(graph.labels, [japan])
                    tasks.start_soon(look_around)
        expected = edges("tokyo capitalOf japan", "person0000 citizenOf japan", "person0001 citizenOf japan")
        assert [page.triples for page in pages if page is not None] == [expected] * 5

    async def test_closing_twice_is_harmless(self) -> None:
        async with self.opened(SUMMED) as graph:
            await graph.labels([iri("City")])
            await graph.aclose()


_DATE = Iri(XSD + "date")
_NUMBER = Iri(XSD + "decimal")
_RIVERS = (
    "river type Kind",
    "brook type Kind",
    "stream subClassOf river",
    *("rhine type river", "elbe type river", "ahr type stream", "cologne type town"),
    *("rhine flowsThrough cologne", "rhine flowsThrough bonn", "cologne onRiver rhine", "elbe flowsThrough cologne"),
    *(f'{name} length "{size}"^^<{XSD}decimal>' for name, size in (("rhine", "1233"), ("elbe", "1094.5"))),
    f'ahr surveyed "1987-03-01"^^<{XSD}date>',
    f'elbe surveyed "-0044-03-15"^^<{XSD}date>',
    'length label "length (km)"@en',
    'river label "river"@en',
    'onRiver label "on river"@en',
    "flowsThrough inverseOf onRiver",
)


class ProfileContract(GraphOpening):
    """Which facts the classes of the graph have, and how many of their instances."""

    async def profile_of(self, *statements: str) -> GraphProfile:
        async with self.opened(statements) as graph:
            found = await graph.profile()
        if not found.complete:
            pytest.skip("this graph knows no profile of all its classes")
        return found

    async def test_the_profile_of_a_class_counts_its_instances_and_what_they_have(self) -> None:
        profile = await self.profile_of(*_RIVERS)
        assert profile.profile_of(iri("river")) == ClassProfile(
            iri=iri("river"),
            label="river",
            instances=3,
            direct=2,
            broader=(),
            properties=(
                PropertyProfile(NAMES["type"], "out", None, 3, 3, ((iri("Kind"), 2),)),
                PropertyProfile(iri("flowsThrough"), "out", None, 2, 3, ((iri("town"), 2),)),
                PropertyProfile(
                    iri("length"),
                    "out",
                    "length (km)",
                    2,
                    2,
                    values=ValueRange((_NUMBER,), typed("1094.5", "decimal"), typed("1233", "decimal"), "km"),
                ),
                PropertyProfile(
                    iri("surveyed"),
                    "out",
                    None,
                    2,
                    2,
                    values=ValueRange((_DATE,), typed("-0044-03-15", "date"), typed("1987-03-01", "date")),
                ),
                PropertyProfile(iri("onRiver"), "in", "on river", 1, 1, ((iri("town"), 1),)),
            ),
        )

    async def test_the_profile_of_everything_counts_the_entities_that_have_a_relation(self) -> None:
        everything = (await self.profile_of(*_RIVERS)).everything
        assert everything.property(NAMES["label"]) == PropertyProfile(
            NAMES["label"], "out", None, 2, 2, values=ValueRange((RDF_LANG_STRING,))
        )
        assert everything.coverage(iri("length")) == Coverage(None, None, iri("length"), "out", everything.instances, 2)

    async def test_the_profile_lists_the_largest_class_first(self) -> None:
        profile = await self.profile_of(*_RIVERS)
        assert [(each.iri, each.instances) for each in profile.classes] == [
            (iri("river"), 3),
            (iri("Kind"), 2),
            (iri("stream"), 1),
            (iri("town"), 1),
        ]
        assert profile.classes[2].broader == (iri("river"),)

    async def test_the_profile_says_how_many_instances_have_what_none_has(self) -> None:
        profile = await self.profile_of(*_RIVERS)
        assert profile.coverage(iri("river"), iri("captain")) == Coverage(
            iri("river"), "river", iri("captain"), "out", 3, 0
        )
        assert profile.coverage(iri("Atlantis"), iri("captain")) is None

    async def test_the_profile_counts_values_by_kind_without_names(self) -> None:
        profile = await self.profile_of(*_RIVERS, 'rhine motto "panta rhei"', 'rhine altLabel "Rhein"@de')
        assert profile.values == (ValueCount("date", 2), ValueCount("number", 2), ValueCount("text", 1))

    async def test_numbers_of_other_datatypes_than_those_of_xml_schema_are_quantities(self) -> None:
        fathom = iri("fathom")
        depths = (f'{name} depth "{depth}"^^<{fathom}>' for name, depth in (("rhine", "9"), ("elbe", "10.5")))
        codes = (f'{name} code "{name}"^^<{iri("code")}>' for name in ("rhine", "elbe"))
        profile = await self.profile_of(*_RIVERS, *depths, *codes)
        depth, code = (profile.everything.property(iri(name)) for name in ("depth", "code"))
        assert depth is not None and code is not None  # noqa: PT018
        assert depth.values == ValueRange((fathom,), Literal("9", fathom), Literal("10.5", fathom))
        assert code.values == ValueRange((iri("code"),))
        assert profile.values == (ValueCount("date", 2), ValueCount("number", 4), ValueCount("text", 2))

    async def test_declared_inverses_are_found_and_their_pairs_counted(self) -> None:
        profile = await self.profile_of(*_RIVERS)
        assert profile.inverses == (
            InverseRelations(iri("flowsThrough"), iri("onRiver"), True, both=1, only_relation=2, only_inverse=0),
        )

    async def test_relations_that_are_stored_both_ways_are_inverse_or_symmetric(self) -> None:
        sides = [f"town{n} twin town{n + 1}" for n in range(40)] + [f"town{n + 1} twin town{n}" for n in range(35)]
        owned = [f"town{n} owns farm{n}" for n in range(30)] + [f"farm{n} ownedBy town{n}" for n in range(4, 34)]
        likes = [f"town{n} likes farm{n}" for n in range(30)] + [f"farm{n} likes town{n}" for n in range(5)]
        profile = await self.profile_of(*sides, *owned, *likes)
        assert profile.inverses == (
            InverseRelations(iri("ownedBy"), iri("owns"), False, both=26, only_relation=4, only_inverse=4),
            InverseRelations(iri("twin"), iri("twin"), False, both=35, only_relation=5, only_inverse=0),
        )
        assert (profile.inverse_of(iri("owns")), profile.inverse_of(iri("twin"))) == (iri("ownedBy"), iri("twin"))
        assert profile.inverse_of(iri("likes")) is None

    async def test_a_child_is_the_inverse_of_neither_father_nor_mother(self) -> None:
        fathers = [f"p{n} child c{n}" for n in range(60)] + [f"c{n} father p{n}" for n in range(60)]
        mothers = [f"m{n} child c{n}" for n in range(30)] + [f"c{n} mother m{n}" for n in range(30)]
        assert (await self.profile_of(*fathers, *mothers)).inverses == ()


async def called(graph: KGAdapter, text: str, limit: int = 20) -> list[Iri]:
    """Return the relations that a text may name."""
    return [each.relation for each in await graph.find_relations(text, limit=limit)]


class RelationContract(GraphOpening):
    """Relations by name: words and their spelling count, letters alone do not."""

    async def test_a_relation_is_found_by_label_alias_or_local_part_and_says_by_which(self) -> None:
        async with self.opened(CALLED) as graph:
            label, alias, local = [
                (await graph.find_relations(text, limit=1))[0] for text in ("place of birth", "Dad", "birth place")
            ]
        assert label == RelationCandidate(iri("birthPlace"), 1.0, "label", "place of birth")
        assert alias == RelationCandidate(iri("father"), 1.0, "alias", "dad")
        assert local == RelationCandidate(iri("birthPlace"), 1.0, "alias", "birthPlace")

    async def test_features_stand_in_relation_position_and_are_found_like_relations(self) -> None:
        async with self.opened(CALLED) as graph:
            (found,) = await graph.find_relations("Date of Birth", limit=1)
        assert found == RelationCandidate(iri("born"), 1.0, "label", "date of birth")

    async def test_of_the_same_name_labels_come_before_the_rest_and_the_more_used_first(self) -> None:
        async with self.opened(CALLED) as graph:
            found = await graph.find_relations("mayor", limit=2)
            alike = await graph.find_relations("capital", limit=2)
        assert [(each.relation, each.score, each.matched_by) for each in found] == [
            (iri("head"), 1.0, "label"),
            (iri("mayor"), 1.0, "alias"),
        ]
        assert [(each.relation, each.matched_by) for each in alike] == [
            (iri("seat"), "label"),
            (iri("capital"), "label"),
        ]

    async def test_names_that_share_words_follow_those_that_are_the_same(self) -> None:
        async with self.opened(CALLED) as graph:
            assert (await called(graph, "father"))[:2] == [iri("father"), iri("inLaw")]
            assert (await called(graph, "birth"))[:2] == [iri("birthPlace"), iri("born")]
            assert (await called(graph, "birth, place of"))[:1] == [iri("birthPlace")]

    @pytest.mark.parametrize("text", ["fahter", "Fatther", "father?"])
    async def test_a_slip_of_the_pen_does_not_hide_a_relation(self, text: str) -> None:
        async with self.opened(CALLED) as graph:
            assert (await called(graph, text))[0] == iri("father")

    @pytest.mark.parametrize(
        "text", ["heart", "art", "place mat rebirth", "of", "capitalism and", "zzqqxxvv", "", " \t"]
    )
    async def test_letters_that_are_no_word_find_nothing(self, text: str) -> None:
        async with self.opened(CALLED) as graph:
            assert await called(graph, text) == []

    async def test_no_more_than_the_limit_is_found_and_the_best_come_first(self) -> None:
        async with self.opened(CALLED) as graph:
            found = await graph.find_relations("place of birth", limit=20)
            assert list(await graph.find_relations("place of birth", limit=2)) == list(found[:2])
            assert list(await graph.find_relations("place of birth", limit=0)) == []
        scores = [each.score for each in found]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)
        assert len({each.relation for each in found}) == len(found) > 2

    async def test_a_relation_that_is_only_spoken_of_is_not_found(self) -> None:
        async with self.opened([*CALLED, 'unused label "grandfather"@en']) as graph:
            assert iri("unused") not in await called(graph, "grandfather")

    async def test_any_text_may_be_a_name_of_a_relation(self) -> None:
        async with self.opened(CALLED) as graph:
            for text in HOSTILE:
                assert len(await graph.find_relations(text, limit=3)) <= 3
            assert await called(graph, "father", 1) == [iri("father")]
