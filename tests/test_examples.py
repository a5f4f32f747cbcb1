"""The examples of tools, of the help and of expressions have answers with content on the graphs that are shipped."""

import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Final

from mcp import Client

from calls import reply_of, unhurried
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_server.app import build_server
from kg_server.commands import call as commands
from kg_server.commands.shell import HELP
from kg_server.commands.tools import EXAMPLES, parse_arguments, split_arguments
from pages import ROOT
from patience import PATIENCE_S

_CALL: Final = re.compile(r"[A-Z][a-z]+\[(?:[^][]|\[(?:[^][]|\[[^][]*\])*\])*\]")
_EITHER: Final = re.compile(r"(\w+) or (\w+\[\w+\])")
MEANT: Final[Mapping[str, tuple[str, ...]]] = {
    "a": ("Type[city]", "Type[human]"),
    "b": ("Neighbor[Type[country], capital]",),
    "x": ("population", "country of citizenship/population"),
    "n": ("3",),
    "node": ("Japan",),
    "relation": ("capital",),
    "text": ("Tokyo",),
    "class": ("city",),
}
"""What stands in the place of the words that examples leave open; any of several."""
OF_OTHER_GRAPHS: Final = frozenset(("relation", "pet_id = 1"))
"""Conditions of docs/compose.md that are about none of the classes below."""
CLASSES: Final = ("town", "river", "company", "film", "match")


@asynccontextmanager
async def serving(name: str, folder: Path) -> AsyncGenerator[Client]:
    """Serve one of the graphs that are shipped."""
    settings = unhurried(cache_folder=folder, data_folder=folder, embedding={"embedder": "lexical"})
    async with aclosing(LocalAdapter(open_sample(folder, name))) as graph, Client(build_server(graph, settings)) as one:
        yield one


async def has_content(client: Client, tool: str, **arguments: object) -> bool:
    """Return whether an answer has any content."""
    deadline = {"timeout_s": PATIENCE_S} if tool == "Sparql" else {}
    return reply_of(await client.call_tool(tool, {**arguments, **deadline})).has_content


async def without_content(client: Client, several: Iterable[Iterable[str]]) -> list[list[str]]:
    """Return those of several expressions of which no way to write them has an answer with content."""
    found: list[list[str]] = []
    for ways in map(list, several):
        for expression in ways:
            if await has_content(client, "Compose", expression=expression):
                break
        else:
            found.append(ways)
    return found


def filled(example: str) -> Iterator[str]:
    """Yield an example with what its open words may mean."""
    every = [_EITHER.sub(way, example) for way in (r"\1", r"\2")] if _EITHER.search(example) else [example]
    for each, words in product(every, product(*MEANT.values())):
        chosen = dict(zip(MEANT, words, strict=True))
        yield "".join(chosen.get(word, word) for word in re.split(r"\b", each))


async def description(client: Client, tool: str) -> str:
    """Return what a tool says of itself, on one line."""
    tools = {each.name: each.description or "" for each in (await client.list_tools()).tools}
    return " ".join(tools[tool].split())


async def test_each_expression_that_compose_shows_has_content_on_the_sample(tmp_path: Path) -> None:
    async with serving("sample", tmp_path) as client:
        shown = _CALL.findall(await description(client, "Compose"))
        assert len(shown) > 7
        assert await without_content(client, (filled(each) for each in shown)) == []


async def test_the_query_that_sparql_shows_has_rows(tmp_path: Path) -> None:
    async with serving("sample", tmp_path) as client:
        (pattern,) = re.findall(r'\?x a @.*?"(?=\.)', await description(client, "Sparql"))
        assert await has_content(client, "Sparql", query=f"SELECT ?x {{ {pattern} }}")


async def test_the_calls_that_the_help_shows_have_content(tmp_path: Path) -> None:
    async with serving("sample", tmp_path) as client:
        schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        kept = reply_of(await client.call_tool("memory-append", {"triples": [["Q937", "P737", "Q38193"]]}))
        calls = [(tool, written) for tool, several in EXAMPLES.items() for written in several]
        short = re.findall(r"\b([A-Z]\w+) (Q\d+) (\w+=\w+)", f"{HELP} {commands.call.__doc__}")
        assert len(short) == 2
        calls += [(tool, (f"entity={entity}", argument)) for tool, entity, argument in short]
        calls += [("Retrieve", (f"text={each}",)) for each in re.findall(r"^  (\w+)  .*Retrieve", HELP, re.MULTILINE)]
        calls += [("Compose", (f"expression={each}",)) for each in _CALL.findall(HELP)]
        calls += [("Sparql", (f"query={each}",)) for each in re.findall(r"SELECT .*?}", HELP)]
        empty: list[tuple[str, tuple[str, ...]]] = []
        for tool, written in calls:
            given = split_arguments([each.replace("HANDLE", str(kept.data["memory"])) for each in written])
            if not await has_content(client, tool, **parse_arguments(given, schemas[tool])):
                empty.append((tool, written))
    assert empty == []
    assert {tool for tool, _ in calls} == set(schemas)


async def test_each_expression_and_condition_of_the_page_on_compose_has_content(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "compose.md").read_text(encoding="utf-8")
    functions, conditions = page.partition("## Functions")[2], page.partition("## Conditions")[2]
    written = re.findall(r"^\|.*\| `(.*)` \|$", functions.partition("## Names")[0], re.MULTILINE)
    written += re.findall(r"as in `(\w+\[.*\])`", page)
    cells = re.findall(r"^\| `(.*)` \| (?:that|whose|for which) ", conditions, re.MULTILINE)
    several = {each for cell in cells for each in cell.split("`, `")} - OF_OTHER_GRAPHS
    assert (len(written), len(several)) == (23, 7)
    async with serving("sample:world", tmp_path) as client:
        assert await without_content(client, ([each] for each in written)) == []
        kept = ([f"Where[Type[{owner}], {each}]" for owner in CLASSES] for each in sorted(several))
        assert await without_content(client, kept) == []
