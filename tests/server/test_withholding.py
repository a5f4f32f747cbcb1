"""Nothing secret leaves a server, whatever an adapter lets through."""

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mcp import Client, MCPError
from mcp.server import MCPServer
from mcp.types import INTERNAL_ERROR, CallToolResult, ReadResourceResult, TextContent, TextResourceContents
from pydantic import SecretStr

from calls import reply_of
from kg_adapters.errors import BackendError
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import Candidate
from kg_adapters.terms import Node
from kg_boundary.secrets import LARGE, Redactor
from kg_server.app import build_server
from kg_server.file_names import WithholdingSecrets
from kg_server.settings import Settings

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
        return [replace(each, matched_text=SECRET) for each in found]


async def test_answers_and_refusals_hold_no_secret_and_their_addresses_stay(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    settings = Settings(
        data_folder=tmp_path,
        cache_folder=tmp_path,
        embedder="lexical",
        endpoint_user="ada",
        endpoint_password=SecretStr(SECRET),
        endpoint_token=SecretStr("hunter"),
    )
    async with Client(build_server(Telling(tokyo), settings)) as client:
        told = reply_of(await client.call_tool("Retrieve", {"text": "Tokyo"}))
        refused = reply_of(await client.call_tool("Retrieve", {"text": "Osaka"}))
    assert (told.is_error, SECRET in told.text + json.dumps(told.data), "…" in told.text) == (False, False, True)
    assert (refused.is_error, refused.text) == (
        True,
        "The store at http://example.org/?a=b said: Basic …, pin …",
    )


async def test_an_error_of_the_protocol_holds_no_secret() -> None:
    server = MCPServer[None]("telling")
    server.middleware.append(WithholdingSecrets(Redactor(frozenset({SECRET}))))

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


def test_a_secret_without_a_letter_of_english_is_found_in_a_large_answer() -> None:
    secret = "лошадь-батарея"
    look = WithholdingSecrets(Redactor(frozenset({secret})))
    assert look.answer({"text": f"{'x' * LARGE} {secret} {'x' * LARGE}"}) == {"text": f"{'x' * LARGE} … {'x' * LARGE}"}


def test_an_answer_is_looked_at_as_it_is_sent_whether_it_is_written_yet_or_not() -> None:
    look = WithholdingSecrets(Redactor(frozenset({SECRET, "hunter"})))
    refusal = CallToolResult(content=[TextContent(type="text", text=f"pin hunter, {SECRET}")], is_error=True)
    answer = ReadResourceResult(contents=[TextResourceContents(uri="told://it", text=f"a hunter, {SECRET}")])
    refused, read = look.answer(refusal), look.answer(answer)
    assert refused == look.answer(refusal.model_dump(by_alias=True, mode="json", exclude_none=True))
    assert isinstance(refused, dict)
    assert isinstance(read, dict)
    assert (refused["isError"], refused["content"]) == (True, [{"type": "text", "text": "pin …, …"}])
    assert read["contents"] == [{"uri": "told://it", "text": "a hunter, …"}]
    assert "content" not in read
