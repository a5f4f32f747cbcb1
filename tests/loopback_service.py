"""A web service on loopback that answers GET and POST requests, in threads of its own."""

import json
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Reply:
    """What a service answers: a body, sent as it is or as JSON, with a status and more headers."""

    content: object
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@contextmanager
def answering(answer: Callable[[bytes, str | None], Reply]) -> Generator[str]:
    """Answer every request from its body, or its query, and its `Authorization`; gives the URL of the service."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(self.path.partition("?")[2].encode())

        def do_POST(self) -> None:
            self._reply(self.rfile.read(int(self.headers["Content-Length"])))

        def _reply(self, body: bytes) -> None:
            reply = answer(body, self.headers["Authorization"])
            content = reply.content if isinstance(reply.content, bytes) else json.dumps(reply.content).encode()
            self.send_response(reply.status)
            headers = {"Content-Type": "application/json", "Content-Length": str(len(content)), **reply.headers}
            for name, value in headers.items():
                self.send_header(name, value)
            with suppress(ConnectionError):  # a client may not wait for its answer
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
