"""The local adapter: the contract, its schema file and what it adds."""

import re
import shutil
from pathlib import Path

import pytest

from kg_adapters.definition_files import read_schema, schema_text
from kg_adapters.errors import GraphReplaced, InvalidRequest, InvalidSource
from kg_adapters.index.block_files import Damage
from kg_adapters.index.graph_index import Dictionary
from kg_adapters.index.profiling import SCHEMA_CLASSES, SCHEMA_RELATIONS, schema_of_index
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import LocalStore
from kg_adapters.models import ClassSummary, Count, FeatureSummary, GraphSchema, RelationSummary
from kg_adapters.prefixes import WIKIDATA, Prefixes
from kg_adapters.protocol import KGAdapter, SupportsPaths, SupportsSparql
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import RDF_LANG_STRING, BlankNode, Literal, Triple
from kg_adapters.testing import (
    HUB,
    SEARCHABLE,
    TOWNS,
    KGAdapterContract,
    ValuesContract,
    edge,
    feature_page,
    iri,
    ntriples,
    typed,
)
from small_graphs import index_of, shared_store, store_of


def adapter(folder: Path, *statements: str) -> LocalAdapter:
    return LocalAdapter(store_of(folder, ntriples(statements)))


async def test_it_can_do_everything_that_an_adapter_may(tmp_path: Path) -> None:
    graph = adapter(tmp_path, *TOWNS)
    assert isinstance(graph, KGAdapter)
    assert isinstance(graph, SupportsPaths)
    assert isinstance(graph, SupportsSparql)
    assert (graph.remote, graph.vocabulary) == (False, Vocabulary())


