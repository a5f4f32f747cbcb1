"""A SPARQL 1.1 endpoint over Oxigraph on loopback, in a process of its own: `python oxigraph.py`.

Every request is answered in a process forked for it, which ends when the client hangs up or its time is over: a query
that never ends harms nobody. Graphs to load come by standard input: a line with the IRI and the length, then N-Triples.
"""

import json
import os
import select
import signal
import socketserver
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import parse_qs, urlsplit

import pyoxigraph as ox

_LONGEST_S: Final = 5.0
_STOP_S: Final = 10.0
_TYPES: Final = {False: "application/sparql-results+json", True: "application/n-triples"}


@dataclass(frozen=True, slots=True)
class OxigraphEndpoint:
    """A running endpoint: its URL, and its process."""

    url: str
    process: "subprocess.Popen[bytes]"

    def load(self, graph: str, triples: bytes) -> None:
        """Make the graph with this IRI hold exactly the N-Triples given."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([graph, len(triples)]).encode() + b"\n" + triples)
        self.process.stdin.flush()
        assert self.process.stdout.readline() == b"loaded\n"


@contextmanager
def running_oxigraph(folder: Path) -> Generator[OxigraphEndpoint]:
    """Start an endpoint without any graph in a folder, and end it when the block is left."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder) as process:  # noqa: S603 - our own module
        try:
            assert process.stdout is not None
            yield OxigraphEndpoint(f"http://127.0.0.1:{int(process.stdout.readline())}/sparql", process)
        finally:
            # The end of its input is the end of the engine.
            process.communicate(timeout=_STOP_S)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request of the SPARQL 1.1 protocol."""

    store: ClassVar[ox.Store]

    def do_GET(self) -> None:
        """Answer a query in the address or in the body."""
        fields = parse_qs(urlsplit(self.path).query)
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        if self.headers.get_content_type() == "application/x-www-form-urlencoded":
            fields |= parse_qs(body)
        elif body:
            fields["query"] = [body]
        threading.Thread(target=self._end_early, daemon=True).start()
        self._answer(*self._run(fields))

    do_POST = do_GET  # noqa: N815 - the name is the base class's

    def _run(self, fields: dict[str, list[str]]) -> tuple[int, str, bytes]:
        graphs: list[ox.NamedNode | ox.BlankNode | ox.DefaultGraph] = []
        graphs += [ox.NamedNode(iri) for iri in fields.get("default-graph-uri", [])]
        try:
            (query,) = fields.get("query", [])
            found = self.store.query(query, default_graph=graphs or None, use_default_graph_as_union=not graphs)
            if isinstance(found, ox.QueryTriples):
                content = found.serialize(format=ox.RdfFormat.N_TRIPLES)
            else:
                content = found.serialize(format=ox.QueryResultsFormat.JSON)
        except (SyntaxError, ValueError) as error:
            return 400, "text/plain", f"Parse error: {error}".encode()
        except (RuntimeError, OSError) as error:
            return 500, "text/plain", str(error).encode()
        return 200, _TYPES[isinstance(found, ox.QueryTriples)], content or b""

    def _answer(self, status: int, media_type: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _end_early(self) -> None:
        """End this process when the client hangs up, or after some seconds."""
        if not select.select([self.connection], [], [], _LONGEST_S)[0]:
            self._answer(503, "text/plain", b"The query took too long.")
        os._exit(1)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def main() -> None:
    """Answer on a free port, which is printed, until standard input ends."""
    # Forked processes leave no body behind.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _Handler.store = store = ox.Store()
    with socketserver.TCPServer(("127.0.0.1", 0), _Handler) as server:
        listener = server.socket
        listener.listen(128)
        print(listener.getsockname()[1], flush=True)
        while True:
            waiting: list[int] = [0, listener.fileno()]
            ready = select.select(waiting, [], [])[0]
            if 0 in ready:
                line = sys.stdin.buffer.readline()
                if not line:
                    return
                iri, length = json.loads(line)
                store.remove_graph(ox.NamedNode(iri))
                triples = sys.stdin.buffer.read(length)
                store.load(triples, ox.RdfFormat.N_TRIPLES, to_graph=ox.NamedNode(iri))
                print("loaded", flush=True)
            if listener.fileno() in ready:
                client, address = listener.accept()
                with client:
                    if os.fork() == 0:
                        with suppress(ConnectionError):
                            _Handler(client, address, server)
                        os._exit(0)


if __name__ == "__main__":
    main()
