"""kg-sextant serve: the server on stdio or HTTP."""

import asyncio
import faulthandler
import math
import os
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from io import TextIOBase, UnsupportedOperation
from queue import Full, Queue
from tempfile import TemporaryFile
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import anyio
import anyio.lowlevel
import typer

from kg_adapters.registry import load_adapter
from kg_server.commands import options
from kg_server.commands.addresses import listen, parse_address
from kg_server.commands.graph_words import graph_words
from kg_server.commands.graphs import PATIENCE_S, opening
from kg_server.commands.invocation import invocation
from kg_server.commands.output import shown_progress, uncollected, warn
from kg_server.commands.recording import Recording
from kg_server.settings import APP, Settings

if TYPE_CHECKING:
    from ssl import SSLContext

    from starlette.types import ASGIApp

    from kg_server.graphs import GraphSet
    from kg_server.mcp_server import SextantServer

REPORTED_S: Final = 5.0
STACKS_S: Final = 20.0
STUCK_EXIT: Final = 70
"""The exit code of a process that the watchdog ended: the EX_SOFTWARE of sysexits.h."""
_FAREWELL_S: Final = 0.5
_STANDARD_ERROR: Final = 2


@contextmanager
def watched(
    limit_s: float, *, reported_s: float = REPORTED_S, stacks_s: float = STACKS_S, tick_s: float = 1.0
) -> Generator[None]:
    """Log when the running event loop is blocked, then the stacks of all threads, and exit if it stays so.

    A thread counts ticks instead of comparing clocks, so that a suspended process does not count as stuck. Code that
    never releases the interpreter stops that thread too: then a system timer, which the thread resets at each tick,
    ends the process after `limit_s` of CPU time; Windows has no such timer.

    Args:
        limit_s: After how many seconds the process ends; 0 watches nothing.
        reported_s: After how many seconds one line is logged; a busy machine may block the loop that long.
        stacks_s: After how many seconds the stacks are logged, if the process does not end before.
        tick_s: How often the loop is checked.
    """
    if not limit_s:
        yield
        return
    stacks_s = min(stacks_s, limit_s)
    loop = asyncio.get_running_loop()
    ended, alive = threading.Event(), threading.Event()

    def watch() -> None:
        still = 0
        while not ended.wait(tick_s):
            still = 0 if alive.is_set() else still + 1
            alive.clear()
            _end_after_cpu_time(limit_s)
            if still == round(reported_s / tick_s):
                _report(reported_s, "Calls wait until it does.")
            if still == round(stacks_s / tick_s):
                _report(stacks_s, f"All its threads:\n{_stacks()}")
            if still * tick_s >= limit_s:
                _report(limit_s, "The process ends.")
                time.sleep(_FAREWELL_S)
                os._exit(STUCK_EXIT)
            loop.call_soon_threadsafe(alive.set)

    thread = threading.Thread(target=watch, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _end_after_cpu_time(0)


def _end_after_cpu_time(limit_s: float) -> None:
    """Set the system timer that ends this process after so much CPU time, and logs all stacks; 0 clears it."""
    if sys.platform == "win32":
        return
    if limit_s:
        faulthandler.register(signal.SIGVTALRM, file=_STANDARD_ERROR, chain=True)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)


def _report(blocked_s: float, text: str) -> None:
    sys.stderr.write(f"The server's event loop has not run for {blocked_s:g} s. {text}\n")
    sys.stderr.flush()


def _stacks() -> str:
    with TemporaryFile() as stacks:
        faulthandler.dump_traceback(stacks)
        stacks.seek(0)
        return stacks.read().decode()


MAX_HELD: Final = 2_000
"""The most texts that are queued; further ones are dropped and counted."""
FAREWELL_S: Final = 1.0
"""How many seconds a process that ends waits until its last lines are read."""


class UnblockedStream(TextIOBase):
    """Accepts text without blocking, and writes it in its own thread as fast as it is read.

    Args:
        descriptor: Where it is written.
        encoding: How.
    """

    def __init__(self, descriptor: int, encoding: str = "utf-8") -> None:
        super().__init__()
        self._descriptor = descriptor
        self._encoding = encoding
        self._texts: Queue[str | None] = Queue(MAX_HELD)
        self._dropped = 0
        self._thread = threading.Thread(target=self._write_all, name="standard-error", daemon=True)
        self._thread.start()

    def write(self, text: str, /) -> int:
        """Queue a text, or drop it if too many are queued already."""
        try:
            self._texts.put_nowait(text)
        except Full:
            self._dropped += 1
        return len(text)

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return os.isatty(self._descriptor)

    def end(self) -> bool:
        """Write the rest, and return whether it was read in time; nothing is written afterwards."""
        with suppress(Full):
            self._texts.put(None, timeout=FAREWELL_S)
        self._thread.join(FAREWELL_S)
        return not self._thread.is_alive()

    def _write_all(self) -> None:
        for text in iter(self._texts.get, None):
            self._write(text)
            if self._texts.empty():
                self._report_dropped()
        self._report_dropped()

    def _report_dropped(self) -> None:
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._write(f"{dropped:,} parts of the log were dropped here, because nothing read it.\n")

    def _write(self, text: str) -> None:
        rest = text.encode(self._encoding, "backslashreplace")
        with suppress(OSError):  # Its reader has gone, and the server has not.
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]


