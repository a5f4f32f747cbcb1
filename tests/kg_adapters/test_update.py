"""How files are added to a store, and how one store replaces another."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kg_adapters.errors import InvalidSource
from kg_adapters.importing.build import build_store
from kg_adapters.labels import ChosenRelations
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.sparql.store import statements
from kg_adapters.local.store import INDEX_FOLDER, OXIGRAPH_FOLDER, LocalStore, open_store
from kg_adapters.local.swap import exclusively, is_moved_aside, recover, replacing
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Iri, Triple

HEAD = """
@prefix ex: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skosxl: <http://www.w3.org/2008/05/skos-xl#> .
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
"""
OLD = """
ex:ann a ex:Person ; rdfs:label "Ann"@en, "Anna"@de ; ex:born "1950-01-02"^^<http://www.w3.org/2001/XMLSchema#date> .
ex:list ex:holds (ex:z ex:m ex:b) ; ex:place (1.5 2.5) .
wd:Q1 wdt:P31 wd:Q2 .
ex:term skosxl:prefLabel ex:label .
"""
NEW = """
ex:bob a ex:Person ; rdfs:label "Bob" ; ex:knows ex:ann ; ex:height 1.8 .
ex:ann rdfs:label "Ann"@en ; ex:born "1950-01-03"^^<http://www.w3.org/2001/XMLSchema#date> .
ex:list ex:holds ex:a ; ex:other (ex:b ex:a) .
wd:P31 rdfs:label "instance of"@en .
ex:label skosxl:literalForm "Term"@en .
<http://elsewhere.example/one> <http://elsewhere.example/two> <http://elsewhere.example/three> .
"""


def written(folder: Path, name: str, content: str) -> Path:
    source = folder / name
    source.write_text(HEAD + content, encoding="utf-8")
    return source


def updated(folder: Path, old: str, *new: str, options: ImportOptions | None = None) -> LocalStore:
    """Import a file, and add others to it one by one."""
    options = options or ImportOptions()
    build_store([written(folder, "old.ttl", old)], folder / "updated", options)
    for number, content in enumerate(new):
        build_store([written(folder, f"new{number}.ttl", content)], folder / "updated", options, update=True)
    return open_store(folder / "updated")


def test_a_store_is_the_same_whether_its_files_came_at_once_or_later(tmp_path: Path) -> None:
    later = updated(tmp_path, OLD, NEW)
    files = [tmp_path / "old.ttl", tmp_path / "new0.ttl"]
    at_once = open_store(build_store(files, tmp_path / "once", ImportOptions()).folder)
    for array in sorted((at_once.folder / INDEX_FOLDER).iterdir()):
        assert np.array_equal(np.load(array), np.load(later.folder / INDEX_FOLDER / array.name)), array.name
    for name in ("text/nodes.names.text.npy", "profile.json", "schema.json"):
        assert (later.folder / name).read_bytes() == (at_once.folder / name).read_bytes()
    assert later.info.counts == at_once.info.counts
    assert later.info.prefixes == at_once.info.prefixes
    assert later.info.sources == at_once.info.sources
    assert later.info.name == "old"


async def test_what_a_list_says_first_stays_first(tmp_path: Path) -> None:
    graph = LocalAdapter(updated(tmp_path, OLD, NEW, "ex:list ex:holds (ex:q ex:z) ."))
    node = Iri("http://example.org/list")
    request = NeighborRequest((node,), relations=frozenset({Iri("http://example.org/holds")}), direction="out", limit=9)
    facts = (await graph.neighbors(request))[node].facts
    assert [fact.tail.local_part for fact in facts if isinstance(fact, Triple)] == ["z", "m", "b", "a", "q"]


def test_nodes_without_a_name_stay_those_of_their_file(tmp_path: Path) -> None:
    content = "_:x ex:p _:y . [] ex:q ex:end ."
    store = updated(tmp_path, content, content, content)
    assert store.info.counts.triples == 6
    firsts = {line.partition(" ")[0] for line in statements(store.index)}
    assert len(firsts) == 6


async def test_sparql_sees_the_old_and_the_new(tmp_path: Path) -> None:
    graph = LocalAdapter(updated(tmp_path, OLD, NEW))
    try:
        answer = await graph.select(
            "SELECT ?who { ?who a <http://example.org/Person> } ORDER BY ?who", timeout_s=900, max_rows=9
        )
    finally:
        await graph.aclose()
    assert [str(row[0]) for row in answer.rows] == ["http://example.org/ann", "http://example.org/bob"]


@pytest.mark.parametrize("sparql", [False, True])
async def test_where_there_was_no_part_for_sparql_it_is_made_when_asked_for(tmp_path: Path, sparql: bool) -> None:
    build_store([written(tmp_path, "old.ttl", OLD)], tmp_path / "store", ImportOptions(sparql=False))
    options = ImportOptions(sparql=sparql)
    build_store([written(tmp_path, "new.ttl", NEW)], tmp_path / "store", options, update=True)
    assert not (tmp_path / "store" / OXIGRAPH_FOLDER).exists()
    graph = LocalAdapter(open_store(tmp_path / "store"))
    try:
        answer = await graph.select("ASK { ?new ?knows <http://example.org/ann> }", timeout_s=900, max_rows=9)
    finally:
        await graph.aclose()
    assert answer.truth is True


def test_a_store_keeps_its_name_and_what_names_its_entities(tmp_path: Path) -> None:
    called = ImportOptions(name="people", chosen=ChosenRelations(labels=("http://example.org/called",)))
    build_store([written(tmp_path, "old.ttl", 'ex:a ex:called "Old" .')], tmp_path / "store", called)
    new = written(tmp_path, "new.ttl", 'ex:b ex:called "New" ; ex:said "hello" . ex:c ex:said "no" .')
    also = ImportOptions(chosen=ChosenRelations(labels=("ex:said",)))
    build_store([new], tmp_path / "store", also, update=True)
    store = open_store(tmp_path / "store")
    labels = [None if row < 0 else store.index.features.values[int(row)] for row in store.index.labels]
    keys = [store.index.nodes[number] for number in range(len(store.index.nodes))]
    assert dict(zip(keys, labels, strict=True)) == {
        "http://example.org/a": "Old",
        "http://example.org/b": "hello",
        "http://example.org/c": "no",
    }
    assert store.info.name == "people"


def change(store: Path) -> None:
    array = store / INDEX_FOLDER / "nodes.text.npy"
    array.write_bytes(array.read_bytes()[:-1] + b"?")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [(shutil.rmtree, "There is no store .*store to be updated"), (change, "is damaged: the content of .* has changed")],
)
def test_what_is_no_whole_store_is_not_updated(tmp_path: Path, damage: Callable[[Path], None], reason: str) -> None:
    build_store([written(tmp_path, "old.ttl", OLD)], tmp_path / "store", ImportOptions(sparql=False))
    damage(tmp_path / "store")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(InvalidSource, match=reason):
        build_store([tmp_path / "old.ttl"], tmp_path / "store", ImportOptions(), update=True)
    assert [name for name in sorted(path.name for path in tmp_path.rglob("*")) if name not in before] == []


def test_a_file_that_cannot_be_read_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    store = updated(tmp_path, OLD)
    broken = written(tmp_path, "broken.ttl", "ex:a ex:p .")
    with pytest.raises(InvalidSource, match=r"broken\.ttl"):
        build_store([broken], store.folder, ImportOptions(), update=True)
    assert open_store(store.folder).info == store.info


OTHERS = (
    "store.building-1",
    ".storeroom.building-1",
    ".store.building",
    ".store.older",
    ".store2.old-1",
    "store.old-1",
)


def folder_of(path: Path, content: str) -> Path:
    path.mkdir(parents=True)
    (path / "it").write_text(content, encoding="utf-8")
    return path


def contents(folder: Path) -> dict[str, str]:
    """Return what each folder in a folder holds."""
    return {path.parent.name: path.read_text(encoding="utf-8") for path in folder.glob("*/it")}


def replace(target: Path, content: str = "new") -> None:
    with replacing(target) as building:
        (building / "it").write_text(content, encoding="utf-8")


@pytest.mark.parametrize("there", [False, True])
def test_the_new_folder_alone_is_left_and_what_stands_beside_it_stays(tmp_path: Path, there: bool) -> None:
    for name in (*OTHERS, *(["store"] if there else [])):
        folder_of(tmp_path / name, name)
    replace(tmp_path / "store")
    assert contents(tmp_path) == {**{name: name for name in OTHERS}, "store": "new"}
    assert len(list(tmp_path.iterdir())) == len(OTHERS) + 1


def test_what_dead_holders_left_is_cleared_away(tmp_path: Path) -> None:
    for name in ("store", ".store.building-1", ".store.building-2", ".store.old-1"):
        folder_of(tmp_path / name, name)
    with replacing(tmp_path / "store") as building:
        assert {path.name for path in tmp_path.iterdir()} == {"store", building.name}
        assert building.name.startswith(".store.building-")
    assert {path.name for path in tmp_path.iterdir()} == {"store"}


def test_an_error_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    folder_of(tmp_path / "store", "old")

    def fail() -> None:
        with replacing(tmp_path / "store") as building:
            folder_of(building / "half", "half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert contents(tmp_path) == {"store": "old"}
    assert {path.name for path in tmp_path.iterdir()} == {"store"}


def test_a_link_within_what_is_cleared_away_leads_nowhere(tmp_path: Path) -> None:
    folder_of(tmp_path / "elsewhere", "kept")
    for name in ("store", ".store.building-1", ".store.old-1"):
        (folder_of(tmp_path / name, name) / "link").symlink_to(tmp_path / "elsewhere")
    replace(tmp_path / "store")
    assert contents(tmp_path) == {"elsewhere": "kept", "store": "new"}


def test_the_folder_moved_aside_comes_back_through_a_link_and_never_over_a_newer_one(tmp_path: Path) -> None:
    folder_of(tmp_path / ".store.old-1", "old")
    (tmp_path / "link").symlink_to("store")
    assert is_moved_aside(tmp_path / "link")
    assert is_moved_aside(tmp_path / "store")
    recover(tmp_path / "link")
    assert contents(tmp_path)["store"] == "old"
    assert not is_moved_aside(tmp_path / "store")
    folder_of(tmp_path / ".store.old-2", "older")
    recover(tmp_path / "store")
    assert contents(tmp_path)["store"] == "old"
    assert not (tmp_path / ".store.old-2").exists()


def test_where_nothing_was_moved_aside_nothing_is_made(tmp_path: Path) -> None:
    for target in (tmp_path / "store", tmp_path / "no" / "folder" / "store"):
        recover(target)
        assert not is_moved_aside(target)
    assert list(tmp_path.iterdir()) == []


def test_the_lock_is_beside_the_target_makes_its_folders_and_is_given_back(tmp_path: Path) -> None:
    waits: list[None] = []
    for _ in range(2):
        with exclusively(tmp_path / "new" / "folder" / "store", lambda: waits.append(None)):
            assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == [".store.lock"]
    assert waits == []
