"""What answers SPARQL says what was written, whether it was made by the import or later."""

import gzip
from pathlib import Path

import pyoxigraph as ox
import pytest

from kg_adapters.errors import InvalidSource
from kg_adapters.index.build.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import OXIGRAPH_FOLDER, open_store

HEAD = """
@prefix ex: <http://example.org/> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
"""
LISTS = [
    "ex:a ex:p (ex:z ex:m ex:b) .",
    "ex:a ex:p (ex:z) .",
    "ex:a ex:p (ex:z), ex:z ; ex:q (1.5 2.5), '1.5 2.5' .",
    "ex:a ex:p (ex:z (ex:y 'x'@en) 7) ; ex:p () .",
    "ex:a ex:p [ a rdf:Seq ; rdf:_1 ex:b ; rdf:_2 ex:m ] . ex:b ex:p [ rdf:first ex:c ] .",
    "ex:a ex:p _:l . ex:b ex:q _:l . _:l rdf:first ex:c ; rdf:rest rdf:nil .",
    "ex:a ex:p ex:b .",
]
ASKED = "SELECT * { ?s ?p ?o }"


def written(folder: Path, name: str, content: str) -> Path:
    source = folder / name
    source.write_text(HEAD + content, encoding="utf-8")
    return source


async def said(folder: Path) -> set[str]:
    """Ask for everything, which makes the part that answers SPARQL where there is none, and return what that holds."""
    graph = LocalAdapter(open_store(folder))
    try:
        await graph.select(ASKED, timeout_s=900, max_rows=1)
    finally:
        await graph.aclose()
    return set(map(str, ox.Store.read_only(str(folder / OXIGRAPH_FOLDER))))


@pytest.mark.parametrize("content", LISTS)
async def test_a_part_that_is_made_later_is_that_of_the_import(tmp_path: Path, content: str) -> None:
    source = written(tmp_path, "g.ttl", content)
    at_once = build_store([source], tmp_path / "once", ImportOptions()).folder
    later = build_store([source], tmp_path / "later", ImportOptions(sparql=False)).folder
    assert await said(later) == await said(at_once)


@pytest.mark.parametrize("old", LISTS)
@pytest.mark.parametrize("new", ["ex:a ex:p ex:z, ex:y .", "ex:a ex:p (ex:z ex:new) ; ex:q (1.5 2.5) ."])
async def test_so_it_is_when_files_are_added(tmp_path: Path, old: str, new: str) -> None:
    first, second = written(tmp_path, "old.ttl", old), written(tmp_path, "new.ttl", new)
    for folder, sparql in (("once", True), ("later", False)):
        build_store([first], tmp_path / folder, ImportOptions(sparql=sparql))
        build_store([second], tmp_path / folder, ImportOptions(sparql=sparql), update=True)
    assert await said(tmp_path / "later") == await said(tmp_path / "once")


async def test_lists_that_are_damaged_are_not_left_out_in_silence(tmp_path: Path) -> None:
    source = written(tmp_path, "g.ttl", LISTS[0])
    store = build_store([source], tmp_path / "store", ImportOptions(sparql=False)).folder
    (store / "lists.json.gz").write_bytes(gzip.compress(b"[[], []]"))
    with pytest.raises(InvalidSource, match=r"is damaged: .*lists\.json\.gz"):
        await said(store)
