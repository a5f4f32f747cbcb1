import base64
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import TextResourceContents

from cli_runs import COMMAND, CommandLine, write_graph
from kg_adapters.errors import InvalidRequest
from kg_server.commands.addresses import parse_address
from patience import PATIENCE_S
from server_processes import started

ROOT = Path(__file__).parents[3]

HELLO: dict[str, object] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
LIST_TOOLS: dict[str, object] = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}

LISTEN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "subscriptions/listen",
    "params": {
        "notifications": {"toolsListChanged": True},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}
LISTENS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "subscriptions/listen",
}

pytestmark = pytest.mark.usefixtures("heard_interrupts")


@contextmanager
def serving_http(folder: Path) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Start a server over HTTP on a free port of loopback; give the process and its address."""
    words = ["serve", str(write_graph(folder)), "--http", "127.0.0.1:0", "--cache-folder", str(folder / "cache")]
    words += ["--timeout-s", str(PATIENCE_S)]
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, _address(process)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server over HTTP that these tests share."""
    with serving_http(tmp_path_factory.mktemp("served")) as (_, address):
        yield address


@pytest.fixture
def spoken(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A server over stdio that logs all it can."""
    words = ["serve", str(write_graph(tmp_path)), "--cache-folder", str(tmp_path / "cache"), "--log-level", "debug"]
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, *words], stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1) as process:
        try:
            yield process
        finally:
            process.kill()


def say(process: subprocess.Popen[str], message: dict[str, object]) -> str:
    """Send one message and return the next line of the answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{json.dumps(message)}\n")
    return process.stdout.readline()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("Serving "):
            return line.split()[-1]
    raise AssertionError("the server ended before it served")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_gets_an_answer_over_stdio_in_both_eras(tmp_path: Path, mode: str) -> None:
    words = ["-m", "kg_server", "serve", str(write_graph(tmp_path)), "--cache-folder", str(tmp_path / "cache")]
    words += ["--timeout-s", str(PATIENCE_S)]
    async with Client(StdioServerParameters(command=sys.executable, args=words), mode=mode) as client:
        result = await client.call_tool("GetNeighbor", {"entity": "Q17"})
    assert result.structured_content is not None
    assert result.structured_content["triples"] == [["Q17", "P36", "Q1490"]]


def test_nothing_but_protocol_messages_is_on_standard_output(spoken: subprocess.Popen[str]) -> None:
    answers = [json.loads(say(spoken, message)) for message in (HELLO, LIST_TOOLS)]
    rest, log = spoken.communicate()
    assert ([answer["id"] for answer in answers], rest, spoken.returncode) == ([1, 2], "", 0)
    assert "Reading" in log


def test_ctrl_c_ends_a_server_that_waits_for_input_at_once(spoken: subprocess.Popen[str]) -> None:
    say(spoken, HELLO)
    spoken.send_signal(signal.SIGINT)
    # A shell shows the end by this signal as 130.
    assert spoken.wait() == -signal.SIGINT


async def test_a_client_gets_an_answer_over_http(address: str) -> None:
    async with Client(address) as client:
        result = await client.call_tool("Degree", {"entity": "Q17"})
    assert not result.is_error


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "127.0.0.1:80@evil.example"}, 421),
        ({"host": "evil.example"}, 421),
        ({"origin": "http://127.0.0.1:80.evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
    ],
)
def test_the_server_answers_this_machine_alone(address: str, headers: dict[str, str], status: int) -> None:
    accepted = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    answer = httpx2.post(address, json=LIST_TOOLS, headers={**accepted, **headers}, timeout=PATIENCE_S)
    assert answer.status_code == status


def test_ctrl_c_ends_a_server_quietly_with_130(tmp_path: Path) -> None:
    with serving_http(tmp_path) as (process, _):
        process.send_signal(signal.SIGINT)
        assert (process.wait(), *process.communicate()) == (130, "", "")


def test_a_server_that_stops_ends_the_streams_of_clients_that_listen_for_changes(tmp_path: Path) -> None:
    with serving_http(tmp_path) as (process, address), httpx2.Client(timeout=PATIENCE_S) as client:
        with client.stream("POST", address, json=LISTEN, headers=LISTENS) as answer:
            frames = answer.iter_text()
            assert "notifications/subscriptions/acknowledged" in next(frames)
            process.send_signal(signal.SIGTERM)
            assert '"result"' in "".join(frames)
        assert process.wait() == -signal.SIGTERM


