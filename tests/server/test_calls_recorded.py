"""What a server records of each call: for the audit log, and for metrics."""

import gzip
from collections.abc import Mapping, Set
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from fault_endpoint import Script, refusing, serving, stalling
from kg_server.callers import Caller
from kg_server.commands.recording import exported_signals
from kg_server.serving.audit import AuditLog, CallRecord
from kg_server.serving.metrics import served_metrics
from kg_server.settings import AuditForm
from loopback_service import Reply, answering
from remote_graphs import CITIES, answering_from, tools_over
from server_processes import request, spoken_to

HEALTHY = answering_from(CITIES)
LINE = TypeAdapter(dict[str, str | int | float])
KYOTO = {"entity": "ex:kyoto"}


@pytest.mark.parametrize(
    ("script", "arguments", "expected"),
    [
        (HEALTHY, {**KYOTO, "relation": "ex:country"}, ("ok", 1)),
        (HEALTHY, {"entity": "ex:atlantis"}, ("refused", 0)),
        (HEALTHY, {"entity": "ex:kyoto", "limit": "many"}, ("refused", 0)),
        (HEALTHY, {"entity": "ex:kyoto", "colour": "red"}, ("refused", 0)),
        (refusing(500, "boom"), KYOTO, ("error", 0)),
        (stalling, KYOTO, ("timeout", 0)),
    ],
    ids=["answered", "unknown", "malformed", "no such argument", "failed", "late"],
)
async def test_the_audit_has_one_line_for_each_call_and_nothing_of_its_text(
    script: Script, arguments: Mapping[str, object], expected: tuple[str, int], tmp_path: Path
) -> None:
    lines: list[str] = []
    audit = AuditLog(lines.append, "cities", "json")
    async with (
        serving(script) as server,
        tools_over(server, tmp_path, watchers=[audit], timeout_s=0.3 if script is stalling else 10) as client,
    ):
        await client.call_tool("GetNeighbor", dict(arguments))
    line = LINE.validate_json(*lines)
    assert (line["tool"], line["status"], line["rows"], line["graph"]) == ("GetNeighbor", *expected, "cities")
    assert line["requests"] == len(server.requests)
    assert not any(str(value) in lines[0] for value in arguments.values())


async def test_calls_of_no_tool_that_there_is_and_cancelled_ones_are_recorded_too(tmp_path: Path) -> None:
    lines: list[str] = []
    audit = AuditLog(lines.append, "cities", "json")
    async with serving(stalling) as server, tools_over(server, tmp_path, watchers=[audit]) as client:
        with pytest.raises(MCPError):
            await client.call_tool("Made up\nby somebody", {})
        with pytest.raises(MCPError):
            await client.read_resource("kg://nothing/here")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "GetNeighbor", KYOTO)
            await server.until(lambda: bool(server.requests))
            tasks.cancel_scope.cancel()
        await client.list_tools()
    assert [(line["tool"], line["status"]) for line in map(LINE.validate_json, lines)] == [
        ("tools/call", "refused"),
        ("resources/read", "refused"),
        ("GetNeighbor", "cancelled"),
    ]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_name_cannot_forge_a_line_of_the_audit(form: AuditForm) -> None:
    lines: list[str] = []
    name = "x\n2026-01-01 audit caller=root\x1b[2K\u202e\u2028" + "y" * 10_000
    AuditLog(lines.append, name, form)(CallRecord(0.0, Caller(name, name), "tools/call", "Schema", "ok"))
    assert lines[0].isascii()
    assert lines[0].isprintable()
    assert len(lines[0]) < 2_000


async def test_metrics_count_calls_by_tool_and_outcome_and_know_no_name_that_a_caller_makes_up(tmp_path: Path) -> None:
    with served_metrics("127.0.0.1", 0) as (metrics, port):
        async with serving(HEALTHY) as server, tools_over(server, tmp_path, watchers=[metrics]) as client:
            for entity in ("ex:kyoto", "ex:kyoto", "ex:atlantis"):
                await client.call_tool("GetNeighbor", {"entity": entity, "relation": "ex:country"})
            with pytest.raises(MCPError):
                await client.call_tool("made-up", {})
        async with httpx2.AsyncClient() as prometheus:
            shown = (await prometheus.get(f"http://127.0.0.1:{port}/metrics")).text.splitlines()
    assert 'kg_sextant_call_duration_seconds_count{status="ok",tool="GetNeighbor"} 2.0' in shown
    assert 'kg_sextant_call_duration_seconds_count{status="refused",tool="GetNeighbor"} 1.0' in shown
    assert 'kg_sextant_rows_total{tool="GetNeighbor"} 2.0' in shown
    assert f'kg_sextant_backend_requests_total{{tool="GetNeighbor"}} {len(server.requests)}.0' in shown
    assert [line for line in shown if "made-up" in line or "kyoto" in line] == []


def test_traces_and_metrics_are_exported_where_the_variables_of_opentelemetry_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[bytes] = []

    def receive(body: bytes, _: str | None) -> Reply:
        received.append(gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body)
        return Reply(b"")

    with answering(receive) as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        with spoken_to(tmp_path) as server:
            server.say(request(1, "tools/call", name="GetNeighbor", arguments={"entity": "Tokyo"}))
            assert "result" in server.hear()
            server.stdin.close()
            server.process.wait()
    exported = b"".join(received)
    expected = ("tools/call GetNeighbor", "mcp.server.operation.duration", "gen_ai.tool.name", "network.transport")
    assert [name for name in (*expected, "kg-sextant") if name.encode() not in exported] == []
    assert b"Tokyo" not in exported


def test_a_call_without_an_id_is_neither_made_nor_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KG_SEXTANT_HOSTING__AUDIT", "text")
    with spoken_to(tmp_path) as server:
        server.say(b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"Schema"}}')
        assert "result" in server.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "Schema"}})
        server.stdin.close()
        assert server.process.stderr is not None
        assert server.process.stderr.read().count(b"audit") == 1


@pytest.mark.parametrize(
    ("variables", "signals"),
    [
        ({}, set[str]()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, {"traces", "metrics"}),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_METRICS_EXPORTER": "none"}, {"traces"}),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://x"}, {"metrics"}),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, set[str]()),
    ],
)
def test_only_what_the_variables_ask_for_is_exported(variables: Mapping[str, str], signals: Set[str]) -> None:
    assert exported_signals(variables) == signals
