"""Runs the official conformance suite against the product's server, and against its class with all fixtures.

    PYTHONPATH=tests .venv/bin/python -m conformance.run

It needs npm, which fetches the suite and a Node that is new enough for it. The product may fail the scenarios that its
files of expected failures name, and has to; with the fixtures, every scored check has to pass. The suite has no
scenarios of authorization for servers. So it judges both sides that the tests of logins put the server between, the
authorization server and the client, and calls the product behind a login. The bundle for desktop assistants is
validated and packed by its publisher's tool.
"""

import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final

import httpx2
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from authorization_server import ClientRecord, authorizing, serving
from conformance import signing_in_client
from loopback_service import Authority

HERE: Final = Path(__file__).parent
NODE: Final = "node@22"
LIMIT_S: Final = 120
METHODS: Final = ("GET", "POST", "DELETE", "OPTIONS")
BUNDLER: Final = "2.1.2"
BUNDLE: Final = HERE.parents[1] / "packaging" / "mcpb"
FIXTURES: Final = (sys.executable, "-m", "conformance.fixture_server")
PRODUCT: Final = (sys.executable, "-m", "kg_server", "serve", "sample", "--http", "127.0.0.1:0")

STABLE: Final = "0.1.16"
MODERN: Final = "0.2.0-alpha.12"
SUITES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    STABLE: ((), "product-2025-11-25.yml"),
    MODERN: (("--requirements", "2026-07-28"), "product-2026-07-28.yml"),
}
"""The releases of the suite, with the options for servers and where the product's expected failures are."""

LOGINS: Final[Mapping[str, tuple[str, ...]]] = {
    STABLE: ("--suite", "auth", "--spec-version", "2025-11-25"),
    MODERN: ("--requirements", "2026-07-28", "--expected-failures", str(HERE / "client-2026-07-28.yml")),
}
"""The options for clients that log in."""


@contextmanager
def served(command: tuple[str, ...], **environ: str) -> Generator[str]:
    """Start a server on a free port, so that no other one can answer in its place, and give its address."""
    with (
        tempfile.TemporaryDirectory() as folder,
        (Path(folder) / "log").open("w", encoding="utf-8") as log,
        subprocess.Popen(
            command,
            env={**_environment(), **{f"KG_SEXTANT_{kind}_FOLDER": folder for kind in ("CACHE", "DATA")}, **environ},
            stdout=subprocess.DEVNULL,
            stderr=log,
        ) as process,
    ):
        try:
            yield address_of(process, Path(log.name))
        finally:
            process.terminate()


