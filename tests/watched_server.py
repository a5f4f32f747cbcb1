"""Serves a graph over stdio as `kg-sextant serve` does, and writes down for how long its event loop was held at most.

Run it as a script: the graph, an empty folder for its files, and how much processor time counts as long, in seconds.
`held.json` in the folder then has `[seconds, monotonic time, innermost calls]` for each time that the loop's thread
worked for longer without a pause, or that the garbage collector stopped all threads for longer. Processor time is what
counts: another process that keeps the machine busy does not stretch it.
"""

import gc
import json
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Final

import anyio

from kg_server.app import build_server
from kg_server.commands.graphs import opening
from kg_server.commands.output import uncollected
from kg_server.settings import Settings, SparqlSettings

TICK_S: Final = 0.005
LOOKED_S: Final = 0.004
KEPT_CALLS: Final = 12

Held = tuple[float, float, list[str]]


class Watch:
    """Measures the thread that makes it: how much it works between two ticks."""

    def __init__(self, long_s: float) -> None:
        self.held: list[Held] = []
        self._long_s = long_s
        self._ticked = time.monotonic()
        self._calls: list[str] = []
        self._thread = threading.get_ident()
        self._collecting_since = 0.0
        gc.callbacks.append(self._collector)
        threading.Thread(target=self._look, daemon=True).start()

    async def tick(self) -> None:
        """Wake again and again, and note how much was worked meanwhile."""
        worked = time.thread_time()
        while True:
            self._ticked, self._calls = time.monotonic(), []
            await anyio.sleep(TICK_S)
            now = time.thread_time()
            if now - worked > self._long_s:
                self.held.append((now - worked, time.monotonic(), self._calls))
            worked = now

    def _look(self) -> None:
        """See what is under way where a tick is late."""
        while True:
            time.sleep(LOOKED_S)
            frame = sys._current_frames().get(self._thread)  # pyright: ignore[reportPrivateUsage] - nothing else shows a thread
            if frame is not None and time.monotonic() - self._ticked > self._long_s / 2:
                calls = [f"{Path(each.filename).name}:{each.name}" for each in traceback.extract_stack(frame)]
                self._calls = calls[-KEPT_CALLS:]

    def _collector(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_since = time.thread_time()
        elif (held := time.thread_time() - self._collecting_since) > self._long_s:
            self.held.append((held, time.monotonic(), [f"the collector, generation {info['generation']}"]))


async def serve(graph: str, folder: Path, long_s: float) -> None:
    """Serve until the client leaves."""
    sparql = SparqlSettings(max_rows=100_000)
    settings = Settings(graph=graph, cache_folder=folder, data_folder=folder, sparql=sparql, timeout_s=600)
    with uncollected() as begin:
        async with opening(settings) as graphs, anyio.create_task_group() as tasks:
            server = build_server(graphs, settings)
            begin()
            watch = Watch(long_s)
            tasks.start_soon(watch.tick)
            await server.run_stdio_async()
            tasks.cancel_scope.cancel()
            (folder / "held.json").write_text(json.dumps(watch.held), encoding="utf-8")


if __name__ == "__main__":
    anyio.run(serve, sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