async def test_a_cursor_does_not_outlive_its_graph(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    graph, changed = adapter(tmp_path, *HUB), adapter(tmp_path / "new", *HUB, "person0000 citizenOf atlantis")
    cursor = (await graph.neighbors(NeighborRequest((iri("japan"),), direction="in", limit=3)))[iri("japan")].cursor
    with pytest.raises(InvalidRequest, match="as it was before it was imported again"):
        await changed.neighbors(NeighborRequest((iri("japan"),), direction="in", limit=3, cursor=cursor))


@pytest.mark.parametrize("position", ["0-9", "999999999999-0", "1-0"])
async def test_a_cursor_that_points_nowhere_is_refused(tmp_path: Path, position: str) -> None:
    graph = adapter(tmp_path, *HUB)
    cursor = (await graph.neighbors(NeighborRequest((iri("japan"),), direction="in", limit=3)))[iri("japan")].cursor
    assert cursor is not None
    forged = re.sub(r"\d+-\d+$", position, cursor)
    with pytest.raises(InvalidRequest, match="points past the end"):
        await graph.neighbors(NeighborRequest((iri("japan"),), direction="in", limit=3, cursor=forged))


async def test_a_cursor_about_an_unknown_entity_is_refused(tmp_path: Path) -> None:
    graph = adapter(tmp_path, *HUB)
    cursor = (await graph.neighbors(NeighborRequest((iri("japan"),), direction="in", limit=3)))[iri("japan")].cursor
    with pytest.raises(InvalidRequest, match="belongs to another question"):
        await graph.neighbors(NeighborRequest((iri("atlantis"),), direction="in", limit=3, cursor=cursor))


async def test_a_limit_per_relation_below_one_is_refused(tmp_path: Path) -> None:
    graph = adapter(tmp_path, *HUB)
    with pytest.raises(InvalidRequest, match="at least 1; it is 0"):
        await graph.neighbors(NeighborRequest((iri("japan"),), direction="in", limit_per_relation=0, limit=3))


async def test_the_schema_is_read_once(tmp_path: Path) -> None:
    graph = adapter(tmp_path, *HUB)
    first = await graph.schema()
    (tmp_path / "store" / "schema.json").unlink()
    assert await graph.schema() is first


async def test_features_have_a_limit_of_at_least_one(tmp_path: Path) -> None:
    graph = adapter(tmp_path, *TOWNS)
    with pytest.raises(InvalidRequest, match="at least 1; it is 0"):
        await feature_page(graph, iri("hermit"), limit=0)


async def test_no_more_than_a_hundred_types_are_described(tmp_path: Path) -> None:
    graph = adapter(tmp_path, *(f"thing type Class{number:03}" for number in range(150)))
    described = (await graph.describe([iri("thing")]))[iri("thing")]
    assert described.types == tuple(iri(f"Class{number:03}") for number in range(100))


async def test_a_store_without_its_text_index_says_what_to_do(tmp_path: Path) -> None:
    graph = adapter(tmp_path, *SEARCHABLE)
    shutil.rmtree(tmp_path / "store" / "text")
    with pytest.raises(InvalidSource, match=r"is damaged: text/.* Import the files again"):
        await graph.search("Mercury", limit=1)
    assert await graph.labels([iri("earth")]) == {iri("earth"): "Earth"}


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_text_index_that_has_changed_is_not_read(tmp_path: Path, place: int) -> None:
    graph = adapter(tmp_path, *SEARCHABLE)
    path = next((tmp_path / "store" / "text" / "fuzzy").glob("*.term"))
    content = bytearray(path.read_bytes())
    content[place * (len(content) - 1) // 2] ^= 0x5A
    path.write_bytes(content)
    with pytest.raises(InvalidSource, match=r"is damaged: the content of text/fuzzy/.* has changed"):
        await graph.search("Mercury", limit=1)


async def test_damage_in_a_large_array_is_reported_by_the_answer_that_reads_it_and_by_no_other(tmp_path: Path) -> None:
    graph = adapter(tmp_path, *(f"thing{number:05} near thing{number + 1:05}" for number in range(60_000)))
    path = tmp_path / "store" / "index" / "nodes.text.npy"
    size = path.stat().st_size
    first = iri("thing00001")
    with path.open("r+b") as file:
        file.seek(size - 10)
        file.write(b"~")
    assert (await graph.degrees([first]))[first].neighbors.value == 2
    for entity in (iri("thing60000"), iri("thing59999")):
        with pytest.raises(InvalidSource, match=r"is damaged: the content of index/nodes\.text\.npy has changed"):
            await graph.degrees([entity])


async def test_a_store_that_was_replaced_is_not_mixed_with_the_index_of_the_old_one(tmp_path: Path) -> None:
    graph = adapter(tmp_path, *SEARCHABLE)
    store_of(tmp_path, ntriples(TOWNS))
    for ask in (
        lambda: graph.search("Mercury", limit=1),
        lambda: graph.find_relations("orbits", limit=1),
        lambda: graph.label_vectors("model"),
        graph.schema,
        lambda: graph.select("ASK { ?s ?p ?o }", timeout_s=10, max_rows=1),
    ):
        with pytest.raises(GraphReplaced, match=r"was imported again or removed .* Ask again"):
            await ask()
    assert await graph.labels([iri("earth")]) == {iri("earth"): "Earth"}


async def test_what_was_read_before_a_store_was_replaced_goes_on_answering(tmp_path: Path) -> None:
    graph = adapter(tmp_path, *SEARCHABLE)
    before = await graph.search("Mercury", limit=1), await graph.schema()
    store_of(tmp_path, ntriples(TOWNS))
    assert (await graph.search("Mercury", limit=1), await graph.schema()) == before


async def test_a_damaged_sparql_part_is_made_anew_before_the_first_query(tmp_path: Path) -> None:
    graph = adapter(tmp_path, *TOWNS)
    path = next((tmp_path / "store" / "oxigraph").glob("MANIFEST-*"))
    path.write_bytes(bytes(path.stat().st_size))
    assert (await graph.select("ASK { ?s ?p ?o }", timeout_s=10, max_rows=1)).truth is True
    await graph.aclose()


def test_a_blank_node_is_no_relation() -> None:
    words = Dictionary(index_of([*TOWNS, "_:twin twin kyoto"]))
    assert words.node_id(BlankNode("twin")) is not None
    assert words.relation_id(BlankNode("twin")) is None


def test_a_dictionary_forgets_before_it_grows_too_large() -> None:
    index = index_of(f'n{number} r{number} "x"' for number in range(25))
    named = index_of(f'n{number} label "{number}"' for number in range(25))
    terms, names = Dictionary(index, most_kept=10), Dictionary(named, most_kept=10)
    for _ in range(2):
        assert [str(terms.node(number)) for number in range(25)] == [index.nodes[number] for number in range(25)]
        assert [str(terms.relation(number)) for number in range(25)] == list(
            map(index.relations.__getitem__, range(25))
        )
        assert {names.label(number) for number in range(25)} == {str(number) for number in range(25)}
        assert terms.kept <= 20
        assert names.kept <= 10


class TestLocalAdapter(ValuesContract, KGAdapterContract):
    async def open_graph(self, triples: str) -> KGAdapter:
        return LocalAdapter(shared_store(triples, form="nt"))


GRAPH = (
    "tokyo type City",
    "kyoto type City",
    "kyoto P31 City",
    "kyoto P31 Capital",
    "tokyo country japan",
    "kyoto country japan",
    "osaka country japan",
    "kyoto near osaka",
    "kyoto near _:nara",
    'City label "city"@en',
    'country label "country"@en',
    'tokyo population "13960000"^^<http://www.w3.org/2001/XMLSchema#integer>',
    f'tokyo history "{"long " * 100}"',
    f'kyoto motto "{"long " * 100}"',
    'osaka motto "short"@en-GB',
)


def schema_of(*statements: str) -> GraphSchema:
    return read_schema(schema_text(schema_of_index(index_of(statements), Vocabulary())).encode(), Prefixes())


def test_a_schema_counts_what_there_is_and_shows_the_best_connected_as_examples() -> None:
    kyoto = iri("kyoto")
    assert schema_of(*GRAPH) == GraphSchema(
        entities=Count(7),
        triples=Count(9),
        classes=(
            ClassSummary(iri("City"), "city", Count(2), kyoto),
            ClassSummary(iri("Capital"), None, Count(1), kyoto),
        ),
        relations=(
            RelationSummary(iri("country"), "country", Count(3), edge("kyoto country japan")),
            RelationSummary(iri("near"), None, Count(2), Triple(kyoto, iri("near"), iri("osaka"))),
            RelationSummary(iri("type"), None, Count(2), edge("kyoto type City")),
            RelationSummary(iri("P31"), None, Count(2), edge("kyoto P31 City")),
        ),
        features=(
            FeatureSummary(iri("motto"), None, Count(2), Literal("short", RDF_LANG_STRING, "en-gb")),
            FeatureSummary(iri("label"), None, Count(2), Literal("city", RDF_LANG_STRING, "en")),
            FeatureSummary(iri("history"), None, Count(1), None),
            FeatureSummary(iri("population"), None, Count(1), typed("13960000", "integer")),
        ),
        prefixes=Prefixes(),
    )


def test_a_class_of_two_type_relations_counts_each_instance_once() -> None:
    found = schema_of("a type City", "a P31 City", "b P31 City")
    assert found.classes == (ClassSummary(iri("City"), None, Count(2), iri("a")),)


def test_a_schema_too_large_is_cut_and_says_so() -> None:
    count = SCHEMA_CLASSES + 1
    found = schema_of("a type Class0", *(f"a type Class{number}" for number in range(count)))
    assert (len(found.classes), found.complete) == (SCHEMA_CLASSES, False)
    relations = SCHEMA_RELATIONS + 1
    found = schema_of(*(f"a r{number} b" for number in range(relations)))
    assert (len(found.relations), found.complete) == (SCHEMA_RELATIONS, False)


@pytest.mark.parametrize("content", ["", "{}", "[1]", "\ud800"])
def test_what_is_no_schema_is_damage(content: str) -> None:
    with pytest.raises(Damage, match=r"schema\.json cannot be read"):
        read_schema(content.encode(errors="surrogatepass"), Prefixes())


def test_the_schema_of_a_real_graph_names_its_largest_class(sample_files: LocalStore) -> None:
    found = schema_of_index(sample_files.index, Vocabulary(), WIKIDATA)
    largest = found.classes[0]
    assert (WIKIDATA.shorten(largest.iri), largest.label, found.triples) == ("Q5", "human", Count(149_827))
    assert (found.entities, found.complete) == (Count(15_777), True)
