"""Imports that are killed, or repeated while a server reads the store."""

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import pytest
from mcp import Client

from calls import reply_of, unhurried
from embedders import LEXICAL
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.reloading import ReloadingAdapter
from kg_adapters.local.store import open_store
from kg_adapters.registry import OpenOptions, open_graph
from kg_adapters.testing import ntriples
from kg_server.app import build_server
from kg_server.settings import Settings

MOMENTS = 20

# The processes that are killed are copies of one that has loaded everything, which takes most of the time of an import,
# but has opened no Oxigraph, whose threads no copy would have.
KILLED_IMPORTS = """
import json, os, random, shutil, signal, sys
from pathlib import Path
from kg_adapters.importing.build import build_store
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.sparql.store import statements
from kg_adapters.local.store import open_store
from kg_adapters.local.store import verify_store

TOUCHING = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree", "shutil.copyfile"}
folder, update, moments = Path(sys.argv[1]), sys.argv[2] == "update", int(sys.argv[3])
old, new, kept, store = (folder / name for name in ("old.ttl", "new.ttl", "kept", "work/store"))

def build(source, target, update=False, moment=0):
    touched = 0
    def look(event, arguments):
        nonlocal touched
        if event in TOUCHING and str(folder / "work") in str(arguments):
            touched += 1
            if touched == moment:
                os.kill(os.getpid(), signal.SIGKILL)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        sys.addaudithook(look)
        build_store([source], target, ImportOptions(), update=update)
        os.write(writing, str(touched).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return int(said or 0), os.waitpid(child, 0)[1]

def start_again():
    shutil.rmtree(store.parent, ignore_errors=True)
    store.parent.mkdir()
    shutil.copytree(kept, store)

def content():
    verify_store(store)
    return sorted(statements(open_store(store).index))

build(old, kept)
start_again()
before = content()
touched, _ = build(new, store, update)
after = content()
found = []
for moment in sorted(random.Random(7).sample(range(1, touched + 1), moments)):
    start_again()
    _, status = build(new, store, update, moment)
    left = content()
    build(new, store, update)
    rubbish = [path.name for path in store.parent.iterdir() if path != store and path.suffix != ".lock"]
    found.append({"killed": status == signal.SIGKILL, "whole": left in (before, after),
                  "then": content() == after, "rubbish": rubbish})
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("way", ["import", "update"])
def test_a_store_survives_a_kill_at_any_moment(tmp_path: Path, way: str) -> None:
    head = "@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
    (tmp_path / "old.ttl").write_text(head + 'ex:a rdfs:label "A" ; ex:p (ex:b ex:c) .', encoding="utf-8")
    (tmp_path / "new.ttl").write_text(head + 'ex:d rdfs:label "D" ; ex:p ex:a .', encoding="utf-8")
    words = [sys.executable, "-c", KILLED_IMPORTS, str(tmp_path), way, str(MOMENTS // 2)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    assert found == [{"killed": True, "whole": True, "then": True, "rubbish": []}] * (MOMENTS // 2)


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
    return unhurried(embedding=LEXICAL, cache_folder=folder / "cache", data_folder=folder / "data")


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
