"""Making the SPARQL part of a store from its index."""

from pathlib import Path

import anyio
import pyoxigraph
import pytest
from filelock import FileLock

from kg_adapters.errors import BackendError, BackendTimeout
from kg_adapters.index.builder import IndexBuilder
from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.labels import Vocabulary
from kg_adapters.local.sparql.store import ensure_sparql_store, statements
from kg_adapters.local.store import LocalStore
from kg_adapters.terms import RDF_LANG_STRING, XSD, XSD_STRING
from small_graphs import index_of

ODD = 'quote " backslash \\ newline \n return \r tab \t 東京 𝄞'


def odd_index() -> GraphIndex:
    builder = IndexBuilder(Vocabulary())
    builder.add_edge("http://x/a", "http://x/r", "http://x/b")
    builder.add_edge("http://x/a", "http://x/r", "_:n0")
    builder.add_edge("_:n0", "http://x/q", "http://x/a")
    builder.add_feature("http://x/a", "http://x/text", ODD, XSD_STRING.value, None)
    builder.add_feature("http://x/a", "http://x/text", "_:not a node", RDF_LANG_STRING.value, "en-gb")
    builder.add_feature("_:n0", "http://x/size", "7", XSD + "integer", None)
    return builder.finish()


def quads(folder: Path) -> set[tuple[str, str, str]]:
    store = pyoxigraph.Store.read_only(str(folder))
    return {(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in store}


def names(folder: Path) -> set[str]:
    """The files and folders of a store, but the lock, which some systems leave behind."""
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


async def test_everything_that_the_index_says_can_be_asked_for(tmp_path: Path) -> None:
    folder = await ensure_sparql_store(tmp_path, odd_index())
    assert folder == tmp_path / "oxigraph"
    assert quads(folder) == {
        ("<http://x/a>", "<http://x/r>", "<http://x/b>"),
        ("<http://x/a>", "<http://x/r>", "_:n0"),
        ("_:n0", "<http://x/q>", "<http://x/a>"),
        ("<http://x/a>", "<http://x/text>", str(pyoxigraph.Literal(ODD))),
        ("<http://x/a>", "<http://x/text>", '"_:not a node"@en-gb'),
        ("_:n0", "<http://x/size>", '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    }
    assert names(tmp_path) == {"oxigraph"}


async def test_a_store_that_is_there_is_left_alone(tmp_path: Path) -> None:
    await ensure_sparql_store(tmp_path, odd_index())
    (tmp_path / "oxigraph" / "mark").touch()
    assert await ensure_sparql_store(tmp_path, odd_index()) == tmp_path / "oxigraph"
    assert "mark" in names(tmp_path / "oxigraph")


@pytest.mark.parametrize("file", ["MANIFEST-*", "CURRENT", "*.sst", "kg-sextant.json"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
async def test_a_store_that_lost_something_is_made_anew(tmp_path: Path, file: str, damage: str) -> None:
    folder = await ensure_sparql_store(tmp_path, odd_index())
    path = next(folder.glob(file))
    content = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    await ensure_sparql_store(tmp_path, odd_index())
    assert len(quads(folder)) == 6
    assert names(tmp_path) == {"oxigraph"}


async def test_many_at_once_build_once(tmp_path: Path) -> None:
    index = odd_index()
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(ensure_sparql_store, tmp_path, index)
    assert len(quads(tmp_path / "oxigraph")) == 6


async def test_what_a_killed_build_left_behind_is_removed(tmp_path: Path) -> None:
    left_over = tmp_path / ".oxigraph-dead" / "oxigraph"
    left_over.mkdir(parents=True)
    (left_over / "half").write_text("half")
    await ensure_sparql_store(tmp_path, odd_index())
    assert not left_over.parent.exists()


async def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(BackendError, match=r"it cannot be made in .*file: .*Make the folder writable"):
        await ensure_sparql_store(tmp_path / "file", odd_index())


async def test_building_is_bounded_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(BackendTimeout, match=r"^Preparing the graph for SPARQL took more than 0 s\."):
        await ensure_sparql_store(tmp_path, odd_index(), timeout_s=0)
    assert names(tmp_path) == set()


async def test_waiting_for_another_process_is_bounded(tmp_path: Path) -> None:
    with (
        FileLock(tmp_path / "oxigraph.lock"),
        pytest.raises(BackendTimeout, match=r"^Another process is still preparing"),
    ):
        await ensure_sparql_store(tmp_path, odd_index(), timeout_s=0.01)


async def test_a_cancelled_caller_does_not_wait(tmp_path: Path) -> None:
    index = index_of([f"a{number} r b{number % 7}" for number in range(2_000)])
    with FileLock(tmp_path / "oxigraph.lock"), anyio.move_on_after(0.05) as scope:
        await ensure_sparql_store(tmp_path, index)
    assert scope.cancelled_caught


async def test_the_sample_has_as_many_statements_in_both_parts(tmp_path: Path, sample_files: LocalStore) -> None:
    index = sample_files.index
    folder = await ensure_sparql_store(tmp_path, index)
    assert len(pyoxigraph.Store.read_only(str(folder))) == sum(1 for _ in statements(index)) == 200_190


async def test_a_text_that_no_parser_takes_as_a_line_can_be_asked_for(tmp_path: Path) -> None:
    builder, text = IndexBuilder(Vocabulary()), "x" * (17 << 20)
    builder.add_feature("http://x/a", "http://x/text", text, XSD_STRING.value, None)
    folder = await ensure_sparql_store(tmp_path, builder.finish())
    assert quads(folder) == {("<http://x/a>", "<http://x/text>", f'"{text}"')}
