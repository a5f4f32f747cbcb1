"""The edges around many entities at once: the generic way, the index's own, and that they agree."""

from collections.abc import Sequence

import anyio
import numpy as np
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from kg_adapters.errors import InvalidRequest
from kg_adapters.index.graph_index import Dictionary, GraphIndex
from kg_adapters.labels import Vocabulary
from kg_adapters.local.surroundings import RelationAliases, surroundings_in_index
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.requests import SurroundingsRequest
from kg_adapters.surroundings import Lazy, SupportsSurroundings, Surroundings, gather_surroundings, surroundings
from kg_adapters.terms import Node, Triple
from kg_adapters.testing import edges, iri, ntriples
from small_graphs import index_of

TOWN = [
    "tokyo country japan",
    "tokyo capital shinjuku",
    "japan capital tokyo",
    "kyoto country japan",
    "tokyo near tokyo",
    'tokyo label "Tokyo"@en',
    'japan label "Japan"@en',
    'country label "country"@en',
]
STATEMENTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=40)


def by_index(
    index: GraphIndex, entities: Sequence[Node], per_relation: int, per_entity: int, *, values: bool = False
) -> Surroundings:
    request = SurroundingsRequest(tuple(entities), per_relation, per_entity, values)
    numbers = (index.relations.find(iri.value) for iri in Vocabulary().texts)
    texts = [number for number in numbers if number is not None]
    dictionary = Dictionary(index)
    aliases = RelationAliases(index, dictionary, Vocabulary())
    return surroundings_in_index(index, dictionary, request, texts, aliases, late_reads=lambda read: read)


def rdflib_adapter(statements: Sequence[str]) -> RdflibAdapter:
    return RdflibAdapter(rdflib.Graph().parse(data=ntriples(statements), format="nt"))


def triples_of(around: Surroundings) -> list[tuple[Node, Triple]]:
    return [(around.entities[around.near[edge]], around.triple(edge)) for edge in range(len(around))]


def everything(around: Surroundings) -> tuple[object, ...]:
    arrays = (around.near, around.inverse, around.relation, around.far)
    sequences = (
        around.relations,
        around.far_nodes,
        around.far_literals,
        around.relation_labels,
        around.far_labels,
    )
    return (
        around.entities,
        *(array.tolist() for array in arrays),
        *(list(sequence) for sequence in sequences),
        around.sampled,
    )


async def test_the_edges_of_several_entities_come_in_one_order_with_labels() -> None:
    around = await gather_surroundings(
        rdflib_adapter(TOWN),
        SurroundingsRequest((iri("tokyo"), iri("japan"), iri("tokyo"), iri("atlantis")), per_relation=9, per_entity=99),
    )
    near, country, out, into = iri("tokyo"), iri("japan"), edges(*TOWN[:2], TOWN[4]), edges(TOWN[2])
    assert triples_of(around) == [
        (near, out[1]),
        (near, out[0]),
        (near, out[2]),
        (near, into[0]),
        (country, into[0]),
        *((country, triple) for triple in edges("kyoto country japan", "tokyo country japan")),
    ]
    assert around.entities == (iri("tokyo"), iri("japan"), iri("atlantis"))
    assert list(around.relation_labels) == [None, "country", None]
    assert dict(zip(around.far_nodes, around.far_labels, strict=True)) == {
        iri("japan"): "Japan",
        iri("kyoto"): None,
        iri("shinjuku"): None,
        iri("tokyo"): "Tokyo",
    }
    assert around.sampled == ()


async def test_a_hub_is_sampled_relation_by_relation_and_named() -> None:
    crowd = [f"person{number} citizen land" for number in range(9)] + ["town capital land"]
    around = await gather_surroundings(
        rdflib_adapter(crowd), SurroundingsRequest((iri("land"), iri("town")), per_relation=3, per_entity=99)
    )
    assert [str(triple.head).rpartition("/")[2] for _, triple in triples_of(around)] == [
        "town",
        "person0",
        "person1",
        "person2",
        "town",
    ]
    assert around.sampled == (iri("land"),)


