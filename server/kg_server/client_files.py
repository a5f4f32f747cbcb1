"""The files in which MCP clients keep their servers, and how a server is added to one."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Final

from pydantic import TypeAdapter

from kg_adapters.errors import InvalidRequest
from kg_server.clients import SERVER_NAME, Host, Launch, block_for

_INDENT: Final = re.compile(r"^[{\[]\s*?\n([ \t]+)", re.MULTILINE)
_TABLE: Final = re.compile(r"^\s*\[")


def client_file(host: Host, home: Path, environ: Mapping[str, str], system: str) -> Path:
    """Return the file in which a client keeps its servers.

    Args:
        host: The client.
        home: The user's home folder.
        environ: The environment, which may name other folders.
        system: `linux`, `darwin` or `win32`, as `sys.platform` has it.
    """
    match host:
        case "claude":
            return _applications(home, environ, system) / "Claude" / "claude_desktop_config.json"
        case "cursor":
            return home / ".cursor" / "mcp.json"
        case "vscode":
            return _applications(home, environ, system) / "Code" / "User" / "mcp.json"
        case "codex":
            return Path(environ.get("CODEX_HOME") or home / ".codex") / "config.toml"


def merged(host: Host, launch: Launch, before: str, path: PurePath) -> str:
    """Return the text of a client's file with this server in it, and everything else as it was.

    Args:
        host: The client.
        launch: How it starts the server.
        before: The text of the file now; empty where there is none.
        path: The file, for messages.

    Raises:
        InvalidRequest: The file has another form.
    """
    block = block_for(host, launch).text
    return _merged_toml(block, before, path) if host == "codex" else _merged_json(block, before, path)


def _applications(home: Path, environ: Mapping[str, str], system: str) -> Path:
    match system:
        case "darwin":
            return home / "Library" / "Application Support"
        case "win32":
            return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
        case _:
            return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")


def _merged_json(block: str, before: str, path: PurePath) -> str:
    ((key, added),) = _OBJECTS.validate_json(block).items()
    try:
        whole = _OBJECT.validate_python(json.loads(before) if before.strip() else {})
    except ValueError as error:
        reason = str(error) if isinstance(error, json.JSONDecodeError) else "it holds no object"
        raise InvalidRequest(f"{path} is not JSON as expected ({reason}). Nothing was written: {_BY_HAND}") from error
    try:
        servers = _OBJECT.validate_python(whole.get(key, {}))
    except ValueError as error:
        raise InvalidRequest(f"{path} has no object at {key!r}. Nothing was written: {_BY_HAND}") from error
    whole[key] = {**servers, SERVER_NAME: added[SERVER_NAME]}
    indent = _INDENT.search(before)
    return json.dumps(whole, ensure_ascii=False, indent=indent[1] if indent else 2) + "\n"


def _merged_toml(block: str, before: str, path: PurePath) -> str:
    expected = _read_toml(before, path)
    ours = tomllib.loads(block)["mcp_servers"]
    kept, place = _without_our_tables(before)
    lines = [*kept[:place], *block.splitlines(), *([""] if kept[place:] else []), *kept[place:]]
    if place == len(kept) and kept and kept[-1].strip():
        lines.insert(place, "")
    after = "\n".join(lines) + "\n"
    try:
        expected["mcp_servers"] = {**_OBJECT.validate_python(expected.get("mcp_servers", {})), **ours}
        same = tomllib.loads(after) == expected
    except ValueError:
        same = False
    if not same:
        raise InvalidRequest(f"{path} writes {SERVER_NAME} in another way. Nothing was written: {_BY_HAND}")
    return after


def _read_toml(text: str, path: PurePath) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRequest(f"{path} is not TOML ({error}). Nothing was written: {_BY_HAND}") from error


def _without_our_tables(text: str) -> tuple[list[str], int]:
    """Return the lines of other tables, and the number of the line before which ours stood, or would stand."""
    kept: list[str] = []
    place = None
    ours = False
    for line in text.splitlines():
        if _TABLE.match(line):
            ours = re.match(rf"\s*\[mcp_servers\.\"?{SERVER_NAME}\"?[.\]]", line) is not None
        if not ours:
            kept.append(line)
        elif place is None:
            place = len(kept)
    return kept, len(kept) if place is None else place


_OBJECT: Final = TypeAdapter(dict[str, object])
_OBJECTS: Final = TypeAdapter(dict[str, dict[str, object]])
_BY_HAND: Final = "add the block by hand, or name another file with --file."