def homeless(temporary: Path) -> dict[str, str]:
    """Return an environment whose home cannot be written, with a folder for what is temporary."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "KG_SEXTANT_"))}
    return {**kept, "HOME": "/proc/nowhere", "TMPDIR": str(temporary)}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_without_a_writable_home_a_command_leaves_nothing_behind(tmp_path: Path) -> None:
    words = [*COMMAND, "call", "Degree", "entity=Q30"]
    run = subprocess.run(words, env=homeless(tmp_path), capture_output=True, text=True, check=False)
    assert (run.returncode, "cannot be written" in run.stderr, list(tmp_path.iterdir())) == (0, True, [])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
@pytest.mark.parametrize(
    ("options", "sent", "code"),
    [([], signal.SIGTERM, -signal.SIGTERM), (["--http", "127.0.0.1:0"], signal.SIGINT, 130)],
    ids=["stdio", "http"],
)
def test_without_a_writable_home_a_server_leaves_nothing_behind(
    tmp_path: Path, options: list[str], sent: signal.Signals, code: int
) -> None:
    words = [*COMMAND, "serve", "sample", *options]
    pipe, environ = subprocess.PIPE, homeless(tmp_path)
    with subprocess.Popen(words, env=environ, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1) as process:
        _address(process) if options else say(process, HELLO)
        assert len(list(tmp_path.glob("kg-sextant-*"))) == 1
        process.send_signal(sent)
        assert process.wait() == code
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "[::]"])  # noqa: S104 - to be refused
def test_other_machines_are_not_served_without_a_login_unless_that_is_asked_for(cli: CommandLine, host: str) -> None:
    run = cli.run("serve", "--http", f"{host}:8000")
    assert (run.code, run.out) == (2, "")
    assert "other machines can reach this server by the host of --http." in run.err
    assert all(each in run.err for each in ("kg-sextant token add NAME", "hosting.issuer", "--insecure"))


def test_a_server_reports_at_its_start_that_the_database_of_memories_is_gone(tmp_path: Path) -> None:
    environ = {"KG_SEXTANT_MEMORY__DATABASE": "postgresql://127.0.0.1:1/memories"}
    with started(environ, str(write_graph(tmp_path)), "--cache-folder", str(tmp_path / "cache")) as process:
        assert process.stderr is not None
        before = list(takewhile(lambda line: not line.startswith("Serving "), process.stderr))
    assert "cannot be reached: memory store" in "".join(before)


def test_anybody_may_ask_whether_a_server_is_ready_and_for_its_card_by_any_name(address: str) -> None:
    headers, root = {"host": "10.0.0.7", "origin": "https://elsewhere.example"}, address.removesuffix("/mcp")
    answers = [httpx2.get(f"{root}/{page}", headers=headers, timeout=PATIENCE_S) for page in ("healthz", "readyz")]
    assert [answer.text for answer in answers] == ["ok\n", "ready\n"]
    card = httpx2.get(f"{address}/server-card", headers=headers, timeout=PATIENCE_S)
    assert card.headers["content-type"] == "application/mcp-server-card+json"
    assert card.headers["access-control-allow-origin"] == "*"
    assert "japan" not in card.text
    again = httpx2.get(f"{address}/server-card", headers={"if-none-match": card.headers["etag"]}, timeout=PATIENCE_S)
    assert (again.status_code, httpx2.options(f"{address}/server-card", headers=headers).status_code) == (304, 204)


def test_the_page_that_draws_the_graph_may_run_its_own_script_alone(address: str) -> None:
    root = address.removesuffix("mcp")
    page = httpx2.get(root, timeout=PATIENCE_S)
    policy = page.headers["content-security-policy"]
    [script] = re.findall("<script>(.+?)</script>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'; " in policy
    assert {"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
    assert not re.search("unsafe|http", policy)
    again = httpx2.get(root, headers={"if-none-match": page.headers["etag"]}, timeout=PATIENCE_S)
    assert (again.status_code, httpx2.post(root, timeout=PATIENCE_S).status_code) == (304, 404)
    assert httpx2.get(f"{root}client.json", timeout=PATIENCE_S).status_code == 404


@contextmanager
def exploring(folder: Path, record: Path) -> Generator[str]:
    """Explore the record of a run; give the address that the browser is to open."""
    opened, browser = folder / "opened", folder / "browser"
    os.mkfifo(opened)
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n', encoding="utf-8")
    browser.chmod(0o700)
    words = [*COMMAND, "explore", "--trace", str(record)]
    environ = {**os.environ, "BROWSER": f"{browser} %s", "KG_SEXTANT_CACHE_FOLDER": str(folder)}
    with subprocess.Popen(words, env=environ, stderr=subprocess.DEVNULL) as process:
        try:
            yield opened.read_text(encoding="utf-8").strip()
        finally:
            process.kill()


async def test_explore_opens_the_page_of_a_recorded_run_in_the_browser(tmp_path: Path) -> None:
    record = ROOT / "docs" / "examples" / "goethe.jsonl"
    with exploring(tmp_path, record) as url:
        root, _, place = url.partition("#")
        assert place == "trace=kg-trace%3A%2F%2Frun"
        async with Client(f"{root}mcp") as client:
            [content] = (await client.read_resource("kg-trace://run")).contents
            found = await client.call_tool("Retrieve", {"text": "Goethe"})
    assert isinstance(content, TextResourceContents)
    assert content.text == record.read_text(encoding="utf-8")
    assert "Q5879" in str(found.structured_content)


@pytest.mark.parametrize(
    ("content", "reason"), [('{"kind": "tool"}', "this is not a line of a trace."), (None, "cannot be read")]
)
def test_explore_refuses_what_is_no_record_of_a_run(
    cli: CommandLine, tmp_path: Path, content: str | None, reason: str
) -> None:
    path = tmp_path / "run.jsonl"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    run = cli.run("explore", "--trace", str(path), "--no-browser")
    assert (run.code, run.out) == (2, "")
    assert reason in run.err


@pytest.mark.parametrize("options", [["--http"], ["--http", "0", "--metrics"]])
def test_a_port_that_is_taken_ends_with_2(cli: CommandLine, address: str, options: list[str]) -> None:
    port = address.removesuffix("/mcp").rpartition(":")[2]
    run = cli.run("serve", *options, port)
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith(f"kg-sextant: Cannot listen on 127.0.0.1 port {port}: Address already in use.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("localhost", ("localhost", 8_000)),
        (":80", ("127.0.0.1", 80)),
        ("80", ("127.0.0.1", 80)),
        ("[::1]:80", ("::1", 80)),
        ("[::1]", ("::1", 8_000)),
    ],
)
def test_an_address_may_leave_out_host_or_port(text: str, expected: tuple[str, int]) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize("text", ["", "localhost:http", "http://localhost:80/", "localhost:70000"])
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"--http takes HOST:PORT"):
        parse_address(text)
