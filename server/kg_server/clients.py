"""The blocks that make MCP hosts start this server."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Host: TypeAlias = Literal["claude", "cursor", "vscode", "codex"]

SERVER_NAME: Final = "kg-sextant"


@dataclass(frozen=True, slots=True)
class Launch:
    """How a host starts the server.

    Args:
        command: The executable, by its absolute path: desktop hosts have a bare PATH.
        arguments: What follows it.
        environment: The variables that it needs; desktop hosts pass on few of their own.
    """

    command: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Block:
    """A text to paste, and where it goes."""

    text: str
    where: str


def block_for(host: Host, launch: Launch) -> Block:
    """Return the block that makes a host start the server."""
    match host:
        case "claude":
            where = (
                "Claude Desktop: Settings, Developer, Edit Config, then restart it.\n"
                f"Claude Code: run this instead: {claude_code_command(launch)}"
            )
            return Block(_json({"mcpServers": {SERVER_NAME: _entry(launch)}}), where)
        case "cursor":
            where = "Cursor: ~/.cursor/mcp.json, or .cursor/mcp.json in a project."
            return Block(_json({"mcpServers": {SERVER_NAME: _entry(launch)}}), where)
        case "vscode":
            where = "VS Code: .vscode/mcp.json in a workspace, or the command MCP: Open User Configuration."
            return Block(_json({"servers": {SERVER_NAME: {"type": "stdio", **_entry(launch)}}}), where)
        case "codex":
            return Block(_codex(launch), "Codex: ~/.codex/config.toml.")


def claude_code_command(launch: Launch) -> str:
    """Return the line that adds the server to Claude Code."""
    variables = [part for key, value in launch.environment.items() for part in ("--env", f"{key}={value}")]
    return shlex.join(["claude", "mcp", "add", SERVER_NAME, *variables, "--", launch.command, *launch.arguments])


def _entry(launch: Launch) -> dict[str, object]:
    entry: dict[str, object] = {"command": launch.command, "args": list(launch.arguments)}
    return {**entry, "env": dict(launch.environment)} if launch.environment else entry


def _codex(launch: Launch) -> str:
    arguments = ", ".join(_quoted(argument) for argument in launch.arguments)
    lines = [f"[mcp_servers.{SERVER_NAME}]", f"command = {_quoted(launch.command)}", f"args = [{arguments}]"]
    if launch.environment:
        pairs = ", ".join(f"{key} = {_quoted(value)}" for key, value in launch.environment.items())
        lines.append(f"env = {{ {pairs} }}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    # A JSON string is a TOML basic string, once nothing is escaped as a pair of surrogates.
    return json.dumps(text, ensure_ascii=False)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
