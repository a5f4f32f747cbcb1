"""kg-sextant tools: list the tools, and complete and read their arguments as their schemas describe them."""

import difflib
import json
import re
import shlex
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from io import TextIOWrapper
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from pydantic import BaseModel, Field

from kg_adapters.errors import InvalidRequest, KGError
from kg_boundary.regular_files import open_regular, parsed
from kg_boundary.shown import counted, in_quotes
from kg_server.commands import options
from kg_server.commands.invocation import COMPLETING, Invocation, invocation
from kg_server.commands.output import show
from kg_server.settings import APP, Settings

if TYPE_CHECKING:
    from mcp.types import Tool

    from kg_adapters.protocol import KGAdapter
    from kg_server.graphs import GraphSet

EXAMPLES: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "observe": (("question=Who influenced him?", "entities=Albert Einstein", "hops=1"),),
    "Retrieve": (("text=Johann Wolfgang von Goethe",), ('text=["Goethe", "Einstien"]', "limit=2")),
    "GetNeighbor": (("entity=Q17", "relation=P36"), ("entity=Q30", "direction=in", "limit=5")),
    "GetPath": (("source=Q5879", "target=Q937", "limit=3"),),
    "Feature": (("entity=Q937",), ("entity=Q937", "feature=date of birth")),
    "Degree": (("entity=Q30",),),
    "Schema": ((), ("about=human",)),
    "Sparql": (('query=SELECT ?who WHERE { ?who @"influenced by" @"Johann Wolfgang von Goethe" } LIMIT 5',),),
    "Compose": (
        ("expression=Count[Neighbor[Q937, influenced by]]",),
        ("expression=Intersect[Neighbor[Q937, influenced by], Neighbor[Q5879, -influenced by]]",),
    ),
    "memory-append": (('triples=[["Q937", "P737", "Q38193"]]',),),
    "memory-read": (("memory=HANDLE",),),
}
"""Calls on the bundled sample, by tool; HANDLE is what `memory-append` gave."""


_KEY: Final = re.compile(r"[A-Za-z_][\w-]*")

_MOST_READ: Final = 10_000_000

_LONGEST_PATH: Final = 1_000

_LIST: Final = re.compile(r"\s*\[\s*[\[\"]")

READ_AS_JSON: Final = frozenset({"integer", "number", "boolean", "array", "object"})


class Argument(BaseModel):
    """One argument in the input schema of a tool."""

    type: str | tuple[str, ...] | None = None
    any_of: "tuple[Argument, ...]" = Field(default=(), alias="anyOf")
    enum: tuple[str, ...] = ()
    default: object = None
    minimum: float | None = None
    maximum: float | None = None
    description: str = ""

    @property
    def types(self) -> tuple[str, ...]:
        """The JSON types that it takes."""
        own = (self.type,) if isinstance(self.type, str) else self.type or ()
        return (*own, *(kind for choice in self.any_of for kind in choice.types))

    def row(self, name: str, *, required: bool) -> tuple[str, str, str]:
        """Return its name, its form, and what is to be known about its value."""
        bounds = (("at least", self.minimum), ("at most", self.maximum))
        default = "required" if required else "" if self.default is None else f"default {json.dumps(self.default)}"
        about = (default, *(f"{word} {bound:g}" for word, bound in bounds if bound is not None), self.description)
        choices = [each for form in (self, *self.any_of) for each in form.enum]
        return name, "|".join(choices) or " or ".join(self.types) or "any", "; ".join(filter(None, about))

    def read(self, name: str, text: str) -> object:
        """Return the value that a text stands for; a text that does not fit stays one, which the tool refuses.

        Raises:
            InvalidRequest: It begins like a list in JSON, and is none.
        """
        lists = text.lstrip().startswith("[")
        if ("string" in self.types and not ("array" in self.types and lists)) or READ_AS_JSON.isdisjoint(self.types):
            return text
        try:
            value: object = parsed(json.loads, text)
        except ValueError as error:
            # A name may begin with a bracket, but hardly with a bracket and a quotation mark.
            if "array" in self.types and _LIST.match(text):
                at = f" from character {error.pos + 1} on" if isinstance(error, json.JSONDecodeError) else ""
                raise InvalidRequest(
                    f"The value of {in_quotes(name)} begins like a JSON list, but is not valid JSON{at}. "
                    'Write it as ["one", "two"].'
                ) from error
            # A list of one is what people write without brackets.
            return [text] if "array" in self.types and not lists else text
        return value


