"""A server imports no module in the thread of its event loop, which an import would block."""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from cli_runs import write_graph
from fault_endpoint import serving
from patience import PATIENCE_S
from remote_graphs import CITIES, answering_from
from server_processes import UNHURRIED, address_of

NOTED: Final = """
import asyncio, runpy, sys, threading

looked_up = open(sys.argv.pop(1), "w", buffering=1)

def note(event, arguments):
    in_main_thread = threading.get_ident() == threading.main_thread().ident
    if event == "import" and in_main_thread and asyncio._get_running_loop() is not None:
        print(arguments[0], file=looked_up)

sys.addaudithook(note)
runpy.run_module("kg_server", run_name="__main__")
"""
"""Runs the command line, and writes what is looked up in the event loop's thread into a file."""

WD: Final = "http://www.wikidata.org/"
TOKYO: Final = (f"{WD}entity/Q17", f"{WD}prop/direct/P36", f"{WD}entity/Q1490")
KYOTO: Final = ("http://example.org/kyoto", "http://example.org/country", "http://example.org/japan")
OTHER: Final = f"<{KYOTO[0]}> <http://www.w3.org/2002/07/owl#sameAs> <{WD}entity/Q34600> .\n"


def calls(fact: tuple[str, str, str]) -> Mapping[str, dict[str, object]]:
    entity, _, other = fact
    return {
        "observe": {"question": "Which city is the capital?", "entities": [entity]},
        "Retrieve": {"text": "city"},
        "GetNeighbor": {"entity": entity},
        "GetPath": {"source": entity, "target": other},
        "Feature": {"entity": entity},
        "Degree": {"entity": entity},
        "Schema": {},
        "Sparql": {"query": "SELECT ?x { ?x ?p ?o } LIMIT 1", "timeout_s": PATIENCE_S},
        "Compose": {"expression": f"Count[Neighbor[{entity}]]"},
        "memory-append": {"triples": [list(fact)]},
        "memory-read": {"memory": "mem_guessed"},
        "Recall": {"question": "Which city is the capital?"},
    }


async def use(client: Client, fact: tuple[str, str, str]) -> None:
    """Call every tool about a fact, read the resources and get the prompts."""
    asked = calls(fact)
    for tool in (await client.list_tools()).tools:
        reply = await client.call_tool(tool.name, asked[tool.name])
        assert reply.is_error == (tool.name == "memory-read"), reply
    await client.call_tool("Retrieve", {"text": "Kyotto", "type": "none"})
    for resource in (await client.list_resources()).resources:
        await client.read_resource(resource.uri)
    for prompt in (await client.list_prompts()).prompts:
        await client.get_prompt(prompt.name, {"question": "Which city is the capital?"})


class Noted:
    """A server whose imports in the event loop's thread are noted, with folders of its own."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._file = folder / "looked-up"
        self._command = [sys.executable, "-c", NOTED, str(self._file), "serve"]
        folders = {"KG_SEXTANT_CACHE_FOLDER": str(folder / "cache"), "KG_SEXTANT_DATA_FOLDER": str(folder / "data")}
        self._environ = {**os.environ, **UNHURRIED, **folders, **environ}

    @property
    def looked_up(self) -> list[str]:
        return self._file.read_text(encoding="utf-8").splitlines()

    @asynccontextmanager
    async def over_stdio(self, *words: str) -> AsyncGenerator[Client]:
        program, *rest = [*self._command, *words]
        async with Client(stdio_client(StdioServerParameters(command=program, args=rest, env=self._environ))) as client:
            yield client

    @contextmanager
    def over_http(self, *words: str) -> Generator[str]:
        """Serve until the end of the block; gives the address."""
        command = [*self._command, *words, "--http", "127.0.0.1:0"]
        with subprocess.Popen(command, env=self._environ, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield address_of(process)
            finally:
                process.kill()


@pytest.fixture
def noted(tmp_path: Path) -> Noted:
    more = {
        "KG_SEXTANT_LEARN": "true",
        "KG_SEXTANT_HOSTING__AUDIT": "text",
        "KG_SEXTANT_EMBEDDING__EMBEDDER": "lexical",
    }
    return Noted(tmp_path, more)


async def test_over_stdio_none_is_imported_at_the_start_nor_by_a_call_of_each_tool(tmp_path: Path) -> None:
    server = Noted(tmp_path, {})
    async with server.over_stdio(str(write_graph(tmp_path))) as client:
        await use(client, TOKYO)
    assert server.looked_up == []


async def test_nor_for_graphs_side_by_side_an_audit_log_and_learning(tmp_path: Path, noted: Noted) -> None:
    (tmp_path / "other.nt").write_text(OTHER, encoding="utf-8")
    async with noted.over_stdio(f"japan={write_graph(tmp_path)}", f"other={tmp_path / 'other.nt'}") as client:
        await use(client, TOKYO)
    assert noted.looked_up == []


async def test_nor_over_an_endpoint(noted: Noted) -> None:
    async with serving(answering_from(CITIES)) as endpoint, noted.over_stdio(endpoint.url) as client:
        await use(client, KYOTO)
    assert noted.looked_up == []


async def test_nor_over_http(tmp_path: Path, noted: Noted) -> None:
    with noted.over_http(str(write_graph(tmp_path))) as address:
        async with Client(address) as client:
            await use(client, TOKYO)
    assert noted.looked_up == []
