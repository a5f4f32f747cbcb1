"""The view as an MCP App: the rules APP-001 to APP-011 for servers of MCP Apps, of real servers over stdio and HTTP."""

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp.types import BlobResourceContents, ServerCapabilities, TextResourceContents, Tool
from pydantic import BaseModel, ConfigDict, Field

from calls import Reply, reply_of
from cli_runs import write_graph
from patience import PATIENCE_S
from server_processes import address_of, started

VIEW = "ui://kg-sextant/graph.html"
BUILT = Path(__file__).parents[3] / "server" / "kg_server" / "view.html"
SHOWS_APPS = advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})
CALLS: Mapping[str, Mapping[str, object]] = {
    "observe": {"question": "What is the capital?", "entities": ["Q17"]},
    "GetNeighbor": {"entity": "Q17"},
    "GetPath": {"source": "Q17", "target": "Q1490"},
    "Compose": {"expression": "Neighbor[Q17, capital]"},
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ToolUi(_Strict):
    """What the specification lets `_meta.ui` of a tool hold."""

    resource_uri: str | None = Field(default=None, alias="resourceUri")
    visibility: list[Literal["model", "app"]] | None = None


class ResourceUi(_Strict):
    """What the specification lets `_meta.ui` of a resource hold."""

    csp: dict[Literal["connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"], list[str]] | None = None
    permissions: dict[Literal["camera", "microphone", "geolocation", "clipboardWrite"], dict[str, object]] | None = None
    domain: str | None = None
    prefers_border: bool | None = Field(default=None, alias="prefersBorder")


@dataclass(frozen=True)
class Offered:
    """What a server offers to a host that shows MCP Apps, and what its drawn tools answer."""

    era: str
    capabilities: ServerCapabilities
    tools: Mapping[str, Tool]
    listed: Sequence[str]
    contents: Sequence[TextResourceContents | BlobResourceContents]
    answers: Mapping[str, Reply]

    @property
    def drawn(self) -> Mapping[str, Mapping[str, object]]:
        """The metadata of each tool that is bound to a view, in either form."""
        every = {name: each.meta or {} for name, each in self.tools.items()}
        return {name: meta for name, meta in every.items() if {"ui", "ui/resourceUri"} & meta.keys()}


async def offered(server: str | StdioServerParameters, era: str) -> Offered:
    async with Client(server, mode=era, extensions=[SHOWS_APPS]) as host:
        tools = {each.name: each for each in (await host.list_tools()).tools}
        listed = [str(each.uri) for each in (await host.list_resources()).resources]
        contents = (await host.read_resource(VIEW)).contents
        answers = {tool: reply_of(await host.call_tool(tool, dict(arguments))) for tool, arguments in CALLS.items()}
        kept = reply_of(await host.call_tool("memory-append", {"triples": [["Q17", "P36", "Q1490"]]}))
        answers["memory-read"] = reply_of(await host.call_tool("memory-read", {"memory": kept.data["memory"]}))
        return Offered(era, host.server_capabilities, tools, listed, contents, answers)


@pytest.fixture(
    scope="module",
    params=[
        ("stdio", ("",), "auto"),
        ("stdio", ("japan=", "again="), "legacy"),
        ("http", ("",), "legacy"),
        ("http", ("japan=", "again="), "auto"),
    ],
    ids=lambda param: f"{param[0]}, {len(param[1])} served, {param[2]}",
)
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Offered:
    """What each of four servers offers: over stdio and HTTP, of one graph and several, in both eras of the protocol."""
    transport, names, era = request.param
    folder = tmp_path_factory.mktemp("served")
    graphs = [f"{name}{write_graph(folder)}" for name in names]
    words = [*graphs, "--cache-folder", str(folder / "cache")]
    environ = {"KG_SEXTANT_DATA_FOLDER": str(folder / "data"), "KG_SEXTANT_TIMEOUT_S": str(PATIENCE_S)}
    with ExitStack() as ended:
        if transport == "http":
            server: str | StdioServerParameters = address_of(ended.enter_context(started(environ, *words)))
        else:
            command = ["-m", "kg_server", "serve", *words]
            server = StdioServerParameters(command=sys.executable, args=command, env=environ)
        return anyio.run(offered, server, era)


def test_the_view_is_the_built_page_which_no_list_for_models_has(shown: Offered) -> None:
    """Rules APP-001 to APP-005, of the view: its URI, its type, that it is there, as a text, and that it is HTML."""
    [view] = shown.contents
    assert (str(view.uri), view.mime_type) == (VIEW, "text/html;profile=mcp-app")
    assert isinstance(view, TextResourceContents)
    assert view.text.encode() == BUILT.read_bytes()
    assert re.match(r"<!doctype html>\s*<html\b", view.text, re.IGNORECASE)
    assert shown.listed == ["kg://schema"]


def test_the_view_asks_for_no_network_and_no_permission(shown: Offered) -> None:
    """Rules APP-008 and APP-009, of the metadata of the view."""
    [view] = shown.contents
    ui = ResourceUi.model_validate((view.meta or {})["ui"])
    assert (ui.permissions, ui.domain, ui.prefers_border) == (None, None, True)
    assert ui.csp is not None
    assert [origin for each in ui.csp.values() for origin in each] == []


def test_five_tools_are_drawn_and_models_and_hosts_may_call_them(shown: Offered) -> None:
    """Rules APP-001, APP-006, APP-007 and APP-011, of the metadata of tools: both forms of it name the view."""
    assert shown.drawn.keys() == CALLS.keys() | {"memory-read"}
    for meta in shown.drawn.values():
        assert ToolUi.model_validate(meta["ui"]) == ToolUi(resourceUri=VIEW, visibility=None)
        assert meta["ui/resourceUri"] == VIEW


def test_the_text_of_each_drawn_tool_answers_without_the_view(shown: Offered) -> None:
    """Rule APP-010."""
    assert shown.answers.keys() == shown.drawn.keys()
    for tool, answer in shown.answers.items():
        assert (answer.is_error, "Tokyo" in answer.text) == (False, True), tool


def test_a_host_that_asks_for_extensions_learns_that_the_server_has_apps(shown: Offered) -> None:
    # The capabilities of the older era have no extensions.
    assert shown.capabilities.extensions == ({EXTENSION_ID: {}} if shown.era == "auto" else None)
