"""`kg-sextant serve`: the MCP server."""

import ipaddress
import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kg_adapters.errors import InvalidRequest
from kg_boundary.shown import in_quotes
from kg_server.commands.invocation import invocation
from kg_server.commands.output import warn
from kg_server.commands.unblocked import unblocked_standard_error
from kg_server.commands.uncollected import uncollected
from kg_server.settings import LogLevel, Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from kg_adapters.profile import GraphProfile
    from kg_adapters.protocol import KGAdapter
    from kg_server.mcp_server import SextantServer

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
MEGABYTE: Final = 1024 * 1024
MESSAGES_HELD: Final = 16
"""How many messages of the largest size are held at once under HTTP."""


def serve(
    context: typer.Context,
    graph: Annotated[str | None, typer.Argument(help="`sample`, RDF files, a store, or an endpoint's URL.")] = None,
    http: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Serve HTTP here instead of stdio.")] = None,
    languages: Annotated[str | None, typer.Option(help="Languages of labels, the preferred first: en,mul.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="How long an answer may be by default.")] = None,
    timeout_s: Annotated[float | None, typer.Option("--timeout-s", help="Seconds that a tool call may take.")] = None,
    cache_folder: Annotated[Path | None, typer.Option(help="Where imported files are kept.")] = None,
    log_level: Annotated[LogLevel | None, typer.Option(help="How much is logged on standard error.")] = None,
) -> None:
    """Serve a graph to MCP clients, over stdio unless --http is given."""
    host, port = (None, None) if http is None else parse_address(http)
    with unblocked_standard_error():
        loaded = invocation(context).load(
            graph=graph,
            languages=languages,
            max_tokens=max_tokens,
            timeout_s=timeout_s,
            cache_folder=cache_folder,
            log_level=log_level,
            http_host=host,
            http_port=port,
        )
        if http is None:
            # A thread that waits for standard input cannot be stopped, so Ctrl-C has to end the process by itself.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        import anyio

        anyio.run(_serve_stdio if http is None else _serve_http, loaded.settings)


async def _serve_stdio(settings: Settings) -> None:
    with uncollected() as begin:
        from kg_server.commands.graphs import learning, opened_or_pending
        from kg_server.stdio import StdioLimits

        # A host waits for the handshake, and gives up where that takes as long as an import.
        async with opened_or_pending(settings) as graph, learning(graph):
            limits = StdioLimits(requests=settings.stdio_max_requests, message_bytes=settings.message_max_mb * MEGABYTE)
            server = server_of(graph, settings, await known_profile(graph))
            begin()
            await server.run_stdio_async(limits)


async def known_profile(graph: "KGAdapter") -> "GraphProfile | None":
    """Return the profile of a graph where it lies at hand: not of one that is elsewhere, or is not open yet."""
    from kg_adapters.local.pending import PendingAdapter

    return None if graph.remote or isinstance(graph, PendingAdapter) else await graph.profile()


def server_of(graph: "KGAdapter", settings: Settings, profile: "GraphProfile | None" = None) -> "SextantServer":
    """Return the server of a graph that may not be open yet, and of which a profile may be known."""
    from kg_adapters.local.pending import PendingAdapter
    from kg_server.app import build_server
    from kg_server.waiting import Waiting

    server = build_server(graph, settings, profile)
    if isinstance(graph, PendingAdapter):
        server.middleware.append(Waiting(graph, settings.timeout_s))
    return server


async def _serve_http(settings: Settings) -> None:
    from kg_server.app import build_server
    from kg_server.commands.graphs import learning, opened

    listener = _listen(settings.http_host, settings.http_port)
    async with opened(settings, serves=True) as graph, learning(graph):
        server = build_server(graph, settings, await known_profile(graph))
        await _listen_to_http(server, listener, settings)


async def _listen_to_http(server: "SextantServer", listener: socket.socket, settings: Settings) -> None:
    import asyncio

    import uvicorn

    from kg_server.http_connections import ConnectionLimits, ExhaustionToldOnce, LimitedConfig, room_for

    limits = ConnectionLimits(
        connections=room_for(settings.http_max_connections),
        headers_s=settings.http_headers_s,
        unread_s=settings.http_body_s,
    )
    asyncio.get_running_loop().set_exception_handler(ExhaustionToldOnce())
    config = LimitedConfig(_application(server, settings), limits)
    host = f"[{settings.http_host}]" if ":" in settings.http_host else settings.http_host
    address = f"http://{host}:{listener.getsockname()[1]}/mcp"

    class Announced(uvicorn.Server):
        """Says where it serves once it does; before that, Ctrl-C would interrupt it halfway."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            warn(f"Serving {settings.redactor.message(settings.graph)} at {address}")

    await Announced(config).serve(sockets=[listener])


def _application(server: "SextantServer", settings: Settings) -> "ASGIApp":
    from mcp.server.transport_security import TransportSecuritySettings

    from kg_server.http_limits import MCP_PATH, LimitedRequests, RequestLimits

    names = [f"{name}{port}" for name in LOOPBACK_NAMES for port in ("", ":*")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=names,
        allowed_origins=[f"http://{name}" for name in names],
    )
    most = settings.message_max_mb * MEGABYTE
    app = server.streamable_http_app(
        streamable_http_path=MCP_PATH, stateless_http=True, transport_security=security, max_request_body_size=most
    )
    limits = RequestLimits(
        requests=settings.http_max_requests,
        streams=settings.http_max_streams,
        body_bytes=most,
        held_bytes=MESSAGES_HELD * most,
        body_s=settings.http_body_s,
    )
    return LimitedRequests(app, limits)


def parse_address(text: str) -> tuple[str | None, int | None]:
    """Read `HOST:PORT`, `HOST`, `:PORT` or `PORT`; a part that is not there is None.

    Raises:
        InvalidRequest: It has none of these forms.
    """
    host, colon, port = text.rpartition(":")
    if (not colon and not text.isdecimal()) or text.endswith("]"):
        host, port = text, ""
    if (port and not port.isdecimal()) or not text:
        raise InvalidRequest(f"--http takes HOST:PORT, as in 127.0.0.1:8000; {in_quotes(text)} is not that.")
    return host.strip("[]") or None, int(port) if port else None


def _listen(host: str, port: int) -> socket.socket:
    if not _is_loopback(host):
        raise InvalidRequest(
            f"HTTP is served on this machine only, and {in_quotes(host)} may be reachable from others. Use 127.0.0.1."
        )
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise InvalidRequest(
            f"Cannot listen on {host} port {port}: {reason}. Choose another port, or 0 for any."
        ) from error
    # Without it each answer waits some 40 ms for the client's acknowledgement of its headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
