"""Labels, prefixes and the relations that a user chooses for names."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.importing.build import build_store
from kg_adapters.importing.naming import LikelyName, NamingReport
from kg_adapters.labels import RDF_TYPE, WIKIDATA_TYPES, ChosenRelations, Vocabulary, chosen_prefixes
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.prefixes import WIKIDATA, Prefixes, prefixes_in_use
from kg_adapters.terms import RDF_LANG_STRING, Iri, Literal, Node

LABEL, PREF_LABEL = Vocabulary().labels[:2]


def said(value: str, language: str | None) -> Literal:
    return Literal(value) if language is None else Literal(value, RDF_LANG_STRING, language)


IN_ORDER = ["en", "en-GB", "mul", "mul-x", None, "de", "fr"]


@settings(deadline=None, derandomize=True)
@given(st.permutations(IN_ORDER))
def test_the_preferred_language_wins_whatever_the_order_of_the_texts(languages: list[str | None]) -> None:
    for place, preferred in enumerate(IN_ORDER):
        texts = [said("name", language) for language in languages if language not in IN_ORDER[:place]]
        assert Vocabulary().label({LABEL: texts}) == said("name", preferred)


def test_among_texts_of_one_language_the_alphabetically_first_wins() -> None:
    assert Vocabulary().label({LABEL: [said("b", "en"), said("a", "en"), said("c", "en")]}) == said("a", "en")


def test_the_first_relation_with_a_text_wins_over_a_better_language() -> None:
    texts = {PREF_LABEL: [said("Kobe", "en")], LABEL: [said("神戸", "ja")]}
    assert Vocabulary().label(texts) == said("神戸", "ja")
    assert Vocabulary().label({LABEL: [], PREF_LABEL: [said("Kobe", "en")]}) == said("Kobe", "en")


def test_an_entity_without_texts_has_no_label_and_no_description() -> None:
    other = {Iri("http://example.org/motto"): [said("x", "en")]}
    assert (Vocabulary().label({}), Vocabulary().label(other), Vocabulary().description(other)) == (None, None, None)


def test_descriptions_follow_the_same_preference() -> None:
    texts = {Vocabulary().descriptions[1]: [said("Stadt", "de"), said("city", "en")]}
    assert Vocabulary().description(texts) == said("city", "en")


@pytest.mark.parametrize("configured", ["pt-BR", "PT-br", "pt-br"])
@pytest.mark.parametrize("tag", ["pt-BR", "pt-br", "PT-BR"])
def test_language_tags_compare_without_case(configured: str, tag: str) -> None:
    vocabulary = Vocabulary(languages=(configured, "en"))
    assert vocabulary.label({LABEL: [said("Tokyo", "en"), said("Tóquio", tag)]}) == said("Tóquio", tag)


def test_a_region_counts_as_its_language_after_the_language_itself() -> None:
    vocabulary = Vocabulary(languages=("de", "en"))
    ranks = [vocabulary.rank(language) for language in ("de", "de-AT", "en", "en-US", None, "fr")]
    assert ranks == [0, 1, 2, 3, 4, 5]


def test_without_preferred_languages_an_untagged_text_wins() -> None:
    assert Vocabulary(languages=()).label({LABEL: [said("a", "en"), said("b", None)]}) == said("b", None)


def test_type_and_subclass_relations_are_not_walked() -> None:
    subclass = Iri("http://www.w3.org/2000/01/rdf-schema#subClassOf")
    assert Vocabulary().unwalked == {RDF_TYPE, subclass, *WIKIDATA_TYPES}


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


THINGS = "http://example.org/things/"
TURTLE = f"""
@prefix ex: <{THINGS}> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
@prefix dcterms: <http://purl.org/dc/terms/> .
@prefix s: <https://schema.org/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
XL = """
ex:cat xl:prefLabel ex:l1, ex:l2, ex:twofold ; xl:altLabel ex:l3 ; xl:hiddenLabel [ xl:literalForm "kat"@en ] .
ex:l1 xl:literalForm "Katze"@de . ex:l2 xl:literalForm "Cat"@en . ex:l3 xl:literalForm "Felis catus"@la .
ex:twofold xl:literalForm "one"@en, "another"@en .
"""
CALLED = 'ex:a ex:called "Alpha" ; ex:code 1 ; ex:kind "k" . ex:b ex:called "Beta" ; ex:code 2 ; ex:kind "k" .'


