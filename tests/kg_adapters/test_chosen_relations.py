"""Names come from the relations that an import, or whoever calls it, finds fit."""

from pathlib import Path

import pytest

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.importing.build import build_store
from kg_adapters.importing.naming import LikelyName, NamingReport
from kg_adapters.labels import ChosenRelations, Vocabulary, chosen_prefixes
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.terms import Iri, Node

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
