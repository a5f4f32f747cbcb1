"""A process that holds RDF graphs and answers SPARQL about them: `python oxigraph_process.py SOCKET`.

Every query runs in a process forked for it, which ends when the asker hangs up or its time is over: a query that never
ends harms nobody. An order is a line of JSON; its answer is JSON up to the end of the connection.
"""

import json
import os
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Self

import pyoxigraph as ox

JSON_RESULTS = "application/sparql-results+json"
NTRIPLES = "application/n-triples"
READY = b"ready\n"
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked of the engine: to load `text` as the graph with the IRI `graph`, or to run it as a query.

    Without `defaults`, patterns outside GRAPH match every graph; without `named`, GRAPH does.
    """

    text: str
    graph: str | None = None
    defaults: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    timeout_s: float = 5.0

    def line(self) -> bytes:
        """Return it as it is sent."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Self:
        """Return what was sent."""
        return cls(**json.loads(line))


@dataclass(frozen=True, slots=True)
class Answer:
    """What the engine says, as HTTP would."""

    status: int
    media_type: str
    body: str

    def line(self) -> bytes:
        """Return it as it is sent."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, line: bytes) -> Self:
        """Return what was sent."""
        return cls(**json.loads(line))


def run(store: ox.Store, order: Order) -> Answer:
    """Run a query."""
    try:
        found = store.query(
            order.text,
            default_graph=[ox.NamedNode(iri) for iri in order.defaults] or None,
            named_graphs=[ox.NamedNode(iri) for iri in order.named] or None,
            use_default_graph_as_union=not order.defaults,
        )
        if isinstance(found, ox.QueryTriples):
            return Answer(200, NTRIPLES, (found.serialize(format=ox.RdfFormat.N_TRIPLES) or b"").decode())
        return Answer(200, JSON_RESULTS, (found.serialize(format=ox.QueryResultsFormat.JSON) or b"").decode())
    except SyntaxError as error:
        return Answer(400, "text/plain", f"Parse error: {error}")
    except (RuntimeError, ValueError, OSError) as error:
        return Answer(500, "text/plain", str(error))


def load(store: ox.Store, iri: str, triples: str) -> Answer:
    """Make a graph hold exactly the N-Triples given."""
    graph = ox.NamedNode(iri)
    store.remove_graph(graph)
    store.load(triples, ox.RdfFormat.N_TRIPLES, to_graph=graph)
    return Answer(204, "text/plain", "")


def main(path: str) -> None:
    """Answer at a socket of the file system until standard input ends."""
    # Forked processes leave no body behind.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    store = ox.Store()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(128)
        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()
        while sys.stdin not in select.select([sys.stdin, listener], [], [])[0]:
            asker, _ = listener.accept()
            with asker, suppress(ConnectionError):
                _serve(store, asker)


def _serve(store: ox.Store, asker: socket.socket) -> None:
    order = Order.read(_heard(asker))
    if order.graph is not None:
        asker.sendall(load(store, order.graph, order.text).line())
    elif os.fork() == 0:
        threading.Thread(target=_end_in_time, args=(asker, order.timeout_s), daemon=True).start()
        with suppress(ConnectionError):
            asker.sendall(run(store, order).line())
        os._exit(0)


def _heard(asker: socket.socket) -> bytes:
    """Return what is said up to a line feed, which JSON does not hold."""
    heard = bytearray()
    while not heard.endswith(b"\n"):
        part = asker.recv(_CHUNK)
        if not part:
            raise ConnectionError("the asker has hung up")
        heard += part
    return bytes(heard)


def _end_in_time(asker: socket.socket, timeout_s: float) -> None:
    """End this process when the asker hangs up, or after so many seconds."""
    asker.settimeout(timeout_s)
    with suppress(OSError):
        asker.recv(1)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