class Arguments(BaseModel):
    """The input schema of a tool."""

    properties: dict[str, Argument] = {}
    required: tuple[str, ...] = ()


def split_arguments(written: Sequence[str]) -> dict[str, str]:
    """Split every `key=value` at its first equals sign; values without a key are numbered from 0.

    `@FILE` and `-` are such values too.

    Raises:
        InvalidRequest: A key comes twice, or a file cannot be read.
    """
    split: dict[str, str] = {}
    places = count()
    for text in written:
        key, equals, value = text.partition("=")
        if text == "-" or text.startswith("@"):
            key, value = str(next(places)), _read_text(text)
        elif not equals or _KEY.fullmatch(key) is None:
            key, value = str(next(places)), text
        if key in split:
            raise _twice(key)
        split[key] = value
    return split


def parse_arguments(written: Mapping[str, str], schema: Mapping[str, object]) -> dict[str, object]:
    """Parse the values by the tool's input schema; values that do not fit stay texts, which the tool refuses.

    Values without a key are those of the tool's first arguments.

    Raises:
        InvalidRequest: An argument is given twice, there are more values than arguments, or a list is not valid JSON.
    """
    known = Arguments.model_validate(schema).properties
    values: dict[str, object] = {}
    for key, text in written.items():
        name = next(islice(known, int(key), None), None) if key.isdecimal() else key
        if name is None:
            raise InvalidRequest(f"This tool has {counted(len(known), 'argument')}: {', '.join(known)}.")
        if name in values or (name != key and name in written):
            raise _twice(name)
        values[name] = known.get(name, Argument()).read(name, text)
    return values


def _twice(name: str) -> InvalidRequest:
    return InvalidRequest(f"The argument {in_quotes(name)} is given twice; give it once.")


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


def find_tool(tools: "Sequence[Tool]", name: str) -> "Tool":
    """Return the tool of a name, in upper or lower case.

    Raises:
        InvalidRequest: There is none; the message suggests a similar name.
    """
    folded = {tool.name.casefold(): tool for tool in tools}
    if name.casefold() in folded:
        return folded[name.casefold()]
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    meant = f" Did you mean {folded[close[0]].name}?" if close else ""
    names = ", ".join(tool.name for tool in tools)
    raise InvalidRequest(f"This graph has no tool {in_quotes(name)}.{meant} Its tools are {names}.")


ENTITIES: Final = frozenset({"entity", "entities", "source", "target", "text"})
"""Arguments whose values are entities."""

_MOST_OFFERED: Final = 10
_LEAST_LETTERS: Final = 2
_SPECIAL: Final = re.compile(r"[^\w.,:/@%+=-]")


