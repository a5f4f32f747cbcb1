"""`kg-sextant call`: one tool call, as a client would make it."""

import difflib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from pydantic import BaseModel, Field

from kg_adapters.errors import InvalidRequest
from kg_boundary.shown import in_quotes, json_text
from kg_server.commands.failures import ExitCode
from kg_server.commands.invocation import invocation
from kg_server.commands.output import say, warn
from kg_server.settings import Settings

if TYPE_CHECKING:
    from mcp.types import CallToolResult, Tool


READ_AS_JSON: Final = frozenset({"integer", "number", "boolean", "array", "object"})


def call(
    context: typer.Context,
    tool: Annotated[str, typer.Argument(help="The tool, as in Retrieve or GetNeighbor.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]…", help="Its arguments.")] = None,
    graph: Annotated[str | None, typer.Option(help="`sample`, RDF files, a store, or an endpoint's URL.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the structured answer.")] = False,
    cache_folder: Annotated[Path | None, typer.Option(help="Where imported files are kept.")] = None,
) -> None:
    """Call one tool and print its answer, as in: call GetNeighbor entity=Q1490 relation=P36."""
    settings = invocation(context).load(graph=graph, cache_folder=cache_folder).settings
    written = split_arguments(arguments or [])
    import anyio

    result = anyio.run(_call, settings, tool, written)
    text = _structured(result) if as_json and not result.is_error else _text(result)
    (warn if result.is_error else say)(text)
    if result.is_error:
        raise typer.Exit(ExitCode.REFUSED)


async def _call(settings: Settings, name: str, written: Mapping[str, str]) -> "CallToolResult":
    from mcp import Client

    from kg_server.app import build_server
    from kg_server.commands.graphs import opened

    async with opened(settings) as graph, Client(build_server(graph, settings)) as client:
        tool = _find((await client.list_tools()).tools, name)
        return await client.call_tool(tool.name, parse_arguments(written, tool.input_schema))


def split_arguments(written: Sequence[str]) -> dict[str, str]:
    """Split every `key=value` at its first equals sign.

    Raises:
        InvalidRequest: One has no equals sign, or a key comes twice.
    """
    split: dict[str, str] = {}
    for text in written:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidRequest(f"Arguments are written key=value, as in entity=Q1490; {in_quotes(text)} is not.")
        if key in split:
            raise InvalidRequest(f"The argument {in_quotes(key)} is given twice; give it once.")
        split[key] = value
    return split


def parse_arguments(written: Mapping[str, str], schema: Mapping[str, object]) -> dict[str, object]:
    """Read the values as the tool's input schema says; what does not fit stays text, for the tool to refuse."""
    properties = _Schema.model_validate(schema).properties
    return {key: _parse(value, properties.get(key)) for key, value in written.items()}


class _Property(BaseModel):
    """What an input schema says about the JSON types of one argument."""

    type: str | tuple[str, ...] | None = None
    any_of: "tuple[_Property, ...]" = Field((), alias="anyOf")

    @property
    def types(self) -> frozenset[str | None]:
        own = (self.type,) if isinstance(self.type, str | None) else self.type
        return frozenset(own).union(*(choice.types for choice in self.any_of))


class _Schema(BaseModel):
    properties: dict[str, _Property] = {}


def _parse(text: str, known: _Property | None) -> object:
    types: frozenset[str | None] = frozenset() if known is None else known.types
    is_text = "string" in types and not ("array" in types and text.lstrip().startswith("["))
    if is_text or types.isdisjoint(READ_AS_JSON):
        return text
    try:
        value: object = json.loads(text)
    except ValueError:
        # A list of one is what people write without brackets.
        return [text] if "array" in types and not text.lstrip().startswith("[") else text
    return value


def _find(tools: "Sequence[Tool]", name: str) -> "Tool":
    by_name = {tool.name: tool for tool in tools}
    if name in by_name:
        return by_name[name]
    folded = {known.casefold(): known for known in by_name}
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    meant = f" Did you mean {folded[close[0]]}?" if close else ""
    raise InvalidRequest(f"This graph has no tool {in_quotes(name)}.{meant} Its tools are {', '.join(by_name)}.")


def _text(result: "CallToolResult") -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def _structured(result: "CallToolResult") -> str:
    return json_text(result.structured_content, indent=2)
