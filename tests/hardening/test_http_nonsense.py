"""Whatever comes over HTTP, the server goes on, and its log stays short."""

import resource
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from cli_runs import write_graph
from server_processes import address_of, started
from stdio_processes import request

HOST = b"host: localhost\r\n"
JSON = b"content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
CALL = request(8, "tools/call", name="Degree", arguments={"entity": "Q1490"})
NONSENSE = (
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
    with started({"KG_SEXTANT_HTTP_HEADERS_S": "0.5", "KG_SEXTANT_HTTP_BODY_S": "0.5"}, *words) as process:
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
    return "has 1 distinct neighbour" in httpx2.post(address, content=CALL, headers=headers, timeout=60).text


def test_nonsense_is_refused_or_cut_off_and_leaves_no_traceback(server: subprocess.Popen[str]) -> None:
    address = address_of(server)
    statuses: list[bytes] = []
    for nonsense in NONSENSE:
        with connected(address) as connection:
            try:
                connection.sendall(nonsense)
                statuses.append(connection.recv(65_536)[9:10])
            except ConnectionError:
                statuses.append(b"")
    assert set(statuses) <= {b"4", b""}
    assert statuses.count(b"4") > len(NONSENSE) / 2
    assert answers_a_call(address)
    log = log_of(server)
    assert "Traceback" not in log
    assert len(log) < 200 * len(NONSENSE)


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


def test_exhausted_descriptors_are_told_in_a_line_and_overcome(server: subprocess.Popen[str]) -> None:
    address = address_of(server)
    assert answers_a_call(address)
    used = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (used + 10, used + 10))
    clients = [connected(address) for _ in range(60)]
    assert server.stderr is not None
    told = next(line for line in server.stderr if "No connection can be taken until others end" in line)
    assert "Too many open files" in told
    for client in clients:
        client.close()
    assert answers_a_call(address)
    assert len(log_of(server)) < 10_000


def test_slow_clients_lock_nobody_out(tmp_path: Path) -> None:
    words = [str(write_graph(tmp_path)), "--cache-folder", str(tmp_path / "cache")]
    limits = {"KG_SEXTANT_HTTP_MAX_CONNECTIONS": "5", "KG_SEXTANT_HTTP_HEADERS_S": "0.5"}
    with started(limits, *words) as server:
        address = address_of(server)
        slow = [connected(address) for _ in range(5)]
        assert answers_a_call(address)
        replies: list[bytes] = []
        for client in slow:
            replies.append(client.recv(1_000)[:12])
            client.close()
        assert replies == [b"", *[b"HTTP/1.1 408"] * 4]
        assert answers_a_call(address)
