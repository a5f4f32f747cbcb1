"""`kg-sextant tools`: the tools of a graph, their arguments, and calls to copy."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer
from pydantic import BaseModel, ConfigDict, Field

from kg_server.commands.call import find_tool
from kg_server.commands.completion import complete_tool, first_line
from kg_server.commands.invocation import invocation
from kg_server.commands.output import say
from kg_server.settings import APP, Settings

if TYPE_CHECKING:
    from mcp.types import Tool

EXAMPLES: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "observe": (("question=Who influenced him?", "entities=Albert Einstein", "hops=1"),),
    "Retrieve": (("text=Johann Wolfgang von Goethe",), ('text=["Goethe", "Einstien"]', "limit=2")),
    "GetNeighbor": (("entity=Q1490", "relation=P36"), ("entity=Q30", "direction=in", "limit=5")),
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


class _Property(BaseModel):
    """What an input schema says of one argument."""

    model_config = ConfigDict(extra="ignore")

    type: str | list[str] = "any"
    enum: list[str] = []
    default: object = None
    minimum: float | None = None
    maximum: float | None = None
    description: str = ""


class _Schema(BaseModel):
    model_config = ConfigDict(extra="ignore")

    properties: dict[str, _Property] = Field({})
    required: list[str] = []


def tools(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="One tool, to see all of it.", autocompletion=complete_tool)
    ] = None,
    graph: Annotated[str | None, typer.Option(help="`sample`, RDF files, a store, or an endpoint's URL.")] = None,
) -> None:
    """List the tools of a graph, or one with its arguments and examples."""
    import anyio

    known = anyio.run(_tools, invocation(context).load(graph=graph).settings)
    if name is None:
        say(listing(known))
        say(f"\nArguments and examples: {APP} tools NAME")
    else:
        say(page(find_tool(known, name), graph))


async def _tools(settings: Settings) -> "list[Tool]":
    from mcp import Client

    from kg_server.app import build_server
    from kg_server.commands.graphs import opened

    async with opened(settings) as graph, Client(build_server(graph, settings)) as client:
        return (await client.list_tools()).tools


def listing(known: "Sequence[Tool]") -> str:
    """Return one line for each tool."""
    wide = max(len(tool.name) for tool in known)
    return "\n".join(f"{tool.name:<{wide}}  {first_line(tool)}" for tool in known)


def page(tool: "Tool", graph: str | None = None) -> str:
    """Return all about a tool: what it answers, its arguments, and calls to copy."""
    schema = _Schema.model_validate(tool.input_schema)
    rows = [
        (name, _form(known), _rest(known, required=name in schema.required))
        for name, known in schema.properties.items()
    ]
    widths = [max(len(row[place]) for row in rows) for place in (0, 1)]
    lines = [tool.name, *(f"  {line}".rstrip() for line in (tool.description or "").splitlines()), "", "Arguments:"]
    lines += [f"  {name:<{widths[0]}}  {form:<{widths[1]}}  {rest}".rstrip() for name, form, rest in rows]
    calls = EXAMPLES.get(tool.name, ()) if graph in {None, "sample"} else ()
    if calls:
        lines += ["", "Examples:", *(f"  {shlex.join([APP, 'call', tool.name, *words])}" for words in calls)]
    return "\n".join(lines)


def _form(known: _Property) -> str:
    if known.enum:
        return "|".join(known.enum)
    return known.type if isinstance(known.type, str) else " or ".join(known.type)


def _rest(known: _Property, *, required: bool) -> str:
    bounds = [
        f"{word} {bound:g}"
        for word, bound in (("at least", known.minimum), ("at most", known.maximum))
        if bound is not None
    ]
    default = "required" if required else f"default {json.dumps(known.default)}" if known.default is not None else ""
    return "; ".join(each for each in (default, *bounds, known.description) if each)