async def names(folder: Path, content: str, options: ImportOptions | None = None, *wanted: str) -> list[str | None]:
    source = folder / "g.ttl"
    source.write_text(TURTLE + content, encoding="utf-8")
    build_store([source], folder / "store", options or ImportOptions())
    graph = LocalAdapter(open_store(folder / "store"))
    terms: list[Node] = [Iri(THINGS + each) for each in wanted]
    labels = await graph.labels(terms)
    await graph.aclose()
    return [labels.get(term) for term in terms]


@pytest.mark.parametrize("relation", ["s:name", "dcterms:title", "skos:prefLabel"])
async def test_usual_relations_name_whatever_the_datatype(tmp_path: Path, relation: str) -> None:
    assert await names(tmp_path, f'ex:a {relation} "A"^^xsd:token .', None, "a") == ["A"]


CIDOC = """
@prefix crm: <http://www.cidoc-crm.org/cidoc-crm/> .
ex:mill crm:P1_is_identified_by [ a crm:E41_Appellation ; crm:P190_has_symbolic_content "Ember Mill" ] ,
    [ a crm:E42_Identifier ; crm:P190_has_symbolic_content "Acc. 12/7" ] .
ex:view crm:P102_has_title ex:t1 . ex:t1 crm:P190_has_symbolic_content "View of the mill" .
ex:twofold crm:P1_is_identified_by ex:t2 . ex:t2 crm:P190_has_symbolic_content "one", "another" .
"""


async def test_appellations_of_cidoc_crm_name_and_their_identifiers_are_found(tmp_path: Path) -> None:
    assert await names(tmp_path, CIDOC, None, "mill", "view", "twofold") == ["Ember Mill", "View of the mill", None]
    graph = LocalAdapter(open_store(tmp_path / "store"))
    (hit,) = await graph.search("Acc. 12/7", limit=1)
    assert (hit.entity, hit.matched_by) == (Iri(f"{THINGS}mill"), "alias")
    await graph.aclose()


async def test_labels_of_skos_xl_name_in_the_index_and_in_sparql(tmp_path: Path) -> None:
    assert await names(tmp_path, XL, None, "cat") == ["Cat"]
    graph = LocalAdapter(open_store(tmp_path / "store"))
    found = {
        hit.matched_text: hit.matched_by for text in ("Felis catus", "kat") for hit in await graph.search(text, limit=1)
    }
    assert found == {"Felis catus": "alias", "kat": "alias"}
    rows = (await graph.select("SELECT ?l { ?c skos:prefLabel ?l } ORDER BY ?l", timeout_s=60, max_rows=9)).rows
    assert [str(label) for (label,) in rows] == ["Cat", "Katze"]
    await graph.aclose()


async def test_chosen_relations_come_before_the_usual_ones(tmp_path: Path) -> None:
    content = CALLED + ' ex:a s:name "usual" . ex:c s:name "C" .'
    options = ImportOptions(chosen=ChosenRelations(labels=("ex:called",)))
    assert await names(tmp_path, content, options, "a", "b", "c") == ["Alpha", "Beta", "C"]
    kept = open_store(tmp_path / "store").info.vocabulary
    assert kept.labels == (Iri(f"{THINGS}called"), *Vocabulary().labels)


async def test_prefixes_of_the_caller_serve_relations_and_ids(tmp_path: Path) -> None:
    options = ImportOptions(chosen=ChosenRelations(labels=("x:called",)), prefixes={"x": THINGS})
    assert await names(tmp_path, CALLED, options, "b") == ["Beta"]
    assert open_store(tmp_path / "store").info.prefixes.namespaces["x"] == THINGS


async def test_a_relation_with_an_unknown_prefix_is_refused(tmp_path: Path) -> None:
    options = ImportOptions(chosen=ChosenRelations(types=("nope:kind",)))
    with pytest.raises(InvalidSource, match=r"'nope:kind' is not a relation\. Write its IRI, or a name with a prefix"):
        await names(tmp_path, CALLED, options)


@pytest.mark.parametrize("text", ["ex", "1x=http://e/", "http=http://e/", "ex=no iri"])
def test_what_declares_no_prefix_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        chosen_prefixes([text])


def test_an_import_proposes_what_looks_like_names(tmp_path: Path) -> None:
    source = tmp_path / "g.ttl"
    source.write_text(TURTLE + CALLED + XL, encoding="utf-8")
    naming = build_store([source], tmp_path / "store", ImportOptions(sparql=False)).naming
    assert naming == NamingReport(7, 5, ())
    source.write_text(TURTLE + CALLED, encoding="utf-8")
    naming = build_store([source], tmp_path / "store", ImportOptions(sparql=False)).naming
    assert naming == NamingReport(2, 0, (LikelyName(f"{THINGS}called", 2, "Alpha"),))
