import pytest

from kg_adapters.definition_files import read_schema, schema_text
from kg_adapters.index.block_files import Damage
from kg_adapters.index.profiling import SCHEMA_CLASSES, SCHEMA_RELATIONS, schema_of_index
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
