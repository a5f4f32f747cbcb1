"""RDF lists: unfolded in the index, and as they were written in SPARQL."""

import gzip
from functools import partial
from pathlib import Path

import pyoxigraph as ox
import pytest

from kg_adapters.errors import InvalidSource
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.sparql.store import ensure_sparql_store
from kg_adapters.local.store import OXIGRAPH_FOLDER, open_store
from kg_adapters.local.written_lists import read_lists
from kg_adapters.models import PathRequest
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import Attribute, Iri, Triple

EX = "http://example.org/"

HEAD = f"@prefix ex: <{EX}> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> ."


def opened(folder: Path, content: str) -> LocalAdapter:
    source = folder / "g.ttl"
    source.write_text(f"{HEAD}\n{content}", encoding="utf-8")
    store = open_store(build_store([source], folder / "store", ImportOptions()).folder)
    return LocalAdapter(store)


async def around(graph: LocalAdapter, entity: str, page: int = 100) -> list[str]:
    """Return what an entity leads to, page by page, as `relation tail`."""
    node, cursor, found = Iri(EX + entity), None, list[str]()
    while True:
        request = NeighborRequest((node,), direction="out", limit=page, cursor=cursor, values=True)
        got = (await graph.neighbors(request))[node]
        for fact in got.facts:
            assert isinstance(fact, Triple | Attribute)
            found.append(
                f"{fact.relation.local_part} {fact.tail if isinstance(fact, Attribute) else fact.tail.local_part}"
            )
        cursor = got.cursor
        if cursor is None:
            return found


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("ex:a ex:p (ex:z ex:m ex:b) .", ["p z", "p m", "p b"]),
        ("ex:a ex:p (ex:z ex:m ex:z), ex:c .", ["p z", "p m", "p c"]),
        ("ex:a ex:p (ex:z (ex:y (ex:x)) ex:w) .", ["p z", "p y", "p x", "p w"]),
        ("ex:a ex:p [ a rdf:Seq ; rdf:_10 ex:b ; rdf:_2 ex:m ; rdf:_1 ex:z ] .", ["p z", "p m", "p b"]),
        ('ex:a ex:p ("b" "a" 1) .', ["p 1", "p a", "p b"]),
        ("ex:a ex:p (1.5 2.5) ; ex:q (1) .", ["p 1.5 2.5", "q 1"]),
        ("ex:a ex:p ((1 2) (3 4)) .", ["p (1 2) (3 4)"]),
        ("ex:a ex:p () .", ["p nil"]),
        ("ex:b ex:q ex:c . ex:a ex:p [ a rdf:List ; rdf:first ex:z ; rdf:rest () ] .", ["p z"]),
    ],
)
async def test_members_take_the_place_of_a_list(tmp_path: Path, content: str, expected: list[str]) -> None:
    graph = opened(tmp_path, content)
    assert await around(graph, "a") == expected
    assert not [key for key in range(len(graph.store.index.nodes)) if graph.store.index.nodes[key].startswith("_:")]
    await graph.aclose()


@pytest.mark.parametrize(
    "content",
    [
        "ex:a ex:p _:x . _:x rdf:first ex:z ; rdf:rest _:x .",
        "ex:a ex:p _:x . _:x rdf:first _:x ; rdf:rest () .",
        "ex:a ex:p _:x . _:x rdf:first ex:z, ex:y ; rdf:rest () .",
        "ex:a ex:p _:x . _:x rdf:first ex:z .",
        "ex:a ex:p _:x . _:x rdf:first ex:z ; rdf:rest ex:tail . ex:tail rdf:first ex:y ; rdf:rest () .",
        'ex:a ex:p _:x . _:x rdf:first ex:z ; rdf:rest () ; ex:note "mine" .',
        "ex:a ex:p _:x . _:x rdf:_1 ex:z, ex:y .",
        'ex:a ex:p _:x . _:x rdf:first ex:z ; rdf:rest "end" .',
    ],
)
async def test_what_is_no_whole_list_stays_as_it_is(tmp_path: Path, content: str) -> None:
    graph = opened(tmp_path, content)
    assert await around(graph, "a") == ["p _:x"]
    await graph.aclose()


async def test_a_list_that_something_else_is_part_of_stays_for_it(tmp_path: Path) -> None:
    graph = opened(
        tmp_path,
        "ex:a ex:p _:x . _:x rdf:first ex:z ; rdf:rest _:y . _:y rdf:first ex:w ; rdf:rest () . ex:odd rdf:rest _:y .",
    )
    assert (await around(graph, "a"), await around(graph, "odd")) == (["p z", "p w"], ["rest _:y"])
    await graph.aclose()


