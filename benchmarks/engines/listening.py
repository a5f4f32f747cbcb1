"""Servers on loopback that run beside whoever uses them, in a thread of their own."""

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TypeAlias

Handle: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

READ_BYTES = 1 << 16


@contextmanager
def listening(handle: Handle, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Generator[int]:
    """Serve connections on a free port, which is given; whatever is open is closed when the block is left."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(handle, tls, host, started)))
    thread.start()
    loop, stop, port = started.result()
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection, whatever state it is in."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _serve(
    handle: Handle,
    tls: ssl.SSLContext | None,
    host: str,
    started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]]",
) -> None:
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # Either side may go at any time: that is what connections do.
            with suppress(OSError, asyncio.IncompleteReadError):
                await handle(reader, writer)
        finally:
            await hang_up(writer)

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    stop = asyncio.Event()
    try:
        server = await asyncio.start_server(begin, host, 0, ssl=tls)
    except OSError as error:
        started.set_exception(error)
        return
    started.set_result((asyncio.get_running_loop(), stop, server.sockets[0].getsockname()[1]))
    await stop.wait()
    server.close()
    for task in (left := list(tasks)):
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
