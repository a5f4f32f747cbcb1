"""Nothing secret leaves a server, whatever an adapter lets through."""

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mcp import Client, MCPError
from mcp.server import MCPServer
from mcp.types import INTERNAL_ERROR
from pydantic import SecretStr

from calls import reply_of
from kg_adapters.errors import BackendError
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import Candidate
from kg_adapters.terms import Node
from kg_boundary.secrets import Redactor
from kg_server.app import build_server
from kg_server.settings import Settings
from kg_server.withholding import WithholdingSecrets

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
