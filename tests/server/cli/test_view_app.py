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
from server_processes import address_of, started

VIEW = "ui://kg-sextant/graph.html"
BUILT = Path(__file__).parents[3] / "server" / "kg_server" / "view.html"
SHOWS_APPS = advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})
ORIGIN = re.compile(r"(https?|wss?)://(\*\.)?[^\s/*]+")
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

    @property
    def page(self) -> str:
        [content] = self.contents
        assert isinstance(content, TextResourceContents)
        return content.text

    @property
    def ui(self) -> ResourceUi:
        [content] = self.contents
        return ResourceUi.model_validate((content.meta or {})["ui"])


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
    environ = {"KG_SEXTANT_DATA_FOLDER": str(folder / "data")}
    with ExitStack() as ended:
        if transport == "http":
            server: str | StdioServerParameters = address_of(ended.enter_context(started(environ, *words)))
        else:
            command = ["-m", "kg_server", "serve", *words]
            server = StdioServerParameters(command=sys.executable, args=command, env=environ)
        return anyio.run(offered, server, era)


def test_app_001_the_uri_of_the_view_uses_the_scheme_ui(shown: Offered) -> None:
    assert [str(each.uri) for each in shown.contents] == [VIEW]
    assert {meta["ui/resourceUri"] for meta in shown.drawn.values()} == {VIEW}


def test_app_002_the_view_has_the_type_of_mcp_apps(shown: Offered) -> None:
    assert [each.mime_type for each in shown.contents] == ["text/html;profile=mcp-app"]


def test_app_003_the_view_is_given_as_a_text_which_is_the_built_file(shown: Offered) -> None:
    assert shown.page.encode() == BUILT.read_bytes()


def test_app_004_the_view_is_an_html5_document(shown: Offered) -> None:
    assert re.match(r"<!doctype html>\s*<html\b", shown.page, re.IGNORECASE)


def test_app_005_the_view_that_tools_name_is_there_but_not_in_the_list_that_models_read(shown: Offered) -> None:
    assert shown.contents
    assert shown.listed == ["kg://schema"]


def test_app_006_no_tool_has_only_the_old_flat_key(shown: Offered) -> None:
    for meta in shown.drawn.values():
        assert ToolUi.model_validate(meta["ui"]).resource_uri == meta["ui/resourceUri"]


def test_app_007_five_tools_are_bound_as_the_specification_has_it(shown: Offered) -> None:
    assert shown.drawn.keys() == {"observe", "GetNeighbor", "GetPath", "Compose", "memory-read"}
    for meta in shown.drawn.values():
        assert ToolUi.model_validate(meta["ui"]).resource_uri == VIEW


def test_app_008_the_metadata_of_the_view_is_as_the_specification_has_it(shown: Offered) -> None:
    assert (shown.ui.permissions, shown.ui.domain, shown.ui.prefers_border) == (None, None, True)


def test_app_009_the_view_asks_for_no_origin_and_one_that_it_asked_for_would_be_well_formed(shown: Offered) -> None:
    assert shown.ui.csp is not None
    origins = [origin for each in shown.ui.csp.values() for origin in each]
    assert all(ORIGIN.fullmatch(each) for each in origins)
    assert origins == []


def test_app_010_the_text_of_each_drawn_tool_answers_without_the_view(shown: Offered) -> None:
    assert shown.answers.keys() == shown.drawn.keys()
    for tool, answer in shown.answers.items():
        assert (answer.is_error, "Tokyo" in answer.text) == (False, True), tool


def test_app_011_who_may_call_a_drawn_tool_is_left_to_the_default_both(shown: Offered) -> None:
    assert {name: ToolUi.model_validate(meta["ui"]).visibility for name, meta in shown.drawn.items()} == dict.fromkeys(
        shown.drawn
    )


def test_a_host_that_asks_for_extensions_learns_that_the_server_has_apps(shown: Offered) -> None:
    # The capabilities of the older era have no extensions.
    assert shown.capabilities.extensions == ({EXTENSION_ID: {}} if shown.era == "auto" else None)
