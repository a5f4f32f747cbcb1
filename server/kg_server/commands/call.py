"""`kg-sextant call`: one tool call, as a client would make it."""

import difflib
import json
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from pydantic import BaseModel, Field

from kg_adapters.errors import InvalidRequest
from kg_boundary.regular_files import open_regular, parsed
from kg_boundary.shown import in_quotes, json_text
from kg_server.commands.completion import complete_argument, complete_tool
from kg_server.commands.failures import ExitCode
from kg_server.commands.invocation import invocation
from kg_server.commands.output import say, uncollected, warn
from kg_server.commands.tables import WRITERS, Output, table_of
from kg_server.settings import Settings

if TYPE_CHECKING:
    from mcp.types import CallToolResult, Tool


MAIN: Final = ""
"""The key of what `@FILE` or `-` gives: the first argument that the tool needs."""
_MOST_READ: Final = 10_000_000
_LONGEST_PATH: Final = 1_000
READ_AS_JSON: Final = frozenset({"integer", "number", "boolean", "array", "object"})


def call(
    context: typer.Context,
    tool: Annotated[str, typer.Argument(help="The tool, as in Retrieve or GetNeighbor.", autocompletion=complete_tool)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]…",
            help="Its arguments; @FILE or - (standard input) is its main one.",
            autocompletion=complete_argument,
        ),
    ] = None,
    graph: Annotated[str | None, typer.Option(help="`sample`, RDF files, a store, or an endpoint's URL.")] = None,
    output: Annotated[Output, typer.Option(help="The answer as text, as JSON, or its rows as a table.")] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    cache_folder: Annotated[Path | None, typer.Option(help="Where imported files are kept.")] = None,
) -> None:
    """Call one tool and print its answer, as in: call GetNeighbor entity=Q1490 relation=P36."""
    settings = invocation(context).load(graph=graph, cache_folder=cache_folder).settings
    written = split_arguments(arguments or [])
    import anyio

    result = anyio.run(_call, settings, tool, written)
    tell(result, "json" if as_json else output)
    if result.is_error:
        raise typer.Exit(ExitCode.REFUSED)


def tell(result: "CallToolResult", output: Output) -> None:
    """Print an answer in a form; a refusal on standard error."""
    if result.is_error:
        warn(shown(result, output))
    else:
        say(shown(result, output), tabs=output == "tsv")


def shown(result: "CallToolResult", output: Output) -> str:
    """Return an answer in a form; a refusal is always text."""
    if result.is_error or output == "text":
        return _text(result)
    if output == "json":
        return json_text(result.structured_content, indent=2)
    return WRITERS[output](table_of(result.structured_content))


async def _call(settings: Settings, name: str, written: Mapping[str, str]) -> "CallToolResult":
    with uncollected() as begin:
        from mcp import Client

        from kg_server.app import build_server
        from kg_server.commands.graphs import opened

        begin()

    async with opened(settings) as graph, Client(build_server(graph, settings)) as client:
        tool = find_tool((await client.list_tools()).tools, name)
        return await client.call_tool(tool.name, parse_arguments(written, tool.input_schema))


def split_arguments(written: Sequence[str]) -> dict[str, str]:
    """Split every `key=value` at its first equals sign; the text that `@FILE` or `-` names has the key `MAIN`.

    Raises:
        InvalidRequest: One has no equals sign, a key comes twice, or a file cannot be read.
    """
    split: dict[str, str] = {}
    for text in written:
        key, equals, value = text.partition("=")
        if text == "-" or text.startswith("@"):
            key, equals, value = MAIN, "=", _read_text(text)
        if not equals or not (key or text[:1] in "@-"):
            raise InvalidRequest(f"Arguments are written key=value, as in entity=Q1490; {in_quotes(text)} is not.")
        if key in split:
            raise InvalidRequest(f"The argument {in_quotes(key)} is given twice; give it once.")
        split[key] = value
    return split


def parse_arguments(written: Mapping[str, str], schema: Mapping[str, object]) -> dict[str, object]:
    """Read the values as the tool's input schema says; what does not fit stays text, for the tool to refuse.

    Raises:
        InvalidRequest: The main argument is given twice, or the tool has none.
    """
    known = _Schema.model_validate(schema)
    named = dict(written)
    if MAIN in named:
        main = next(iter(known.required), None)
        if main is None or main in named:
            raise InvalidRequest(
                f"The argument {in_quotes(main)} is given twice; give it once."
                if main is not None
                else "This tool has no main argument; write key=value."
            )
        named[main] = named.pop(MAIN)
    return {key: _parse(value, known.properties.get(key)) for key, value in named.items()}


def _read_text(source: str) -> str:
    """Return the text of `@FILE`, or of standard input, without the line end behind it."""
    shown = in_quotes(source, _LONGEST_PATH)
    try:
        if source == "-":
            text = sys.stdin.read(_MOST_READ + 1)
        else:
            with TextIOWrapper(open_regular(Path(source[1:])), encoding="utf-8") as file:
                text = file.read(_MOST_READ + 1)
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{shown} is not text in UTF-8.") from error
    except OSError as error:
        raise InvalidRequest(f"{shown} cannot be read: {error.strerror}.") from error
    if len(text) > _MOST_READ:
        raise InvalidRequest(f"{shown} is longer than {_MOST_READ:,} characters, which is too long for any tool.")
    return text.rstrip("\n")


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
    required: tuple[str, ...] = ()


def _parse(text: str, known: _Property | None) -> object:
    types: frozenset[str | None] = frozenset() if known is None else known.types
    is_text = "string" in types and not ("array" in types and text.lstrip().startswith("["))
    if is_text or types.isdisjoint(READ_AS_JSON):
        return text
    try:
        value: object = parsed(json.loads, text)
    except ValueError:
        # A list of one is what people write without brackets.
        return [text] if "array" in types and not text.lstrip().startswith("[") else text
    return value


def find_tool(tools: "Sequence[Tool]", name: str) -> "Tool":
    """Return the tool of a name.

    Raises:
        InvalidRequest: There is none; the message says which may have been meant.
    """
    by_name = {tool.name: tool for tool in tools}
    if name in by_name:
        return by_name[name]
    folded = {known.casefold(): known for known in by_name}
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    meant = f" Did you mean {folded[close[0]]}?" if close else ""
    raise InvalidRequest(f"This graph has no tool {in_quotes(name)}.{meant} Its tools are {', '.join(by_name)}.")


def _text(result: "CallToolResult") -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")
