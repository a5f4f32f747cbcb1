"""What a server records of each call: for the audit log, and for metrics."""

from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from fault_endpoint import Script, refusing, serving, stalling
from kg_server.callers import Caller
from kg_server.serving.audit import AuditLog, CallRecord
from kg_server.settings import AuditForm
from remote_graphs import CITIES, answering_from, tools_over

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
