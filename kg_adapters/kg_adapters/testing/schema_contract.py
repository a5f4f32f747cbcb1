# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""What the contract says about the graph as a whole, and about calls side by side."""

from dataclasses import replace

import anyio

from kg_adapters.models import ClassSummary, Count, FeatureSummary, GraphSchema, NeighborPage, RelationSummary
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri, Node
from kg_adapters.testing.graphs import HUB, SUMMED, TANGLE, edges, iri, typed
from kg_adapters.testing.opening import GraphOpening


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
