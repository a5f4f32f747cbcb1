"""Malformed messages and pressure over HTTP and stdio: the server answers or refuses, and stays up."""

import json
import os
import select
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from pydantic import BaseModel, TypeAdapter

from cli_runs import write_graph
from patience import PATIENCE_S
from server_processes import NONSENSE, Spoken, address_of, request, spoken_to, started

CALL = request(8, "tools/call", name="Degree", arguments={"entity": "Q1490"})

HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}

MODERN = {**HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": "ping"}


class Problem(BaseModel):
    code: int
    message: str


class Refusal(BaseModel):
    id: int | str | None
    error: Problem


_REFUSAL = TypeAdapter(Refusal)


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spoken]:
    with spoken_to(tmp_path_factory.mktemp("stdio")) as process:
        yield process


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("http")
    with started({}, str(write_graph(folder)), "--cache-folder", str(folder / "cache")) as process:
        yield address_of(process)


def test_over_stdio_each_is_refused_under_its_own_id_and_the_next_call_answered(spoken: Spoken) -> None:
    refusals: list[Refusal] = []
    for nonsense in NONSENSE:
        spoken.say(nonsense.text)
        refusals.append(_REFUSAL.validate_python(spoken.hear()))
    assert_as_expected(refusals)
    spoken.say(CALL)
    assert "has 1 distinct neighbour" in str(spoken.hear())


@pytest.mark.parametrize("headers", [HEADERS, MODERN], ids=["with a handshake", "without"])
def test_over_http_each_is_refused_under_its_own_id_and_the_next_call_answered(
    address: str, headers: dict[str, str]
) -> None:
    refusals: list[Refusal] = []
    with httpx2.Client(headers=headers) as client:
        for nonsense in NONSENSE:
            response = client.post(address, content=nonsense.text)
            assert response.status_code == 400
            refusals.append(_REFUSAL.validate_json(response.text))
    assert_as_expected(refusals)
    assert "has 1 distinct neighbour" in httpx2.post(address, content=CALL, headers=HEADERS).text


def assert_as_expected(refusals: list[Refusal]) -> None:
    expected = [(nonsense.name, nonsense.id, nonsense.code) for nonsense in NONSENSE]
    assert [
        (nonsense.name, refusal.id, refusal.error.code) for nonsense, refusal in zip(NONSENSE, refusals, strict=True)
    ] == expected
    for refusal in refusals:
        assert len(refusal.error.message) <= 200
        assert "http" not in refusal.error.message
        assert "pydantic" not in refusal.error.message


HOST = b"host: localhost\r\n"

JSON = b"content-type: application/json\r\naccept: application/json, text/event-stream\r\n"

