"""What each call was and what it took: measured once, for the audit log, the metrics and the limits."""

import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS
from mcp.types.methods import SPEC_CLIENT_METHODS
from pydantic import BaseModel, TypeAdapter, ValidationError

from kg_adapters.calls import working_for
from kg_adapters.errors import BackendError, BackendTimeout, InvalidSource, KGError, causes
from kg_boundary.shown import json_text
from kg_server.callers import Caller, caller
from kg_server.serving.messages import LISTEN
from kg_server.settings import AuditForm

Outcome: TypeAlias = Literal["ok", "refused", "error", "timeout", "cancelled"]

CALLS: Final = frozenset({"tools/call", "resources/read", "prompts/get"})
"""The methods of which the audit has a line for each call."""
MEASURED: Final = SPEC_CLIENT_METHODS - {LISTEN}
"""The methods of which there are records; how long a client listens is no work."""
TOOL_ERROR: Final = "tool_error"
OVER_LIMIT: Final = "429"
"""The class of error of a call that was refused at a limit of its caller."""
BUCKETS_S: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""The buckets of durations by OpenTelemetry's conventions for MCP."""
_MAX_NAME: Final = 200
_CONTENT: Final = TypeAdapter(dict[str, object])
_LIST: Final = TypeAdapter(list[object])


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What one request was, and what it took.

    Args:
        at: When it ended, in seconds since 1970.
        caller: Who made it.
        method: The method of the protocol.
        tool: The tool, if there is one of this name; nothing for other methods.
        outcome: How it ended; `refused` was the caller's to mend, `error` is not.
        seconds: How long it took.
        rows: How many rows of triples, values or results its answer has.
        requests: How many requests it sent to the services behind the graph.
        error: The class of its error by OpenTelemetry's conventions; nothing where it has none.
        graph: The graphs of several that it was about, by their names; nothing where one is served.
        version: The version of the protocol; nothing where the call was refused before that was known.
    """

    at: float
    caller: Caller
    method: str
    tool: str
    outcome: Outcome
    seconds: float = 0.0
    rows: int = 0
    requests: int = 0
    error: str = ""
    graph: str = ""
    version: str = ""


Watcher: TypeAlias = Callable[[CallRecord], None]


class Accounting:
    """Middleware that measures every call, and hands a record of it to watchers.

    Args:
        tools: The names of the tools that there are.
        watchers: Called with each record, before the call is answered; they neither wait nor raise.
        graphs_of: Returns the names of the graphs, of several, that a method with its parameters is about.
    """

    def __init__(
        self, tools: Container[str], watchers: Sequence[Watcher], graphs_of: Callable[[str, Mapping[str, Any]], str]
    ) -> None:
        self._graphs_of = graphs_of
        self._tools = tools
        self._watchers = watchers

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a message on, and measure it if it is a request that takes part of the server's time."""
        # A notification of such a name is no request, and nothing is done for it.
        if ctx.method not in MEASURED or ctx.request_id is None:
            return await call_next(ctx)
        began, who, ending = time.perf_counter(), caller(), _Ending()
        with working_for(who.subject) as work:
            try:
                with ending:
                    ending.result = await call_next(ctx)
            finally:
                outcome, error = ending.judged(work.failure)
                record = CallRecord(
                    at=time.time(),
                    caller=who,
                    method=ctx.method,
                    tool=known_tool(ctx.method, ctx.params, self._tools),
                    outcome=outcome,
                    seconds=time.perf_counter() - began,
                    rows=rows_of(ending.result),
                    requests=work.requests,
                    error=error,
                    graph=self._graphs_of(ctx.method, ctx.params or {}),
                    version=ctx.protocol_version,
                )
                for watcher in self._watchers:
                    watcher(record)
        return ending.result


class _Ending:
    """How a message ended: the result, or what was raised instead within its context."""

    def __init__(self) -> None:
        self.result: HandlerResult = None
        self._raised: BaseException | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, raised: BaseException | None, __: object) -> None:
        self._raised = raised

    def judged(self, failure: Exception | None) -> tuple[Outcome, str]:
        """Return the outcome and the class of its error, given what a tool failed with whose answer says so."""
        if isinstance(self._raised, anyio.get_cancelled_exc_class()):
            return "cancelled", "cancelled"
        if self._raised is not None:
            return outcome_of(self._raised), error_type_of(self._raised)
        if _is_error(self.result):
            return "refused" if failure is None else outcome_of(failure), TOOL_ERROR
        return "ok", ""


def known_tool(method: str, params: Mapping[str, object] | None, tools: Container[str]) -> str:
    """Return the tool that a message calls; nothing where there is none, whatever name was made up."""
    name = (params or {}).get("name")
    return name if method == "tools/call" and isinstance(name, str) and name in tools else ""


def rows_of(result: HandlerResult) -> int:
    """Return how many rows the answer of a tool has: the lists in its lists."""
    content = result.get("structuredContent") if isinstance(result, dict) else None
    values = () if content is None else _CONTENT.validate_python(content).values()
    lists = [_LIST.validate_python(value) for value in values if isinstance(value, list)]
    return sum(isinstance(row, list) for rows in lists for row in rows)


def outcome_of(failure: BaseException) -> Outcome:
    """Return how a call ended that failed, by the first of the causes that decides it."""
    for each in causes(failure):
        match each:
            case BackendTimeout() | TimeoutError():
                return "timeout"
            case BackendError() | InvalidSource():
                return "error"
            case KGError() | ValidationError():
                return "refused"
            case MCPError() if each.error.code != INTERNAL_ERROR:
                return "refused"
            case _:
                pass
    # A tool error without a cause is a refusal of the arguments.
    return "error" if isinstance(failure, MCPError) or failure.__cause__ is not None else "refused"


def error_type_of(failure: BaseException) -> str:
    """Return the class of an error that a message is answered with."""
    if isinstance(failure, MCPError):
        return str(failure.error.code)
    return str(INVALID_PARAMS) if isinstance(failure, ValidationError) else type(failure).__qualname__


def _is_error(result: HandlerResult) -> bool:
    if isinstance(result, BaseModel):
        return bool(getattr(result, "is_error", False))
    return result is not None and bool(result.get("isError"))


class AuditLog:
    """Writes one line for each call: who, what, how long and how it ended, and nothing of what was asked or answered.

    Args:
        write: Writes a line.
        graph: The name of the graph, or of all, without secrets.
        form: Whether a line is JSON, or text for people.
    """

    def __init__(self, write: Callable[[str], None], graph: str, form: AuditForm) -> None:
        self._write = write
        self._graph = graph
        self._form = form

    def __call__(self, record: CallRecord) -> None:
        """Write the line of a call."""
        if record.method not in CALLS:
            return
        who = record.caller
        line = {
            "time": datetime.fromtimestamp(record.at, UTC).isoformat(timespec="milliseconds"),
            "caller": who.subject[:_MAX_NAME],
            "name": who.name[:_MAX_NAME],
            "tool": record.tool or record.method,
            "graph": (record.graph or self._graph)[:_MAX_NAME],
            "ms": round(record.seconds * 1_000, 1),
            "status": record.outcome,
            "rows": record.rows,
            "requests": record.requests,
        }
        if self._form == "json":
            self._write(json_text(line, ascii_only=True))
            return
        fields = (f"{name}={json_text(value, ascii_only=True)}" for name, value in line.items() if name != "time")
        self._write(f"{line['time']} audit {' '.join(fields)}")
