import json
import shlex
import tomllib

import pytest

from kg_server.clients import Host, Launch, block_for, claude_code_command

PLAIN = Launch("/opt/kg/bin/kg-sextant", ("serve", "sample"))
AWKWARD = Launch("/opt/my tools/kg-sextant", ("serve", '/data/a "b" \\ 😀.ttl'), {"KG_SEXTANT_LANGUAGES": "de,en"})


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("claude", {"mcpServers": {"kg-sextant": {"command": PLAIN.command, "args": ["serve", "sample"]}}}),
        ("cursor", {"mcpServers": {"kg-sextant": {"command": PLAIN.command, "args": ["serve", "sample"]}}}),
        (
            "vscode",
            {"servers": {"kg-sextant": {"type": "stdio", "command": PLAIN.command, "args": ["serve", "sample"]}}},
        ),
    ],
)
def test_each_host_gets_json_in_its_own_shape(host: Host, expected: object) -> None:
    assert json.loads(block_for(host, PLAIN).text) == expected


def test_codex_gets_toml() -> None:
    assert tomllib.loads(block_for("codex", PLAIN).text) == {
        "mcp_servers": {"kg-sextant": {"command": PLAIN.command, "args": ["serve", "sample"]}}
    }


def test_quotes_blanks_and_emoji_survive_in_toml_and_json() -> None:
    entry = {"command": AWKWARD.command, "args": list(AWKWARD.arguments), "env": dict(AWKWARD.environment)}
    assert tomllib.loads(block_for("codex", AWKWARD).text) == {"mcp_servers": {"kg-sextant": entry}}
    assert json.loads(block_for("cursor", AWKWARD).text) == {"mcpServers": {"kg-sextant": entry}}


def test_the_line_for_claude_code_is_quoted_for_a_shell() -> None:
    assert shlex.split(claude_code_command(AWKWARD)) == [
        *("claude", "mcp", "add", "kg-sextant", "--env", "KG_SEXTANT_LANGUAGES=de,en", "--"),
        *(AWKWARD.command, *AWKWARD.arguments),
    ]


def test_claude_is_told_both_ways() -> None:
    assert claude_code_command(PLAIN) in block_for("claude", PLAIN).where