HTTP_NONSENSE = (
    b"\r\n\r\n\r\n",
    b"\x00" * 100,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a handshake of TLS
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.0\r\n",
    b"GET\r\n\r\n",
    b"GET /mcp\r\n\r\n",
    b"GET /mcp HTTP/9.9\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\n\r\n",
    b"GET /%s HTTP/1.1\r\n%s\r\n" % (b"a" * 100_000, HOST),
    b"GET /%%00%%ff/../../etc/passwd HTTP/1.1\r\n%s\r\n" % HOST,
    b"GET http://example.org/mcp HTTP/1.1\r\n%s\r\n" % HOST,
    b"BREW /mcp HTTP/1.1\r\n%s\r\n" % HOST,
    b"CONNECT example.org:80 HTTP/1.1\r\n%s\r\n" % HOST,
    b"OPTIONS * HTTP/1.1\r\n%s\r\n" % HOST,
    b"POST /mcp HTTP/1.1\r\n%s%scontent-length: -1\r\n\r\n" % (HOST, JSON),
    b"POST /mcp HTTP/1.1\r\n%s%scontent-length: 1e3\r\n\r\n" % (HOST, JSON),
    b"POST /mcp HTTP/1.1\r\n%s%scontent-length: %s\r\n\r\n" % (HOST, JSON, b"9" * 5_000),
    b"POST /mcp HTTP/1.1\r\n%s%scontent-length: 1\r\ncontent-length: 2\r\n\r\n{}" % (HOST, JSON),
    b"POST /mcp HTTP/1.1\r\n%s%stransfer-encoding: chunked\r\n\r\nzz\r\n" % (HOST, JSON),
    b"POST /mcp HTTP/1.1\r\n%s%stransfer-encoding: chunked\r\n\r\n%s\r\n" % (HOST, JSON, b"f" * 100),
    b"POST /mcp HTTP/1.1\r\n%s%stransfer-encoding: chunked\r\n\r\n1;%s\r\n" % (HOST, JSON, b"e" * 100_000),
    b"POST /mcp HTTP/1.1\r\n%s%stransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n" % (HOST, JSON),
    b"POST /mcp HTTP/1.1\r\n%s%scontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n\x1f\x8b" % (HOST, JSON),
    b"POST /mcp HTTP/1.1\r\n%s%sexpect: 100-continue\r\ncontent-length: 999999999\r\n\r\n" % (HOST, JSON),
    b"POST /mcp HTTP/1.1\r\n%scontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{}" % HOST,
    b"POST /mcp HTTP/1.1\r\n%s%smcp-protocol-version: \xff\r\ncontent-length: 2\r\n\r\n{}" % (HOST, JSON),
    b"POST /mcp HTTP/1.1\r\n%s%supgrade: websocket\r\nconnection: upgrade\r\ncontent-length: 2\r\n\r\n{}"
    % (HOST, JSON),
    b"POST /mcp HTTP/1.1\r\n%s%s%scontent-length: 2\r\n\r\n{}" % (HOST, JSON, b"x: y\r\n" * 20_000),
    b"POST /mcp HTTP/1.1\r\nhost: example.org\r\n%scontent-length: 2\r\n\r\n{}" % JSON,
    b"POST /mcp HTTP/1.1\r\nhost:\r\nhost: localhost\r\n%scontent-length: 2\r\n\r\n{}" % JSON,
    b"POST /mcp HTTP/1.1\r\n%s%s : no name\r\n\r\n" % (HOST, JSON),
    b"DELETE /mcp HTTP/1.1\r\n%s\r\n" % HOST,
    b"PUT /mcp HTTP/1.1\r\n%scontent-length: 2\r\n\r\n{}" % HOST,
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    words = [str(write_graph(tmp_path)), "--cache-folder", str(tmp_path / "cache")]
    with started({}, *words) as process:
        yield process


def log_of(server: subprocess.Popen[str]) -> str:
    """End a server, and return the rest of its log."""
    server.terminate()
    return server.communicate()[1]


def connected(address: str) -> socket.socket:
    port = urlsplit(address).port
    assert port is not None
    return socket.create_connection(("127.0.0.1", port))


def cut_off(connection: socket.socket) -> None:
    """Leave without a farewell, as a process that is killed does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def answers_a_call(address: str) -> bool:
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    return "has 1 distinct neighbour" in httpx2.post(address, content=CALL, headers=headers, timeout=PATIENCE_S).text


def test_nonsense_is_refused_or_cut_off_and_leaves_no_traceback(server: subprocess.Popen[str]) -> None:
    address = address_of(server)
    statuses: list[bytes] = []
    for nonsense in HTTP_NONSENSE:
        with connected(address) as connection:
            connection.settimeout(0.5)  # what may be the beginning of a request gets no answer
            try:
                connection.sendall(nonsense)
                statuses.append(connection.recv(65_536)[9:10])
            except (ConnectionError, TimeoutError):
                statuses.append(b"")
    assert set(statuses) <= {b"4", b""}
    assert statuses.count(b"4") > len(HTTP_NONSENSE) / 2
    assert answers_a_call(address)
    log = log_of(server)
    assert "Traceback" not in log
    assert len(log) < 200 * len(HTTP_NONSENSE)


def test_clients_that_vanish_leave_no_traceback(server: subprocess.Popen[str]) -> None:
    address = address_of(server)
    whole = b"POST /mcp HTTP/1.1\r\n%s%scontent-length: %d\r\n\r\n%s" % (HOST, JSON, len(CALL), CALL)
    for length in (*range(0, len(whole), 7), len(whole)):
        for leave in (socket.socket.close, cut_off):
            connection = connected(address)
            connection.sendall(whole[:length])
            leave(connection)
    assert answers_a_call(address)
    log = log_of(server)
    assert "Traceback" not in log
    assert log.count("\n") < 10


REQUESTS = 6_000

STOPPED_S = 1.0
"""After how many seconds without taking anything a server has stopped reading."""

LONG_S = 60


def test_a_client_that_does_not_read_answers_is_not_read_either(tmp_path: Path) -> None:
    lines = b"".join(request(number, "ping") + b"\n" for number in range(REQUESTS))
    with spoken_to(tmp_path) as spoken:
        sent = fill(spoken, lines)
        assert sent < len(lines)
        assert sorted(answers_while_sending(spoken, lines[sent:])) == list(range(REQUESTS))


def fill(spoken: Spoken, lines: bytes) -> int:
    """Send until the server takes no more, and return how many bytes it took."""
    os.set_blocking(spoken.stdin.fileno(), False)
    sent = 0
    while sent < len(lines) and select.select([], [spoken.stdin], [], STOPPED_S)[1]:
        sent += os.write(spoken.stdin.fileno(), lines[sent : sent + select.PIPE_BUF])
    return sent


def answers_while_sending(spoken: Spoken, rest: bytes) -> list[int]:
    """Send the rest, and return the ids of all answers."""
    received, out, into = bytearray(), spoken.stdout.fileno(), spoken.stdin.fileno()
    while received.count(b"\n") < REQUESTS:
        readable, writable, _ = select.select([out], [into] if rest else [], [])
        if writable:
            rest = rest[os.write(into, rest[: select.PIPE_BUF]) :]
        if readable:
            received += os.read(out, 65_536)
    return [json.loads(line)["id"] for line in received.splitlines()]


def test_a_client_that_does_not_read_the_log_gets_its_answers(tmp_path: Path) -> None:
    # Each of these is logged with its id; together they are more than a pipe and the server hold.
    logged = json.dumps({"jsonrpc": "2.0", "id": "x" * 900, "result": {}}).encode()
    with spoken_to(tmp_path, "--log-level", "debug") as spoken:
        for _ in range(2_600):
            spoken.say(logged)
        spoken.say(CALL)
        assert "has 1 distinct neighbour" in str(spoken.hear())
        log = spoken.process.communicate()[1]
    assert b"parts of the log were dropped here, because nothing read it." in log
    assert spoken.process.returncode == 0


def test_the_end_of_the_log_does_not_keep_a_server_alive(tmp_path: Path) -> None:
    # More than a pipe holds.
    logged = json.dumps({"jsonrpc": "2.0", "id": "x" * 900, "result": {}}).encode()
    with spoken_to(tmp_path, "--log-level", "debug") as spoken:
        for _ in range(100):
            spoken.say(logged)
        spoken.stdin.close()
        assert spoken.process.wait() == 0


def test_a_line_without_end_is_refused_once(tmp_path: Path) -> None:
    with spoken_to(tmp_path) as spoken:
        for _ in range(64):
            spoken.stdin.write(b"x" * 1_000_000)
        spoken.say(b"")
        assert "one message has at most 4,194,304 bytes" in str(spoken.hear())
        spoken.say(CALL)
        assert "has 1 distinct neighbour" in str(spoken.hear())
        assert peak_mb(spoken) < 400


def peak_mb(spoken: Spoken) -> float:
    """Return the most memory that a server had."""
    status = Path(f"/proc/{spoken.process.pid}/status")
    if not status.exists():
        pytest.skip("needs /proc")
    line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1_024


def test_what_was_asked_is_answered_after_standard_input_was_closed(tmp_path: Path) -> None:
    with spoken_to(tmp_path) as spoken:
        for number in range(50):
            spoken.say(request(number, "tools/call", name="GetNeighbor", arguments={"entity": "Q1490"}))
        answers = spoken.process.communicate()[0].splitlines()
        assert spoken.process.returncode == 0
    assert sorted(json.loads(line)["id"] for line in answers) == list(range(50))
    assert not any("error" in json.loads(line) for line in answers)


def test_a_client_that_leaves_during_a_long_query_ends_the_server_and_its_processes(tmp_path: Path) -> None:
    pairs = " . ".join(f"?a{number} ?b{number} ?c{number}" for number in range(14))
    query = f"SELECT (COUNT(*) AS ?n) {{ {pairs} }}"
    with spoken_to(tmp_path, "--timeout-s", "600") as spoken:
        spoken.say(request(1, "tools/call", name="Sparql", arguments={"query": query, "timeout_s": LONG_S}))
        workers = children_of(spoken)
        while not workers and not select.select([spoken.stdout], [], [], 0.05)[0]:
            workers = children_of(spoken)
        assert workers
        spoken.stdin.close()
        assert spoken.process.wait(timeout=LONG_S / 2) == 0
        while any(map(is_at_work, workers)):
            select.select([], [], [], 0.05)


def children_of(spoken: Spoken) -> list[str]:
    """Return the processes that a server has started."""
    listed = Path(f"/proc/{spoken.process.pid}/task/{spoken.process.pid}/children")
    if not listed.exists():
        pytest.skip("needs /proc")
    return listed.read_text(encoding="ascii").split()


def is_at_work(process: str) -> bool:
    """Say whether a process has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
