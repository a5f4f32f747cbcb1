"""Metrics of calls for Prometheus."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    start_http_server,
)

from kg_server.serving.audit import BUCKETS_S, OVER_LIMIT, CallRecord

_PREFIX: Final = "kg_sextant_"


class CallMetrics:
    """A watcher that counts calls, with the figures of the process beside them; labels have a bounded number of values.

    Attributes:
        registry: What Prometheus reads.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._seconds = Histogram(
            f"{_PREFIX}call_duration_seconds",
            "How long calls took, by tool or method and by how they ended.",
            ("tool", "status"),
            buckets=BUCKETS_S,
            registry=self.registry,
        )
        self._rows = Counter(f"{_PREFIX}rows", "Rows in answers.", ("tool",), registry=self.registry)
        self._requests = Counter(
            f"{_PREFIX}backend_requests",
            "Requests sent to services behind the graph.",
            ("tool",),
            registry=self.registry,
        )
        self._of_graphs = Counter(
            f"{_PREFIX}graph_calls",
            "Calls by the graphs, of several, that they were about, and by how they ended.",
            ("graph", "status"),
            registry=self.registry,
        )
        self._limited = Counter(
            f"{_PREFIX}limited_calls", "Calls refused at a limit of their caller.", ("tool",), registry=self.registry
        )

    def __call__(self, record: CallRecord) -> None:
        """Count a call."""
        tool = record.tool or record.method
        if record.error == OVER_LIMIT:
            self._limited.labels(tool).inc()
            return
        self._seconds.labels(tool, record.outcome).observe(record.seconds)
        for name in filter(None, record.graph.split(", ")):
            self._of_graphs.labels(name, record.outcome).inc()
        self._rows.labels(tool).inc(record.rows)
        self._requests.labels(tool).inc(record.requests)


@contextmanager
def served_metrics(host: str, port: int) -> Generator[tuple[CallMetrics, int]]:
    """Serve metrics at an address while the body runs, in a thread, so that they show a busy server too.

    Yields:
        The watcher that counts calls, and the port, which the system chooses where it was 0.

    Raises:
        OSError: The address cannot be listened on.
    """
    metrics = CallMetrics()
    server, thread = start_http_server(port, host, metrics.registry)
    try:
        yield metrics, server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