async def test_lists_that_share_what_would_multiply_the_graph_stay(tmp_path: Path) -> None:
    levels = "".join(
        f"_:l{n} rdf:first _:l{n + 1} ; rdf:rest _:r{n} . _:r{n} rdf:first _:l{n + 1} ; rdf:rest () .\n"
        for n in range(40)
    )
    graph = opened(tmp_path, f"ex:a ex:p _:l0 . {levels} _:l40 rdf:first ex:z ; rdf:rest () .")
    assert await around(graph, "a") == ["p _:l0"]
    assert len(graph.store.index.out.neighbors) == 163
    await graph.aclose()


async def test_every_tool_sees_members_in_one_hop_and_sparql_what_was_written(tmp_path: Path) -> None:
    graph = opened(tmp_path, "ex:a ex:p (ex:z ex:m ex:b) . ex:c ex:p (ex:m) .")
    start, end = Iri(f"{EX}a"), Iri(f"{EX}c")
    found = await graph.paths(PathRequest(start, end, max_hops=2))
    assert [len(path.triples) for path in found.paths] == [2]
    assert await graph.contains([Triple(start, Iri(f"{EX}p"), Iri(f"{EX}b"))])
    answer = await graph.select("SELECT ?m { ex:a ex:p/rdf:rest*/rdf:first ?m }", timeout_s=60, max_rows=9)
    assert {str(member) for (member,) in answer.rows} == {f"{EX}{name}" for name in "zmb"}
    await graph.aclose()


@pytest.mark.parametrize("page", [1, 2, 3])
async def test_pages_go_on_in_the_order_of_the_list(tmp_path: Path, page: int) -> None:
    graph = opened(tmp_path, "ex:a ex:p (ex:z ex:m ex:b) ; ex:q ex:y, ex:d .")
    found = await around(graph, "a", page)
    assert [each for each in found if each[0] == "p"] == ["p z", "p m", "p b"]
    await graph.aclose()


WRITTEN_HEAD = """
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
    quads = ox.parse(WRITTEN_HEAD + content, format=ox.RdfFormat.TURTLE)
    ox.serialize(quads, source, format=ox.RdfFormat.N_TRIPLES)
    return source


def held(folder: Path) -> set[str]:
    """Return what the part holds that answers SPARQL."""
    return set(map(str, ox.Store.read_only(str(folder / OXIGRAPH_FOLDER))))


async def said(folder: Path) -> set[str]:
    """Ask for everything, which makes the part that answers SPARQL where there is none, and return what that holds."""
    graph = LocalAdapter(open_store(folder))
    try:
        await graph.select(ASKED, timeout_s=900, max_rows=1)
    finally:
        await graph.aclose()
    return held(folder)


@pytest.mark.parametrize("content", LISTS)
async def test_a_part_that_is_made_later_is_that_of_the_import(tmp_path: Path, content: str) -> None:
    source = written(tmp_path, "g.nt", content)
    at_once = build_store([source], tmp_path / "once", ImportOptions()).folder
    later = build_store([source], tmp_path / "later", ImportOptions(sparql=False)).folder
    assert await said(later) == held(at_once)


@pytest.mark.parametrize("old", LISTS)
@pytest.mark.parametrize("new", ["ex:a ex:p ex:z, ex:y .", "ex:a ex:p (ex:z ex:new) ; ex:q (1.5 2.5) ."])
async def test_so_it_is_when_files_are_added(tmp_path: Path, old: str, new: str) -> None:
    first, second = written(tmp_path, "old.nt", old), written(tmp_path, "new.nt", new)
    for folder, sparql in (("once", True), ("later", False)):
        build_store([first], tmp_path / folder, ImportOptions(sparql=sparql))
        build_store([second], tmp_path / folder, ImportOptions(sparql=sparql), update=True)
    later = open_store(tmp_path / "later")
    await ensure_sparql_store(later.folder, later.index, lists=partial(read_lists, later))
    assert held(later.folder) == held(tmp_path / "once")


async def test_lists_that_are_damaged_are_not_left_out_in_silence(tmp_path: Path) -> None:
    source = written(tmp_path, "g.nt", LISTS[0])
    store = build_store([source], tmp_path / "store", ImportOptions(sparql=False)).folder
    (store / "lists.json.gz").write_bytes(gzip.compress(b"[[], []]"))
    with pytest.raises(InvalidSource, match=r"is damaged: .*lists\.json\.gz"):
        await said(store)