@contextmanager
def unblocked_standard_error() -> Generator[None]:
    """Make writing to standard error never block."""
    before = sys.stderr
    try:
        stream = UnblockedStream(before.fileno(), before.encoding)
    except UnsupportedOperation:  # a test's
        yield
        return
    sys.stderr = stream
    try:
        yield
    finally:
        if stream.end():
            sys.stderr = before


MAX_CONNECTIONS: Final = 256
ENDING_S: Final = 2.0
"""How many seconds a process may take to close files and to end its own processes, once its client has gone."""


def serve(  # noqa: PLR0913, PLR0917 - one argument for each option
    context: typer.Context,
    graph: options.GraphArguments = None,
    http: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve HTTP at this address, not stdio.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Serve HTTP to other machines although nobody has to log in.")
    ] = False,
    tools: options.ServedTools = None,
    read_only: options.ReadOnly = False,
    notes: options.Notes = None,
    languages: options.Languages = None,
    max_tokens: options.MaxTokens = None,
    timeout_s: options.Timeout = None,
    cache_folder: options.CacheFolder = None,
    log_level: options.LogLevel = None,
    metrics: options.Metrics = None,
) -> None:
    """Serve a graph to MCP clients over stdio, or over HTTP with --http."""
    address = None if http is None else parse_address(http)
    with unblocked_standard_error():
        loaded = invocation(context).load_for_any(
            graph=graph,
            tools=tools,
            read_only=read_only or None,
            notes=notes,
            languages=languages,
            max_tokens=max_tokens,
            timeout_s=timeout_s,
            cache_folder=cache_folder,
            log_level=log_level,
            metrics=metrics,
        )
        if address is None:
            # A thread that waits for standard input cannot be stopped, so Ctrl-C has to end the process by itself.
            signal.signal(signal.SIGINT, signal.getsignal(signal.SIGTERM))
            if sys.stdin.isatty():
                warn(_waiting(loaded.settings))
        serving = _serve_stdio if address is None else over_http(Served(address, insecure))
        run(serving, loaded.settings, Recording(loaded.settings, invocation(context).environ))


def _waiting(settings: Settings) -> str:
    """Return the notice of a server at a terminal: what it waits for, and where questions can be typed."""
    graph = shlex.join(map(settings.redactor.message, graph_words(settings)))
    return (
        "Waiting for an MCP client on standard input; clients start this command by themselves. To set one up: "
        f"{APP} config CLIENT {graph} --write. To ask here: {APP} shell {graph}. Ctrl-C ends it."
    )


Serving: TypeAlias = Callable[[Settings, Recording, Callable[[], None]], Awaitable[None]]
"""Serves by the settings, records, and calls the function, which enables the garbage collector, once it has started."""

_MODULES: Final = (
    "kg_server.app",
    "kg_server.serving.stdio",
    "kg_adapters.local.sparql.pool",
    "rich.console",  # These two by the SDK, for each server.
    "rich.logging",
)


def run(serving: Serving, settings: Settings, recorded: Recording) -> None:
    """Serve while the watchdog of the settings watches.

    Modules are loaded before: on a slow disk that would block the event loop until the watchdog reports it.
    """
    with uncollected() as begin:
        for module in _MODULES:
            import_module(module)
        recorded.load()
        for each in settings.graphs.values() or (settings,):
            load_adapter(each.graph)
        anyio.run(_serve_watched, serving, settings, recorded, begin)


async def _serve_watched(serving: Serving, settings: Settings, recorded: Recording, begin: Callable[[], None]) -> None:
    with watched(settings.watchdog_s):
        await serving(settings, recorded, begin)