@given(statements=STATEMENTS, per_relation=st.integers(1, 4), per_entity=st.integers(1, 9), values=st.booleans())
def test_the_index_gives_the_same_facts_in_the_same_order_as_any_graph(
    statements: list[tuple[int, int, int]], per_relation: int, per_entity: int, *, values: bool
) -> None:
    said = [f"n{head} r{relation} n{tail}" for head, relation, tail in statements]
    said += [f'n{head} r{relation} "{tail}"' for head, relation, tail in statements if tail != head]
    said += ['n1 label "one"@en', 'r1 label "first"@en']
    asked = tuple(iri(name) for name in ("n3", "n0", "n9", "n1", "n0", "n2"))

    async def gathered() -> Surroundings:
        return await gather_surroundings(
            rdflib_adapter(said), SurroundingsRequest(asked, per_relation, per_entity, values)
        )

    mine = by_index(index_of(said), asked, per_relation, per_entity, values=values)
    assert everything(mine) == everything(anyio.run(gathered))


def test_a_loop_behind_the_limit_of_its_group_still_leaves_the_group_whole() -> None:
    # Three heads of "r" beside the entity itself, which sorts last and is listed as outgoing alone.
    index = index_of(["a r z", "b r z", "c r z", "z r z"])
    around = by_index(index, [iri("z")], 3, 99)
    assert [triple for _, triple in triples_of(around)] == list(edges("z r z", "a r z", "b r z", "c r z"))
    assert around.sampled == ()
    assert by_index(index, [iri("z")], 2, 99).sampled == (iri("z"),)


def test_the_index_knows_its_own_numbers_of_what_is_around() -> None:
    index = index_of(TOWN)
    around = by_index(index, [iri("tokyo")], 9, 99)
    assert around.ids is not None
    assert [index.relations[number] for number in around.ids.relations] == [each.value for each in around.relations]
    assert [index.nodes[number] for number in around.ids.far] == [str(node) for node in around.far_nodes]


@pytest.mark.parametrize("entities", [[], [iri("atlantis")]])
def test_nothing_is_around_what_the_graph_does_not_mention(entities: list[Node]) -> None:
    around = by_index(index_of(TOWN), entities, 9, 99)
    assert (len(around), around.sampled, list(around.far_labels)) == (0, (), [])


@pytest.mark.parametrize(("per_relation", "per_entity"), [(0, 1), (1, 0)])
async def test_a_limit_below_one_is_refused_in_both_ways(per_relation: int, per_entity: int) -> None:
    with pytest.raises(InvalidRequest, match="at least 1"):
        by_index(index_of(TOWN), [iri("tokyo")], per_relation, per_entity)
    with pytest.raises(InvalidRequest, match="at least 1"):
        await gather_surroundings(
            rdflib_adapter(TOWN), SurroundingsRequest((iri("tokyo"),), per_relation=per_relation, per_entity=per_entity)
        )


async def test_a_graph_with_a_way_of_its_own_is_asked_that_way() -> None:
    index = index_of(TOWN)

    class Indexed(RdflibAdapter):
        async def surroundings(self, request: SurroundingsRequest) -> Surroundings:
            return by_index(index, request.entities, request.per_relation, request.per_entity)

    own, plain = Indexed(rdflib.Graph()), rdflib_adapter(TOWN)
    assert isinstance(own, SupportsSurroundings)
    assert not isinstance(plain, SupportsSurroundings)
    answers = [
        await surroundings(graph, SurroundingsRequest((iri("japan"),), per_relation=9, per_entity=9))
        for graph in (own, plain)
    ]
    assert everything(answers[0]) == everything(answers[1])


def test_a_lazy_sequence_makes_only_what_is_looked_at() -> None:
    made: list[int] = []

    def make(place: int) -> str:
        made.append(place)
        return f"item {place}"

    items = Lazy(4, make)
    assert (len(items), items[2], items[-1]) == (4, "item 2", "item 3")
    assert made == [2, 3]
    assert list(items[1:3]) == ["item 1", "item 2"]
    assert list(items) == [f"item {place}" for place in range(4)]
    with pytest.raises(IndexError):
        items[4]


def test_arrays_are_of_the_types_that_the_contract_names() -> None:
    around = by_index(index_of(TOWN), [iri("tokyo"), iri("japan")], 9, 99)
    kinds = [array.dtype for array in (around.near, around.inverse, around.relation, around.far)]
    assert kinds == [np.int32, np.bool_, np.int32, np.int32]