def address_of(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until a server says where it is."""
    while process.poll() is None:
        for line in log.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.startswith("Serving ") and line.endswith("\n"):
                return line.split()[-1]
        time.sleep(0.1)
    raise SystemExit(f"The server ended before it served: {log.read_text(encoding='utf-8')}")


@contextmanager
def logged_in() -> Generator[str]:
    """Start the product with a login, and give the address of a proxy that adds a valid token to each request."""
    with (
        authorizing() as authority,
        served(PRODUCT, KG_SEXTANT_HOSTING__ISSUER=authority.issuer) as address,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        if httpx2.post(address).status_code != HTTPStatus.UNAUTHORIZED:
            raise SystemExit("The product lets in callers without a token.")
        token = authority.access_token(aud=address, scope="read memory")
        origin, path = address.rsplit("/", 1)
        with serving(
            Starlette(routes=[Route("/{path:path}", forwarding(origin, token), methods=METHODS)]), listener
        ) as proxy:
            yield f"{proxy}/{path}"


def forwarding(origin: str, token: str) -> Callable[[Request], Awaitable[Response]]:
    """Return what passes requests on to a server with a token, and answers back as they arrive."""
    client = httpx2.AsyncClient(timeout=LIMIT_S)

    async def forward(request: Request) -> Response:
        headers = [*request.headers.items(), ("authorization", f"Bearer {token}")]
        url, body = f"{origin}{request.url.path}", await request.body()
        answer = await client.send(
            client.build_request(request.method, url, headers=headers, content=body), stream=True
        )
        close = BackgroundTask(answer.aclose)
        return StreamingResponse(answer.aiter_raw(), answer.status_code, answer.headers, background=close)

    return forward


def passes(release: str, name: str, *words: str) -> bool:
    """Run a suite, let a browser agree wherever it waits for one, and tell how it went."""
    npx = ["npx", "--yes", "--loglevel=error", "-p", NODE, "-p", f"@modelcontextprotocol/conformance@{release}"]
    lines: list[str] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [*npx, "conformance", *words, "-o", folder],
            cwd=folder,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as run,
    ):
        assert run.stdout is not None
        limit = threading.Timer(LIMIT_S, run.kill)
        limit.start()
        for line in run.stdout:
            lines.append(line)
            if line.startswith("http://") and "/authorize?" in line:
                httpx2.get(line.strip(), follow_redirects=True)
        limit.cancel()
    total = next((line.strip() for line in reversed(lines) if line.startswith("Total:")), "no summary")
    print(f"Conformance {release}, {name}: {'as expected' if run.returncode == 0 else 'FAILED'}. {total}")
    if run.returncode:
        print("".join(lines).rpartition("SUMMARY")[2])
    return run.returncode == 0 and total != "no summary"


def authorization_server_passes(folder: str) -> bool:
    """Run the scenarios for authorization servers against the one of the tests."""
    client = ClientRecord(
        client_id="suite", redirect_uris=["http://127.0.0.1/callback"], token_endpoint_auth_method="none"
    )
    trusted = Authority.create(Path(folder)).client()
    good = True
    with authorizing(path="/realms/team", trusted=trusted) as server:
        server.add_client(client)
        for version in ("2025-11-25", "2026-07-28"):
            resource = ("--client-id", client.client_id, "--resource", "https://kg.example.org/mcp")
            words = ("--url", server.issuer, *resource, "--spec-version", version)
            good &= passes(MODERN, f"the tests' authorization server, {version}", "authorization", *words)
    return good


def is_bundle(folder: str) -> bool:
    """Let the publisher's own tool validate and pack the bundle for desktop assistants, and tell how it went."""
    npx = ["npx", "--yes", "--loglevel=error", "-p", NODE, "-p", f"@anthropic-ai/mcpb@{BUNDLER}", "mcpb"]
    steps = (["validate", str(BUNDLE / "manifest.json")], ["pack", str(BUNDLE), str(Path(folder) / "kg-sextant.mcpb")])
    for step in steps:
        run = subprocess.run(
            [*npx, *step],
            check=False,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
        )
        print(f"Bundle, {step[0]}: {'as expected' if run.returncode == 0 else f'FAILED: {run.stdout}'}")
        if run.returncode:
            return False
    return True


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(HERE.parent)}


def main() -> None:
    """Run both suites against both servers and the counterparts of a login, and the validator of bundles."""
    if shutil.which("npx") is None:
        raise SystemExit("The conformance suite needs npm, which is not here.")
    logging.disable()  # A client has to fail in many scenarios.
    with tempfile.TemporaryDirectory() as folder:
        good = is_bundle(folder)
        good &= authorization_server_passes(folder)
    with socket.create_server(("127.0.0.1", 0)) as listener, serving(signing_in_client.SERVICE, listener) as origin:
        for release, options in LOGINS.items():
            words = ("--command", signing_in_client.command(origin), "--timeout", str(LIMIT_S * 1_000))
            good &= passes(release, "the tests' client", "client", *words, *options)
    for release, (options, failures) in SUITES.items():
        with served(FIXTURES) as address:
            good &= passes(release, "the server's class with fixtures", "server", "--url", address, *options)
        with logged_in() as address:
            expected = (*options, "--expected-failures", str(HERE / failures))
            good &= passes(release, "the product, with a login", "server", "--url", address, *expected)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
