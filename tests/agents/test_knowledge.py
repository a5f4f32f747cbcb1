"""A graph is connected to, read page by page, and lost with a sentence that says what happened."""

import os
import shlex
import signal
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from cli_runs import COMMAND
from fault_endpoint import serving, stalling
from kg_agents.tools.client import ToolError, connect_tools
from kg_agents.tools.knowledge import connect
from oda_runs import story, story_tools
from server_processes import address_of, started
from story_graphs import PREFIXES, TOKYO


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("false", "The server 'false' cannot be reached: "),
        ("no-such-command --at-all", "cannot be reached: "),
        ("http://127.0.0.1:9/mcp", "The server 'http://127.0.0.1:9/mcp' cannot be reached: "),
        (
            'kg-sextant "serve --token sesame',
            "The server 'kg-sextant …' is not a command line. Give a URL, or the command line of a server",
        ),
        ("", "The server '' is not a command line. Give a URL"),
        ("\0", "cannot be reached: embedded null byte"),
        ("ev\ud800il", "cannot be reached: "),
        ("HTTP://ann:hun@ter2@127.0.0.1:9/mcp?token=sesame", "The server 'HTTP://…@127.0.0.1:9/mcp?…' cannot be"),
        ("sleep 60", "The server 'sleep …' did not answer within 1 seconds. Give a URL"),
    ],
)
async def test_a_server_that_is_none_is_left_with_a_sentence(target: str, said: str) -> None:
    with pytest.raises(ToolError) as raised:
        async with connect_tools(target, connect_s=1.0 if "60" in target else 30.0):
            raise AssertionError("there is nothing to connect to")
    assert said in str(raised.value)


async def test_what_goes_wrong_in_a_block_comes_out_of_it_as_it_is(tmp_path: Path) -> None:
    group = ExceptionGroup("mine", [ValueError()])
    for failure in (KeyError("mine"), group, ToolError("mine"), SystemExit(3), KeyboardInterrupt()):
        with pytest.raises(type(failure)) as raised:
            async with story_tools(tmp_path, TOKYO):
                raise failure
        assert raised.value is failure


async def test_a_server_process_that_dies_fails_the_next_call(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    target = shlex.join(["sh", "-c", f"echo $$ > {shlex.quote(str(pid))}; exec {shlex.join(COMMAND)} serve sample"])
    async with connect(target) as graph:
        assert (await graph.retrieve("Goethe"))[0].id == "Q5879"
        os.kill(int(pid.read_text()), signal.SIGKILL)
        with pytest.raises(ToolError, match="Retrieve: Connection closed"):
            await graph.retrieve("Schiller")


async def test_a_server_on_the_web_that_dies_fails_the_next_call_and_the_block_goes_on(tmp_path: Path) -> None:
    environ = {"KG_SEXTANT_DATA_FOLDER": str(tmp_path), "KG_SEXTANT_CACHE_FOLDER": str(tmp_path)}
    with started(environ, "sample") as process:
        async with connect(await anyio.to_thread.run_sync(address_of, process)) as graph:
            assert (await graph.retrieve("Goethe"))[0].id == "Q5879"
            process.kill()
            process.wait()
            for _ in range(2):
                with pytest.raises(ToolError, match="Retrieve: "):
                    await graph.retrieve("Schiller")


async def test_a_call_that_waits_when_its_server_dies_fails_at_once(tmp_path: Path) -> None:
    async with serving(stalling) as endpoint:
        settings = {"KG_SEXTANT_GRAPH": endpoint.url, "KG_SEXTANT_TIMEOUT_S": "60"}
        folders = {"KG_SEXTANT_DATA_FOLDER": str(tmp_path), "KG_SEXTANT_CACHE_FOLDER": str(tmp_path)}
        with started({**settings, **folders}) as process:
            url = await anyio.to_thread.run_sync(address_of, process)
            async with connect(url) as graph, anyio.create_task_group() as tasks:
                before = len(endpoint.requests)

                async def kill() -> None:
                    await endpoint.until(lambda: len(endpoint.requests) > before)
                    process.kill()

                tasks.start_soon(kill)
                with pytest.raises(ToolError, match="GetNeighbor: "):
                    await graph.neighbors("<http://example.org/a>")


async def test_a_server_that_answers_in_a_form_of_its_own_fails_the_call(tmp_path: Path) -> None:
    speaker = tmp_path / "speaker.py"
    speaker.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if 'id' not in asked: continue\n"
        "    about = {'protocolVersion': '2025-06-18', 'capabilities': {}}\n"
        "    about['serverInfo'] = {'name': 's', 'version': '1'}\n"
        "    found = about if asked['method'] == 'initialize' else {'content': 5, 'tools': []}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': found}), flush=True)\n"
    )
    async with connect(shlex.join([sys.executable, str(speaker)])) as graph:
        with pytest.raises(ToolError, match="Retrieve: The server answered in a form that is not known"):
            await graph.retrieve("Goethe")


async def test_a_memory_of_several_pages_is_read_to_its_end(tmp_path: Path) -> None:
    links = "\n".join(
        f'wd:Q{n} rdfs:label "A rather long name, number {n}"@en ; wdt:P1 wd:Q{n + 1} .' for n in range(1, 121)
    )
    facts = [(f"Q{n}", "P1", f"Q{n + 1}") for n in range(1, 121)]
    async with story(tmp_path, f"{PREFIXES}\n{links}") as graph:
        memory = (await graph.remember(None, facts[:15])).memory
        for first in range(15, 120, 15):
            await graph.remember(memory, facts[first : first + 15])
        held = await graph.recall(memory)
    assert [fact for _, fact in held.facts] == facts
    assert (held.cursor, "Q120" in held.text.splitlines()[-1]) == ("", True)
