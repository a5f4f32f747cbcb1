"""What a shell offers while somebody types: tools, their arguments, and entities of the graph."""

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import typer

from kg_adapters.errors import KGError
from kg_server.commands.invocation import Invocation

if TYPE_CHECKING:
    from mcp.types import Tool

    from kg_adapters.protocol import KGAdapter

ENTITIES: Final = frozenset({"entity", "entities", "source", "target", "text"})
"""Arguments whose values are entities."""
MOST: Final = 10
_SPECIAL: Final = re.compile(r"[^\w.,:/@%+=-]")
LEAST_LETTERS: Final = 2
COMPLETING: Final = "_KG_SEXTANT_COMPLETE"
"""The variable by which a shell asks for completion, with its name."""


def complete_tool(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the tools whose names begin like this, each with what it answers."""
    import anyio

    async def listed() -> list[tuple[str, str]]:
        async with _asked(context) as (_, tools):
            folded = incomplete.casefold()
            return [(tool.name, first_line(tool)) for tool in tools if tool.name.casefold().startswith(folded)]

    try:
        return anyio.run(listed)
    except (KGError, OSError):
        return []


def complete_argument(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return arguments of the tool, as `entity=`, or entities whose names or ids begin like the value."""
    import anyio

    written: list[str] | None = context.params.get("arguments")
    before, key, value = _place(written or [], incomplete)

    async def found() -> list[tuple[str, str]]:
        async with _asked(context) as (graph, tools):
            if key in ENTITIES:
                # Bash takes `=` for the end of a word, other shells do not: they get back what they gave.
                start = f"{key}=" if "=" in incomplete else ""
                escaped = _escaping(context)
                return [(f"{start}{escaped(name)}", about) for name, about in await entities_like(graph, value)]
            names = argument_names(tools, str(context.params.get("tool")))
            offered = [f"{name}=" for name in names if name.startswith(incomplete) and name not in before]
            if len(offered) == 1 and _shell(context) in {"bash", "zsh"}:
                # Behind the only word that fits, these would write a blank.
                offered.append(f"{offered[0]}VALUE")
            return [(each, "") for each in offered]

    try:
        return anyio.run(found)
    except (KGError, OSError):
        return []


def argument_names(tools: "Sequence[Tool]", name: str) -> list[str]:
    """Return the arguments of a tool; none where there is no such tool."""
    schemas = [tool.input_schema for tool in tools if tool.name.casefold() == name.casefold()]
    return [argument for schema in schemas for argument in schema.get("properties", {})]


async def entities_like(graph: "KGAdapter", start: str) -> list[tuple[str, str]]:
    """Return names, or ids, of entities that begin like this, each with what tells it apart."""
    if len(start) < LEAST_LETTERS:
        return []
    candidates = await graph.search(start, limit=5 * MOST)
    described = await graph.describe([candidate.entity for candidate in candidates])
    found: dict[str, str] = {}
    for candidate in candidates:
        what = described[candidate.entity]
        id_ = graph.prefixes.shorten(candidate.entity)
        for text in (what.label or "", candidate.matched_text, id_):
            if text.casefold().startswith(start.casefold()):
                found.setdefault(text, what.description or id_)
                break
    return list(found.items())[:MOST]


def first_line(tool: "Tool") -> str:
    """Return what a tool answers, in one line."""
    return (tool.description or "").partition("\n")[0]


def _place(args: Sequence[str], incomplete: str) -> tuple[set[str], str, str]:
    """Return the arguments that are there, the key of the one that is being written, and its value until now.

    Bash splits words at `=`, so that `entity=Go` arrives as three of them.
    """
    before = {word.partition("=")[0] for word in args}
    if len(args) > 1 and args[-1] == "=":
        return before, args[-2], incomplete
    key, equals, value = incomplete.partition("=")
    return (before, key, value) if equals else (before, "", incomplete)


def _escaping(context: typer.Context) -> Callable[[str], str]:
    """Return what makes a name one word: Bash takes what is offered as it is, other shells quote it."""
    return (lambda name: _SPECIAL.sub(r"\\\g<0>", name)) if _shell(context) == "bash" else str


def _shell(context: typer.Context) -> str:
    """Return the shell that asks, such as `zsh`."""
    called = context.find_object(Invocation)
    return "" if called is None else called.environ.get(COMPLETING, "").removeprefix("complete_")


@asynccontextmanager
async def _asked(context: typer.Context) -> "AsyncGenerator[tuple[KGAdapter, list[Tool]]]":
    """Open the graph that the command names so far, as far as it was imported, and a server of it."""
    from mcp import Client

    from kg_server.app import build_server
    from kg_server.commands.graphs import opened_if_imported

    # The words before the command have not been carried out, and so `--config` is not known.
    called = context.find_object(Invocation) or Invocation({})
    graph = context.params.get("graph")
    settings = called.load(graph=graph if isinstance(graph, str) else None).settings
    async with opened_if_imported(settings) as opened_graph, Client(build_server(opened_graph, settings)) as client:
        yield opened_graph, (await client.list_tools()).tools
