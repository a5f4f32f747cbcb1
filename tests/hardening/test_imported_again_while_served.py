"""A store that is imported again while it is served: each answer is wholly of the old graph, or wholly of the new."""

from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from mcp import Client

from calls import reply_of
from kg_adapters.index.build.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.reloading import ReloadingAdapter
from kg_adapters.local.store import open_store
from kg_adapters.registry import OpenOptions, open_graph
from kg_adapters.testing import ntriples
from kg_server.app import build_server
from kg_server.settings import Settings

OLD = (
    'hub label "old hub"@en',
    *(f"old{number:03} belongs hub" for number in range(60)),
    *(f'old{number:03} label "old {number}"@en' for number in range(60)),
)
NEW = tuple(statement.replace("old", "new") for statement in OLD)
HUB = "http://example.org/hub"
CALLS: Mapping[str, dict[str, object]] = {
    "Retrieve": {"text": "hub"},
    "GetNeighbor": {"entity": HUB, "direction": "in", "limit": 20},
    "Schema": {},
    "Feature": {"entity": HUB},
    "observe": {"question": "What belongs to it?", "entities": [HUB], "hops": 2},
    "Sparql": {
        "query": f"SELECT ?s ?l {{ ?s ?p <{HUB}> . ?s <http://www.w3.org/2000/01/rdf-schema#label> ?l }} LIMIT 20"
    },
}
IMPORTS: Final = 2
MOST_CALLS: Final = 400


def write(folder: Path, statements: tuple[str, ...]) -> Path:
    source = folder / f"{statements[-1][:3]}.nt"
    source.write_text(ntriples(statements), encoding="utf-8")
    return source


def lexical(folder: Path) -> Settings:
    return Settings(embedder="lexical", cache_folder=folder / "cache", data_folder=folder / "data")


async def said(client: Client, tool: str) -> tuple[bool, str]:
    reply = reply_of(await client.call_tool(tool, CALLS[tool]))
    return reply.is_error, reply.text


async def all_said(client: Client) -> dict[str, tuple[bool, str]]:
    return {tool: await said(client, tool) for tool in CALLS}


async def test_calls_in_flight_are_answered_by_one_of_the_two_graphs(tmp_path: Path) -> None:
    sources = write(tmp_path, OLD), write(tmp_path, NEW)
    known: dict[str, set[tuple[bool, str]]] = {tool: set() for tool in CALLS}
    target, options = tmp_path / "store", ImportOptions(name="graph")
    for source in sources[::-1]:
        build_store([source], target, options)
        async with (
            aclosing(ReloadingAdapter(open_store(target))) as graph,
            Client(build_server(graph, lexical(tmp_path))) as client,
        ):
            for tool, answer in (await all_said(client)).items():
                assert not answer[0], answer
                known[tool].add(answer)
    assert {len(answers) for answers in known.values()} == {2}
    found: list[tuple[str, tuple[bool, str]]] = []
    done = anyio.Event()

    async def ask(client: Client, tool: str) -> None:
        for _ in range(MOST_CALLS):
            found.append((tool, await said(client, tool)))
            if done.is_set():
                return

    async with (
        aclosing(ReloadingAdapter(open_store(target))) as graph,
        Client(build_server(graph, lexical(tmp_path))) as client,
    ):
        async with anyio.create_task_group() as tasks:
            for tool in CALLS:
                tasks.start_soon(ask, client, tool)
            for number in range(IMPORTS):
                again = partial(build_store, [sources[(number + 1) % 2]], target, options)
                await anyio.to_thread.run_sync(again)
            done.set()
        last = await all_said(client)
    assert [(tool, answer) for tool, answer in found if answer not in known[tool]] == []
    assert len({text for tool, (_, text) in found if tool == "Retrieve"}) == 2
    assert [tool for tool, (is_error, text) in last.items() if is_error or "old" not in text] == []


async def test_a_cached_file_that_another_process_imports_again_is_followed(tmp_path: Path) -> None:
    source = write(tmp_path, OLD)
    options = OpenOptions(cache_folder=tmp_path / "cache")
    async with (
        aclosing(await open_graph(str(source), options)) as graph,
        Client(build_server(graph, lexical(tmp_path))) as client,
    ):
        before = await all_said(client)
        source.write_text(ntriples(NEW), encoding="utf-8")
        assert await all_said(client) == before
        # As another process does that is asked to serve the same file.
        other = await open_graph(str(source), options)
        await other.aclose()
        after = await all_said(client)
    assert [tool for tool, (is_error, text) in after.items() if is_error or "new" not in text] == []