def complete_tool(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the tools whose names begin like this, each with what it answers."""

    async def offered(_: "GraphSet", known: "Sequence[Tool]") -> list[tuple[str, str]]:
        begun = [tool for tool in known if tool.name.casefold().startswith(incomplete.casefold())]
        return [(tool.name, first_line(tool)) for tool in begun]

    return _offered(context, offered)


def complete_argument(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return arguments of the tool, as `entity=`, or entities whose names or ids begin like the value."""
    called = context.find_object(Invocation)
    shell = "" if called is None else called.environ.get(COMPLETING, "").removeprefix("complete_")
    written: list[str] = context.params.get("arguments") or []
    # Bash splits words at `=`, so that `entity=Go` arrives as three of them; other shells get back what they gave.
    split = len(written) > 1 and written[-1] == "="
    key, equals, value = (written[-2], "=", incomplete) if split else incomplete.partition("=")
    start = "" if split else f"{key}="

    async def offered(graphs: "GraphSet", known: "Sequence[Tool]") -> list[tuple[str, str]]:
        if equals and key in ENTITIES:
            found = await entities_like((await graphs.opened()).adapter, value)
            if shell == "bash":  # It takes what is offered as it is; other shells quote it.
                found = [(_SPECIAL.sub(r"\\\g<0>", name), about) for name, about in found]
            return [(f"{start}{name}", about) for name, about in found]
        before = {word.partition("=")[0] for word in written}
        names = argument_names(known, str(context.params.get("tool")))
        texts = [f"{name}=" for name in names if name.startswith(incomplete) and name not in before]
        if len(texts) == 1 and shell in {"bash", "zsh"}:
            # Behind the only word that fits, these would write a blank.
            texts.append(f"{texts[0]}VALUE")
        return [(each, "") for each in texts]

    return _offered(context, offered)


def _offered(
    context: typer.Context, work: "Callable[[GraphSet, Sequence[Tool]], Awaitable[list[tuple[str, str]]]]"
) -> list[tuple[str, str]]:
    """Return what work offers of the graph that the command names so far, as far as it was imported, and its tools."""
    import anyio

    async def found() -> list[tuple[str, str]]:
        from kg_server.commands.graphs import connected

        # The words before the command have not been carried out, and so `--config` is not known.
        called = context.find_object(Invocation) or Invocation({})
        settings = called.load_for_any(graph=context.params.get("graph") or None).settings
        async with connected(settings, imports=False) as (opened, client):
            return await work(opened, (await client.list_tools()).tools)

    try:
        return anyio.run(found)
    except (KGError, OSError):
        return []


def argument_names(known: "Sequence[Tool]", name: str) -> list[str]:
    """Return the arguments of a tool; none where there is no such tool."""
    schemas = [tool.input_schema for tool in known if tool.name.casefold() == name.casefold()]
    return [argument for schema in schemas for argument in schema.get("properties", {})]


async def entities_like(graph: "KGAdapter", start: str) -> list[tuple[str, str]]:
    """Return names, or ids, of entities that begin like this, each with what tells it apart."""
    if len(start) < _LEAST_LETTERS:
        return []
    candidates = await graph.search(start, limit=5 * _MOST_OFFERED)
    described = await graph.describe([candidate.entity for candidate in candidates])
    found: dict[str, str] = {}
    for candidate in candidates:
        what = described[candidate.entity]
        id_ = graph.prefixes.shorten(candidate.entity)
        names = (what.label or "", candidate.matched_text, id_)
        begun = next((text for text in names if text.casefold().startswith(start.casefold())), None)
        if begun is not None:
            found.setdefault(begun, what.description or id_)
    return list(found.items())[:_MOST_OFFERED]


def tools(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="TOOL", help="The tool to describe in full.", autocompletion=complete_tool)
    ] = None,
    graph: options.Graphs = None,
    as_json: options.Json = False,
) -> None:
    """List the tools of a graph, or describe one tool with its arguments and examples."""
    import anyio

    known = anyio.run(_tools, invocation(context).load_for_any(graph=graph).settings)
    if name is None:
        show(known, (listing(known), f"\nArguments and examples: {APP} tools TOOL"), as_json=as_json)
    else:
        tool = find_tool(known, name)
        show(tool, (page(tool, graph),), as_json=as_json)


async def _tools(settings: Settings) -> "list[Tool]":
    from kg_server.commands.graphs import connected

    async with connected(settings) as (_, client):
        return (await client.list_tools()).tools


def listing(known: "Sequence[Tool]") -> str:
    """Return one line for each tool."""
    wide = max(len(tool.name) for tool in known)
    return "\n".join(f"{tool.name:<{wide}}  {first_line(tool)}" for tool in known)


def page(tool: "Tool", graphs: Sequence[str] | None = None) -> str:
    """Return all about a tool: what it answers, its arguments, and calls to copy."""
    schema = Arguments.model_validate(tool.input_schema)
    rows = [each.row(name, required=name in schema.required) for name, each in schema.properties.items()]
    widths = [max(len(row[place]) for row in rows) for place in (0, 1)]
    lines = [tool.name, *(f"  {line}".rstrip() for line in (tool.description or "").splitlines()), "", "Arguments:"]
    lines += [f"  {name:<{widths[0]}}  {form:<{widths[1]}}  {rest}".rstrip() for name, form, rest in rows]
    calls = EXAMPLES.get(tool.name, ()) if (graphs or ["sample"]) == ["sample"] else ()
    if calls:
        lines += ["", "Examples:", *(f"  {shlex.join([APP, 'call', tool.name, *words])}" for words in calls)]
    return "\n".join(lines)


def first_line(tool: "Tool") -> str:
    """Return what a tool answers, in one line."""
    return (tool.description or "").partition("\n")[0]
