"""Export of traces and metrics by OpenTelemetry, as its variables say; the SDK of MCP makes the spans."""

import threading
from collections.abc import Container, Generator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Final, Literal, TypeAlias

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import get_current_span, set_tracer_provider

from kg_server.serving.audit import BUCKETS_S, CallRecord

Signal: TypeAlias = Literal["traces", "metrics"]
Transport: TypeAlias = Literal["tcp", "pipe"]

_NAME: Final = "kg-sextant"
_FAREWELL_S: Final = 1.5


class OperationDurations:
    """A watcher that records how long requests took, by OpenTelemetry's conventions for MCP.

    Args:
        provider: Where metrics go.
        transport: How messages come.
    """

    def __init__(self, provider: MeterProvider, transport: Transport) -> None:
        self._network: dict[str, str] = {"network.transport": transport}
        if transport == "tcp":
            self._network["network.protocol.name"] = "http"
        self._seconds = provider.get_meter(_NAME, version(_NAME)).create_histogram(
            "mcp.server.operation.duration",
            unit="s",
            description="MCP request or notification duration as observed on the receiver from the time it was "
            "received until the result or ack is sent.",
            explicit_bucket_boundaries_advisory=BUCKETS_S,
        )

    def __call__(self, record: CallRecord) -> None:
        """Record a request, and complete its span."""
        if not record.version:  # It was refused before there was a span.
            return
        attributes = {"mcp.method.name": record.method, **self._network}
        if record.version:
            attributes["mcp.protocol.version"] = record.version
        if record.method == "tools/call":
            attributes["gen_ai.operation.name"] = "execute_tool"
        if record.tool:
            attributes["gen_ai.tool.name"] = record.tool
        if record.error:
            attributes["error.type"] = record.error
        if record.error.lstrip("-").isdecimal():
            attributes["rpc.response.status_code"] = record.error
        self._seconds.record(record.seconds, attributes)
        span = get_current_span()
        span.set_attributes(self._network)
        if record.error == "cancelled":
            span.set_attribute("error.type", record.error)


@contextmanager
def exported(signals: Container[Signal], transport: Transport) -> Generator[OperationDurations]:
    """Export traces or metrics while the body runs, and what is left of them for a moment at its end."""
    resource = Resource.create({"service.name": _NAME, "service.version": version(_NAME)})
    resource = resource.merge(OTELResourceDetector().detect())
    readers: list[MetricReader] = []
    if "metrics" in signals:
        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter()))
    meters = MeterProvider(readers, resource, shutdown_on_exit=False)
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    if "traces" in signals:
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    set_tracer_provider(tracers)

    def end() -> None:
        tracers.shutdown()
        meters.shutdown()

    try:
        yield OperationDurations(meters, transport)
    finally:
        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        ending.join(_FAREWELL_S)
