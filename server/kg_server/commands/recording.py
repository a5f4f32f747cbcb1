"""What is recorded of the calls of a server: an audit log, metrics and traces, as the settings and variables say."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from kg_adapters.errors import InvalidRequest
from kg_boundary.installation import install_command
from kg_server.commands.addresses import cannot_listen, parse_address
from kg_server.commands.output import warn
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_server.serving.audit import Watcher
    from kg_server.serving.telemetry import Signal, Transport

METRICS_PORT: Final = 9_464


@dataclass(frozen=True, slots=True)
class Recording:
    """What is recorded of the requests to a server.

    Args:
        settings: They say what is recorded.
        environ: The environment variables.
    """

    settings: Settings
    environ: Mapping[str, str]

    def load(self) -> None:
        """Import what it records with, and leave it to the call to report what is missing."""
        hosting = self.settings.hosting
        wanted = {
            "audit": hosting.audit != "off",
            "metrics": hosting.metrics is not None,
            "telemetry": bool(exported_signals(self.environ)),
        }
        for module in (name for name, is_wanted in wanted.items() if is_wanted):
            with suppress(ModuleNotFoundError):
                import_module(f"kg_server.serving.{module}")

    @contextmanager
    def __call__(self, graph: str, transport: "Transport") -> "Generator[Sequence[Watcher]]":
        """Yield what is called with a record of each request; where nothing is to be recorded, nothing is imported.

        Args:
            graph: The name of the graph.
            transport: How requests come.

        Raises:
            InvalidRequest: What is asked for is not installed, or its address cannot be used.
        """
        hosting = self.settings.hosting
        watchers: list[Watcher] = []
        with ExitStack() as stack:
            if hosting.audit != "off":
                from kg_server.serving.audit import AuditLog

                watchers.append(AuditLog(warn, self.settings.redactor.message(graph), hosting.audit))
            if hosting.metrics is not None:
                watchers.append(stack.enter_context(_metrics(hosting.metrics)))
            if signals := exported_signals(self.environ):
                try:
                    from kg_server.serving.telemetry import exported
                except ModuleNotFoundError:
                    # Such variables are often set for a whole machine.
                    warn(
                        f"Traces and metrics for OpenTelemetry need more packages. Run: {install_command('telemetry')}"
                    )
                else:
                    watchers.append(stack.enter_context(exported(signals, transport)))
            yield watchers


def exported_signals(environ: Mapping[str, str]) -> "frozenset[Signal]":
    """Return what the variables of OpenTelemetry ask to export: what has an endpoint and is not switched off."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return frozenset()
    signals: Sequence[Signal] = ("traces", "metrics")
    return frozenset(
        signal
        for signal in signals
        if environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp") == "otlp"
        and (environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"))
    )


@contextmanager
def _metrics(address: str) -> "Generator[Watcher]":
    host, port = parse_address(address, "hosting.metrics", METRICS_PORT)
    try:
        from kg_server.serving.metrics import served_metrics
    except ModuleNotFoundError as error:
        raise InvalidRequest(f"Metrics need more packages. Run: {install_command('hosting')}") from error
    with ExitStack() as stack:
        try:
            metrics, port = stack.enter_context(served_metrics(host, port))
        except OSError as error:
            raise cannot_listen(host, port, error) from error
        warn(f"Metrics at http://{host}:{port}/metrics")
        yield metrics
