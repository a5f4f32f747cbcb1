"""What is refused names files, and never tells where on the machine they lie."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from mcp import Client, MCPError

from calls import reply_of
from cli_runs import write_graph
from kg_adapters.errors import InvalidSource
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.pending import PendingAdapter
from kg_adapters.models import Candidate, GraphSchema
from kg_adapters.terms import Node
from kg_server.app import build_server
from kg_server.commands.serve import server_of
from kg_server.file_names import FileNames, NamingFiles
from kg_server.settings import Settings

LIBRARY = Path(pytest.__file__)


class Revealing(LocalAdapter):
    """A graph whose errors tell where its files are."""

    def __init__(self, graph: LocalAdapter) -> None:
        super().__init__(graph.store)

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        raise InvalidSource(f"The store {self.store.folder} is damaged, see {LIBRARY}. Build it: --to {LIBRARY.parent}")

    async def schema(self) -> GraphSchema:
        raise InvalidSource(f"The store {self.store.folder} is damaged.")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The memory file /data of ada/memories.sqlite3 is damaged.", "The memory file memories.sqlite3 is damaged."),
        ("Set another than /data of ada.", "Set another than data of ada."),
        ("The file /tmp/a/b.ttl, line 3: no.", "The file b.ttl, line 3: no."),
        ("'/tmp/a/b.ttl' and file:///tmp/a/c.ttl", "'b.ttl' and c.ttl"),
        ("(/usr/lib/python3/x.py)", "(x.py)"),
        (r"C:\Users\ada\store is gone", "store is gone"),
        ("See <http://example.org/tmp/a/b> and kg://entity/tmp/a.", None),
        ("ex:usr/lib/a, ../tmp/a/b and either/or", None),
    ],
)
def test_a_path_becomes_the_name_at_its_end_and_an_iri_stays(text: str, shown: str | None) -> None:
    assert FileNames((Path("/data of ada"),)).shown(text) == (text if shown is None else shown)


def test_a_known_folder_behind_a_link_is_known_by_both_of_its_paths(tmp_path: Path) -> None:
    (tmp_path / "data of ada").mkdir()
    (tmp_path / "a link").symlink_to("data of ada")
    names = FileNames((tmp_path / "a link",))
    for folder in ("data of ada", "a link"):
        assert names.shown(f"The memory file {tmp_path / folder}/m.sqlite3 is damaged.") == (
            "The memory file m.sqlite3 is damaged."
        )


def test_a_known_folder_within_a_known_folder_is_no_part_of_a_name() -> None:
    names = FileNames((Path("/data of ada"), Path("/data of ada/cache of bo")))
    assert names.shown("/data of ada/cache of bo/x.npy and /data of ada/y.json") == "x.npy and y.json"


def test_of_a_refusal_only_texts_are_changed() -> None:
    image = {"type": "image", "data": "/usr/a/b", "mimeType": "image/png"}
    refusal = {"isError": True, "content": [{"type": "text", "text": "No /tmp/a/b.ttl."}, image]}
    shown = NamingFiles(FileNames(())).answer(refusal)
    assert shown == {"isError": True, "content": [{"type": "text", "text": "No b.ttl."}, image]}


async def test_tools_and_resources_name_files_and_the_log_has_their_paths(
    tokyo: LocalAdapter, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(data_folder=tmp_path, cache_folder=tmp_path, embedder="lexical")
    async with Client(build_server(Revealing(tokyo), settings)) as client:
        refused = reply_of(await client.call_tool("Retrieve", {"text": "Tokyo"}))
        with pytest.raises(MCPError) as raised:
            await client.read_resource("kg://schema")
    store = tokyo.store.folder
    assert (
        refused.text == f"The store {store.name} is damaged, see {LIBRARY.name}. Build it: --to {LIBRARY.parent.name}"
    )
    assert raised.value.error.message.endswith(f"The store {store.name} is damaged.")
    assert str(store) in caplog.text


async def test_a_memory_file_that_cannot_be_used_is_named_without_its_folder(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    folder = tmp_path / "data of ada"
    folder.mkdir()
    (folder / "memories.sqlite3").write_bytes(b"this is no database" * 100)
    settings = Settings(data_folder=folder, cache_folder=tmp_path, embedder="lexical")
    async with Client(build_server(tokyo, settings)) as client:
        reply = reply_of(await client.call_tool("memory-append", {"triples": [["Q1490", "P17", "Q17"]]}))
    assert reply.is_error
    assert "The memory file memories.sqlite3 is damaged" in reply.text
    assert str(tmp_path) not in reply.text


async def test_a_graph_that_could_not_be_imported_is_named_without_its_folder(tmp_path: Path) -> None:
    source = write_graph(tmp_path)
    graph = PendingAdapter(source)
    graph.fail(InvalidSource(f"{source}, line 1, column 1: no Turtle."))
    async with Client(server_of(graph, Settings(data_folder=tmp_path, cache_folder=tmp_path))) as client:
        reply = reply_of(await client.call_tool("Schema", {}))
    assert reply.text == "japan.ttl, line 1, column 1: no Turtle."
