from pathlib import Path

import pytest

from kg_adapters.definition_files import read_schema
from kg_adapters.index.block_files import Damage
from kg_adapters.index.profiling import SCHEMA_CLASSES, SCHEMA_RELATIONS, write_schema
from kg_adapters.labels import Vocabulary
from kg_adapters.local.store import LocalStore
from kg_adapters.models import ClassSummary, Count, FeatureSummary, GraphSchema, RelationSummary
from kg_adapters.prefixes import WIKIDATA, Prefixes
from kg_adapters.terms import RDF_LANG_STRING, Literal, Triple
from kg_adapters.testing import edge, iri, typed
from small_graphs import index_of

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


def schema_of(folder: Path, *statements: str) -> GraphSchema:
    write_schema(folder, index_of(statements), Vocabulary())
    return read_schema((folder / "schema.json").read_bytes(), Prefixes())


def test_a_schema_counts_what_there_is_and_shows_the_best_connected_as_examples(tmp_path: Path) -> None:
    kyoto = iri("kyoto")
    assert schema_of(tmp_path, *GRAPH) == GraphSchema(
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


def test_a_class_of_two_type_relations_counts_each_instance_once(tmp_path: Path) -> None:
    found = schema_of(tmp_path, "a type City", "a P31 City", "b P31 City")
    assert found.classes == (ClassSummary(iri("City"), None, Count(2), iri("a")),)


def test_a_schema_too_large_is_cut_and_says_so(tmp_path: Path) -> None:
    count = SCHEMA_CLASSES + 1
    found = schema_of(tmp_path, "a type Class0", *(f"a type Class{number}" for number in range(count)))
    assert (len(found.classes), found.complete) == (SCHEMA_CLASSES, False)
    relations = SCHEMA_RELATIONS + 1
    found = schema_of(tmp_path, *(f"a r{number} b" for number in range(relations)))
    assert (len(found.relations), found.complete) == (SCHEMA_RELATIONS, False)


@pytest.mark.parametrize("content", ["", "{}", "[1]", "\ud800"])
def test_what_is_no_schema_is_damage(content: str) -> None:
    with pytest.raises(Damage, match=r"schema\.json cannot be read"):
        read_schema(content.encode(errors="surrogatepass"), Prefixes())


@pytest.mark.parametrize(("said", "instead"), [(b'"triples":9', b'"triples":-9'), (b"http://", b"no iri ")])
def test_a_schema_that_cannot_be_true_is_damage(tmp_path: Path, said: bytes, instead: bytes) -> None:
    write_schema(tmp_path, index_of(GRAPH), Vocabulary())
    text = (tmp_path / "schema.json").read_bytes()
    assert said in text
    with pytest.raises(Damage, match=r"schema\.json cannot be read"):
        read_schema(text.replace(said, instead), Prefixes())


def test_the_schema_of_a_real_graph_names_its_largest_class(tmp_path: Path, sample_files: LocalStore) -> None:
    write_schema(tmp_path, sample_files.index, Vocabulary())
    found = read_schema((tmp_path / "schema.json").read_bytes(), WIKIDATA)
    largest = found.classes[0]
    assert (WIKIDATA.shorten(largest.iri), largest.label, found.triples) == ("Q5", "human", Count(149_827))
    assert (found.entities, found.complete) == (Count(15_777), True)