async def _serve_stdio(settings: Settings, recorded: Recording, begin: Callable[[], None]) -> None:
    from kg_server.app import build_server
    from kg_server.concurrency import off_loop
    from kg_server.serving.messages import MAX_MESSAGE_BYTES
    from kg_server.serving.stdio import StdioLimits

    # A host waits for the handshake, and gives up where that takes as long as an import.
    async with opening(settings) as graphs:
        limits = StdioLimits(message_bytes=MAX_MESSAGE_BYTES)
        with recorded(", ".join(graphs.names), "pipe") as watchers:
            server = await off_loop(partial(build_server, graphs, settings, watchers=watchers))
            begin()
            await server.run_stdio_async(limits, _end_soon)


def _end_soon() -> None:
    """End this process when its client has gone, even where a thread is still at work that cannot be interrupted."""
    ending = threading.Timer(ENDING_S, os._exit, (0,))
    ending.daemon = True
    ending.start()


@dataclass(frozen=True, slots=True)
class Served:
    """Where HTTP is served, and what else is done.

    Args:
        address: Host and port.
        insecure: Whether other machines may call without a login.
        prepare: Called with the server and its graphs before it serves.
        on_start: Called with the URL of the endpoint once it serves.
        own_page: Whether its own page alone may call, of the pages on this machine.
    """

    address: tuple[str, int]
    insecure: bool = False
    prepare: "Callable[[SextantServer, GraphSet], None]" = lambda _server, _graphs: None
    on_start: Callable[[str], None] = lambda _: None
    own_page: bool = False


def over_http(served: Served) -> Serving:
    """Return what serves graphs over HTTP until the process is asked to end; its modules are loaded, as by `run`."""
    for module in ("kg_server.commands.hosting", "kg_server.serving.connections"):
        import_module(module)
    return partial(_serve_http, served=served)


async def _serve_http(settings: Settings, recorded: Recording, begin: Callable[[], None], *, served: Served) -> None:
    from kg_server.app import build_server
    from kg_server.commands.hosting import application, login_of, tls_of, tokens_of
    from kg_server.concurrency import off_loop
    from kg_server.serving.limits import CallLimits
    from kg_server.serving.public import Readiness

    begin()
    tls = tls_of(settings)
    host, _ = served.address
    tokens = tokens_of(settings, host, insecure=served.insecure)
    with listen(*served.address) as listener:
        served_at = _address(listener, host, "http" if tls is None else "https")
        login = login_of(settings, tokens, served_at)
        async with opening(settings, PATIENCE_S if settings.graphs else math.inf, shown_progress) as graphs:
            with recorded(", ".join(graphs.names), "tcp") as watchers:
                limits = None if login is None else CallLimits(settings.hosting, watchers)
                booked = watchers if limits is None else (limits.book, *watchers)
                server = await off_loop(partial(build_server, graphs, settings, watchers=booked))
                served.prepare(server, graphs)
                readiness = Readiness(server.needs)
                app = application(server, settings, login, limits, readiness, own_page=served.own_page)
                if settings.memory.database is not None:
                    await readiness.problem()  # logged before the first caller meets it

                def stop() -> None:
                    readiness.is_stopping = True
                    server.end_subscriptions()

                def announce() -> None:
                    graph = " and ".join(graph_words(settings))
                    warn(f"Serving {settings.redactor.message(graph)} at {served_at}")
                    served.on_start(served_at)

                await _listen_to_http(app, announce, stop, listener, settings, tls)


async def _listen_to_http(
    app: "ASGIApp",
    announce: Callable[[], None],
    at_stop: Callable[[], None],
    listener: socket.socket,
    settings: Settings,
    tls: "SSLContext | None",
) -> None:
    import uvicorn
    from sse_starlette.sse import AppStatus

    from kg_server.serving.connections import TimedConnection

    # uvicorn's own logging would write its access log to standard output.
    config = uvicorn.Config(
        app,
        http=TimedConnection,
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=bool(settings.hosting.proxies),
        forwarded_allow_ips=[*settings.hosting.proxies],
        limit_concurrency=MAX_CONNECTIONS,
        # What runs is finished, and nothing new begun.
        timeout_graceful_shutdown=math.ceil(settings.timeout_s),
    )
    config.load()
    config.ssl = tls

    # Else a call that is answered as a stream would end without its answer as soon as the server gets SIGTERM.
    AppStatus.enable_automatic_graceful_drain = False

    loop = asyncio.get_running_loop()

    class Announced(uvicorn.Server):
        """Announces its address once it serves; before that, Ctrl-C would interrupt it halfway."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            announce()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(at_stop)
            super().handle_exit(sig, frame)

    # Ctrl-C until here ends this task now; within uvicorn's start, it would end in a traceback.
    await anyio.lowlevel.checkpoint()
    await Announced(config).serve(sockets=[listener])


def _address(listener: socket.socket, host: str, scheme: str) -> str:
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/mcp"
