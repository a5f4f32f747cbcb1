"""Answers and errors hold no secrets, and errors name files without their folders."""

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp.server import MCPServer
from mcp.types import INTERNAL_ERROR, CallToolResult, ReadResourceResult, TextContent, TextResourceContents
from pydantic import SecretStr

from calls import late_graph, reply_of, unhurried
from cli_runs import write_graph
from embedders import LEXICAL
from kg_adapters.errors import BackendError, InvalidSource
from kg_adapters.http.options import EndpointSettings
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import Candidate, GraphSchema
from kg_adapters.open_options import OnProgress
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node
from kg_boundary.secrets import Redactor
from kg_boundary.shown import FileNames
from kg_server.app import Withholding, build_server
from kg_server.settings import LlmSettings
from kg_server.view import VIEW_URI, view_html

SECRET = "correct-horse-battery"

BASIC = base64.b64encode(f"ada:{SECRET}".encode()).decode()


class Telling(LocalAdapter):
    """A graph whose adapter repeats what it was told, in its answers and its errors."""

    def __init__(self, graph: LocalAdapter) -> None:
        super().__init__(graph.store)

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        if text == "Osaka":
            raise BackendError(f"The store at http://example.org/?a=b said: Basic {BASIC}, pin hunter")
        found = await super().search(text, limit=limit, type=type)
        return [replace(each, matched_text=f"Tokyo {SECRET}") for each in found]


async def test_answers_and_refusals_hold_no_secret_and_their_addresses_stay(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    settings = unhurried(
        data_folder=tmp_path,
        cache_folder=tmp_path,
        embedding=LEXICAL,
        endpoint=EndpointSettings(user="ada", password=SecretStr(SECRET)),
        llm=LlmSettings(api_key=SecretStr("hunter")),
    )
    async with Client(build_server(Telling(tokyo), settings)) as client:
        told = reply_of(await client.call_tool("Retrieve", {"text": "Tokyo"}))
        refused = reply_of(await client.call_tool("Retrieve", {"text": "Osaka"}))
    assert (told.is_error, SECRET in told.text + json.dumps(told.data), "…" in told.text) == (False, False, True)
    assert (refused.is_error, refused.text) == (
        True,
        "The store at http://example.org/?a=b said: Basic …, pin …",
    )


async def test_the_view_stays_as_it_is_built_although_a_word_of_it_is_a_secret(tokyo: LocalAdapter) -> None:
    settings = unhurried(llm=LlmSettings(api_key=SecretStr("viewport")))
    async with Client(build_server(tokyo, settings)) as client:
        [read] = (await client.read_resource(VIEW_URI)).contents
        answer = reply_of(await client.call_tool("Retrieve", {"text": "viewport"}))
    assert isinstance(read, TextResourceContents)
    assert read.text == view_html()
    assert "viewport" not in answer.text


async def test_an_error_of_the_protocol_holds_no_secret() -> None:
    server = MCPServer[None]("telling")
    server.middleware.append(Withholding(Redactor(frozenset({SECRET})), FileNames(())))

    @server.prompt()
    def tell() -> str:  # pyright: ignore[reportUnusedFunction] - the server calls it
        raise MCPError(code=INTERNAL_ERROR, message=f"Got {SECRET}")

    @server.resource("told://it")
    def told() -> str:  # pyright: ignore[reportUnusedFunction] - as above
        return f"Got {SECRET}"

    async with Client(server) as client:
        try:
            await client.get_prompt("tell")
        except MCPError as error:
            said = error.error.message
        else:
            raise AssertionError("it fails")
        read = await client.read_resource("told://it")
    assert SECRET not in said
    assert [getattr(each, "text", "") for each in read.contents] == ["Got …"]


def test_an_answer_is_looked_at_as_it_is_sent_whether_it_is_written_yet_or_not() -> None:
    look = Withholding(Redactor(frozenset({SECRET, "hunter"})), FileNames(()))
    refusal = CallToolResult(content=[TextContent(type="text", text=f"pin hunter, {SECRET}")], is_error=True)
    answer = ReadResourceResult(contents=[TextResourceContents(uri="told://it", text=f"a hunter, {SECRET}")])
    refused, read = look.answer(refusal), look.answer(answer)
    assert refused == look.answer(refusal.model_dump(by_alias=True, mode="json", exclude_none=True))
    assert isinstance(refused, dict)
    assert isinstance(read, dict)
    assert (refused["isError"], refused["content"]) == (True, [{"type": "text", "text": "pin …, …"}])
    assert read["contents"] == [{"uri": "told://it", "text": "a hunter, …"}]
    assert "content" not in read


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
    shown = Withholding(Redactor(), FileNames(())).answer(refusal)
    assert shown == {"isError": True, "content": [{"type": "text", "text": "No b.ttl."}, image]}


async def test_tools_and_resources_name_files_and_the_log_has_their_paths(
    tokyo: LocalAdapter, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = unhurried(data_folder=tmp_path, cache_folder=tmp_path, embedding=LEXICAL)
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
    settings = unhurried(data_folder=folder, cache_folder=tmp_path, embedding=LEXICAL)
    async with Client(build_server(tokyo, settings)) as client:
        reply = reply_of(await client.call_tool("memory-append", {"triples": [["Q1490", "P17", "Q17"]]}))
    assert reply.is_error
    assert "The memory file memories.sqlite3 is damaged" in reply.text
    assert str(tmp_path) not in reply.text


async def test_a_graph_that_could_not_be_imported_is_named_without_its_folder(tmp_path: Path) -> None:
    source = write_graph(tmp_path)
    settings = unhurried(data_folder=tmp_path, cache_folder=tmp_path)

    async def opener(_: OnProgress) -> KGAdapter:
        raise InvalidSource(f"{source}, line 1, column 1: no Turtle.")

    async with Client(build_server(late_graph(settings, opener), settings)) as client:
        reply = reply_of(await client.call_tool("Schema", {}))
    assert reply.text == "japan.ttl, line 1, column 1: no Turtle."
