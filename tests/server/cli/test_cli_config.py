"""`kg-sextant config` and the blocks of clients' configurations."""

import json
import shlex
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from pydantic import TypeAdapter

from cli_runs import COMMAND, CommandLine, write_graph
from kg_adapters.errors import InvalidRequest
from kg_boundary.installation import in_cache, requirement
from kg_server.commands.commented_json import read_commented, with_member
from kg_server.commands.config import (
    Host,
    Launch,
    Remote,
    block_for,
    claude_code_command,
    client_file,
    merged,
)
from kg_server.commands.installation import lasting_command


def entry(cli: CommandLine, *words: str, **environ: str) -> dict[str, object]:
    """Run `config cursor` and return the server's entry."""
    run = cli.run("config", "cursor", *words, **environ)
    assert run.code == 0
    read: dict[str, dict[str, dict[str, object]]] = json.loads(run.out)
    return read["mcpServers"]["kg-sextant"]


def test_only_the_block_is_on_standard_output_and_its_place_is_on_standard_error(cli: CommandLine) -> None:
    run = cli.run("config", "codex")
    assert list(tomllib.loads(run.out)) == ["mcp_servers"]
    assert run.err == "Codex: ~/.codex/config.toml.\n"


def test_the_executable_and_the_graph_stand_there_by_absolute_path(tmp_path: Path) -> None:
    graph = write_graph(tmp_path)
    words = [*COMMAND, "config", "cursor", graph.name]
    out = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    found = json.loads(out)["mcpServers"]["kg-sextant"]
    assert Path(found["command"]).is_absolute()
    assert Path(found["command"]).parent == Path(sys.executable).parent
    assert found["args"][-2:] == ["serve", str(graph)]


def test_a_named_graph_is_started_with_its_name_and_what_is_set_for_it(cli: CommandLine, tmp_path: Path) -> None:
    graph = write_graph(tmp_path)
    environ = {"KG_SEXTANT_GRAPHS__JAPAN__TIMEOUT_S": "7", "KG_SEXTANT_GRAPHS__FILMS__ENDPOINT__TOKEN": "open-sesame"}
    found = entry(cli, f"japan={graph}", **environ)
    words = ["--config", str(tmp_path / "config.toml"), "serve", f"japan={graph}"]
    assert found["args"] == words
    hidden = "KG_SEXTANT_GRAPHS__FILMS__ENDPOINT__TOKEN"
    assert found["env"] == {**environ, hidden: f"<{hidden}>"}
    several = entry(cli, f"japan={graph}", "world=sample:world", **environ)
    assert several["args"] == [*words, "world=sample:world"]


def test_the_sample_stays_a_name(cli: CommandLine, tmp_path: Path) -> None:
    for name in ("sample", "sample:world"):
        args = entry(cli, KG_SEXTANT_GRAPH=name)["args"]
        assert args == ["--config", str(tmp_path / "config.toml"), "serve", name]


def test_settings_from_the_environment_go_along_because_hosts_do_not_pass_theirs(cli: CommandLine) -> None:
    found = entry(cli, KG_SEXTANT_LANGUAGES="de", KG_SEXTANT_GRAPH="sample", HOME="/root")
    assert found["env"] == {"KG_SEXTANT_LANGUAGES": "de"}


SECRETS = {
    "KG_SEXTANT_ENDPOINT__USER": "ada",
    "KG_SEXTANT_ENDPOINT__PASSWORD": "correct-horse",
    "KG_SEXTANT_LLM__API_KEY": "k",
    "KG_SEXTANT_LLM__BASE_URL": "https://bob:battery-staple@example.org/v1",
}


@pytest.mark.parametrize("host", get_args(Host))
def test_secrets_are_printed_only_when_asked_for(cli: CommandLine, host: str) -> None:
    run = cli.run("config", host, "https://ada:pin-code@example.org/?token=sesame", **SECRETS)
    shown = run.out + run.err
    told = [each for each in ("correct-horse", "battery-staple", "pin-code", "sesame", '"k"', "=k ") if each in shown]
    assert (run.code, told) == (0, [])
    assert "<KG_SEXTANT_ENDPOINT__PASSWORD>" in run.out
    assert run.err.splitlines()[-1] == (
        "Not shown: KG_SEXTANT_ENDPOINT__PASSWORD, KG_SEXTANT_LLM__API_KEY, KG_SEXTANT_LLM__BASE_URL, what stands in "
        "place of … in the arguments. Fill it in, or run this again with --show-secrets."
    )


def test_secrets_are_printed_when_asked_for(cli: CommandLine) -> None:
    assert entry(cli, "--show-secrets", **SECRETS)["env"] == SECRETS


def test_a_graph_that_is_not_there_is_refused(cli: CommandLine) -> None:
    run = cli.run("config", "cursor", "nowhere.ttl")
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("kg-sextant: There is no graph 'nowhere.ttl'.")


def test_what_runs_from_a_cache_is_started_by_what_can_install_it_again(tmp_path: Path) -> None:
    environment = tmp_path / "uv" / "archive-v0" / "x1"
    environment.mkdir(parents=True)
    (environment / "CACHEDIR.TAG").touch()
    assert not in_cache(environment)
    (tmp_path / "uv" / "CACHEDIR.TAG").touch()
    with pytest.raises(InvalidRequest, match="uv tool install"):
        lasting_command({"PATH": str(tmp_path)}, environment)
    for program, words in (("pipx", ["run", "--spec"]), ("uvx", ["--from"])):
        tool = tmp_path / program
        tool.touch(mode=0o755)
        expected = [str(tool), *words, requirement(), "kg-sextant"]
        assert lasting_command({"PATH": str(tmp_path)}, environment) == expected
    assert Path(requirement()).is_dir() or requirement().startswith("kg-sextant==")


def test_the_command_stands_beside_a_python_of_any_name() -> None:
    (command,) = lasting_command({})
    assert Path(command).is_file()
    assert (Path(command).name, Path(command).parent) == ("kg-sextant", Path(sys.executable).parent)


def test_the_block_is_written_into_the_file_of_a_client_and_the_old_one_kept(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    lines = (
        "{",
        '    "theme": "dark", // mine',
        '    "mcpServers": {',
        '        "other": {"command": "o"} // his',
        "    },",
        "}",
    )
    before = "\r\n".join(lines)
    file.write_bytes(before.encode())
    file.chmod(0o640)
    run = cli.run("config", "cursor", "sample", "--write", "--file", str(file))
    written = file.read_bytes().decode()
    assert run.code == 0
    start, end = written.split(",", 2)[0], written[written.index('"args": [\r\n') :]
    assert written.startswith(
        before[: before.index(" // his")] + ', // his\r\n        "kg-sextant": {\r\n            "command": '
    )
    assert (start, end.splitlines()[-5:]) == (
        '{\r\n    "theme": "dark"',
        ['                "sample"', "            ]", "        }", "    },", "}"],
    )
    assert (tmp_path / "mcp.json.bak").read_bytes() == before.encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert f"Written: {file} (before: {file}.bak). Restart the client." in run.out
    again = cli.run("config", "cursor", "sample", "--write", "--file", str(file))
    assert again.out == f"{file} has this server already.\n"
    beside = cli.run("config", "cursor", "sample:world", "--name", "world", "--write", "--file", str(file))
    assert (beside.err, '"world": {' in file.read_text(encoding="utf-8")) == ("", True)
    other = cli.run("config", "cursor", "sample", "--name", "world", "--write", "--file", str(file))
    assert other.err.startswith("This replaces the server world. To add one beside it, give it another name")
    kept = TypeAdapter(dict[str, object]).validate_python(read_commented(file.read_text(encoding="utf-8")))
    servers = TypeAdapter(dict[str, object]).validate_python(kept["mcpServers"])
    assert list(servers) == ["other", "kg-sextant", "world"]


def test_a_name_that_not_every_client_takes_is_refused(cli: CommandLine) -> None:
    run = cli.run("config", "zed", "--name", "my graph")
    assert (run.code, run.out) == (2, "")
    assert "--name takes up to 64 letters" in run.err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ("// x\n{ /* y */ }\n", '// x\n{ /* y */\n  "a": {\n    "b": 1\n  }\n}\n'),
        ('{"a": {"b": [2, {"c": "}"}], "d": 3}}', '{"a": {"b": 1, "d": 3}}'),
        ('{"c": "// no, }", "a": {},}', '{"c": "// no, }", "a": {\n  "b": 1\n},}'),
        (
            '{\n\t"a": {\n\t\t"c": 2, // of c, }\n\t\t/* more */\n\t}\n}',
            '{\n\t"a": {\n\t\t"c": 2, // of c, }\n\t\t/* more */\n\t\t"b": 1\n\t}\n}',
        ),
    ],
)
def test_a_member_is_set_and_comments_commas_and_order_stay(before: str, after: str) -> None:
    assert with_member(before, ("a", "b"), 1) == after
    read = read_commented(after)
    assert isinstance(read, dict)
    assert read["a"]["b"] == 1


@pytest.mark.parametrize("text", ["/* mine\n{}", "[]", '{"mcpServers": []}', '{"mcpServers": {}'])
def test_a_file_of_another_form_is_left_as_it_is(cli: CommandLine, tmp_path: Path, text: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text, encoding="utf-8")
    run = cli.run("config", "claude", "--write", "--file", str(file))
    assert (run.code, run.out, file.read_text(encoding="utf-8")) == (2, "", text)
    assert ("Nothing was written" in run.err, list(tmp_path.glob("*.bak"))) == (True, [])


OTHERS = '# mine\nmodel = "m"\n\n[mcp_servers.other]\ncommand = "o"\n'

OURS = '\n[mcp_servers.kg-sextant]\ncommand = "/k"\nargs = ["serve", "sample"]\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", OURS.lstrip()),
        (OTHERS, OTHERS + OURS),
        (
            '[mcp_servers.kg-sextant]\ncommand = "old"\n[mcp_servers.kg-sextant.env]\nA = "b"\n[z]\n',
            OURS.lstrip() + "\n[z]\n",
        ),
    ],
)
def test_a_table_of_codex_is_added_or_replaced(before: str, after: str) -> None:
    launch = Launch("/k", ("serve", "sample"))
    assert merged("codex", launch, before, Path("config.toml")) == after
    assert merged("codex", launch, after, Path("config.toml")) == after


@pytest.mark.parametrize("text", ["a = ", 'mcp_servers = {kg-sextant = {command = "x"}}', "mcp_servers = 3"])
def test_a_file_of_codex_that_cannot_be_changed_by_table_is_left_as_it_is(text: str) -> None:
    with pytest.raises(InvalidRequest, match="Nothing was written"):
        merged("codex", Launch("/k", ()), text, Path("config.toml"))


@pytest.mark.parametrize(
    ("host", "system", "environ", "expected"),
    [
        ("claude", "linux", {}, "/h/.config/Claude/claude_desktop_config.json"),
        ("claude", "darwin", {}, "/h/Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude", "win32", {"APPDATA": "/r"}, "/r/Claude/claude_desktop_config.json"),
        ("cursor", "linux", {}, "/h/.cursor/mcp.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Code/User/mcp.json"),
        ("codex", "darwin", {"CODEX_HOME": "/c"}, "/c/config.toml"),
        ("claude-code", "linux", {}, "/h/.claude.json"),
        ("windsurf", "win32", {}, "/h/.codeium/windsurf/mcp_config.json"),
        ("zed", "darwin", {}, "/h/.config/zed/settings.json"),
        ("zed", "win32", {"APPDATA": "/r"}, "/r/zed/settings.json"),
        ("gemini", "linux", {}, "/h/.gemini/settings.json"),
        ("lmstudio", "linux", {}, "/h/.lmstudio/mcp.json"),
    ],
)
def test_every_client_has_its_file(host: Host, system: str, environ: dict[str, str], expected: str) -> None:
    assert client_file(host, Path("/h"), environ, system) == Path(expected)


PLAIN = Launch("/opt/kg/bin/kg-sextant", ("serve", "sample"))

AWKWARD = Launch("/opt/my tools/kg-sextant", ("serve", '/data/a "b" \\ 😀.ttl'), {"KG_SEXTANT_LANGUAGES": "de,en"})


@pytest.mark.parametrize(
    ("host", "key", "more"),
    [
        ("claude", "mcpServers", {}),
        ("claude-code", "mcpServers", {"type": "stdio", "alwaysLoad": True}),
        ("vscode", "servers", {"type": "stdio"}),
        ("zed", "context_servers", {}),
    ],
)
def test_each_host_gets_json_in_its_own_shape(host: Host, key: str, more: dict[str, object]) -> None:
    entry = {**more, "command": PLAIN.command, "args": ["serve", "sample"]}
    assert json.loads(block_for(host, PLAIN).text) == {key: {"kg-sextant": entry}}


HOSTED = "https://kg.example.org/mcp"


@pytest.mark.parametrize(
    ("host", "section", "entry", "headers"),
    [
        ("claude-code", "mcpServers", {"type": "http", "url": HOSTED, "alwaysLoad": True}, "headers"),
        ("cursor", "mcpServers", {"url": HOSTED}, "headers"),
        ("vscode", "servers", {"type": "http", "url": HOSTED}, "headers"),
        ("codex", "mcp_servers", {"url": HOSTED}, "http_headers"),
        ("windsurf", "mcpServers", {"serverUrl": HOSTED}, "headers"),
        ("zed", "context_servers", {"url": HOSTED}, "headers"),
        ("gemini", "mcpServers", {"httpUrl": HOSTED}, "headers"),
        ("lmstudio", "mcpServers", {"url": HOSTED}, "headers"),
    ],
)
def test_each_host_calls_a_hosted_server_with_a_token_or_logs_in_by_itself(
    cli: CommandLine, host: Host, section: str, entry: dict[str, object], headers: str
) -> None:
    read = tomllib.loads if host == "codex" else json.loads
    words, token = ("config", host, "--server", HOSTED), {"KG_SEXTANT_SERVER_TOKEN": "sesame-open"}
    assert read(cli.run(*words).out) == {section: {"kg-sextant": entry}}
    for more, shown in (((), "<KG_SEXTANT_SERVER_TOKEN>"), (("--show-secrets",), "sesame-open")):
        run = cli.run(*words, *more, **token)
        with_token = {**entry, headers: {"Authorization": f"Bearer {shown}"}}
        assert read(run.out) == {section: {"kg-sextant": with_token}}
        assert ("Not shown: the token" in run.err, "sesame" in run.err) == (not more, bool(more) and host in SHOWN)


SHOWN = {"claude-code"}
"""Whose hint is a command that holds the token."""


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("claude", "--server", HOSTED), "Add custom connector"),
        (("cursor", "sample", "--server", HOSTED), "not both"),
        (("cursor", "--server", "kg.example.org"), "must start with http:// or https://"),
    ],
)
def test_a_hosted_server_that_cannot_be_configured_is_refused_with_the_reason(
    cli: CommandLine, words: tuple[str, ...], reason: str
) -> None:
    run = cli.run("config", *words)
    assert (run.code, run.out, reason in run.err) == (2, "", True)


def test_quotes_blanks_and_emoji_survive_in_toml_and_json() -> None:
    entry = {"command": AWKWARD.command, "args": list(AWKWARD.arguments), "env": dict(AWKWARD.environment)}
    assert tomllib.loads(block_for("codex", AWKWARD).text) == {"mcp_servers": {"kg-sextant": entry}}
    assert json.loads(block_for("cursor", AWKWARD).text) == {"mcpServers": {"kg-sextant": entry}}


@pytest.mark.parametrize(
    "server",
    [
        PLAIN,
        AWKWARD,
        Launch("/opt/it's here/kg-sextant", ("serve", "$HOME/`a`.ttl"), {"KG_SEXTANT_NAME": 'Ada\'s "own" $graph!'}),
        Remote("https://kg.example.org/mcp", "it's $ecret"),
    ],
)
def test_the_line_for_claude_code_adds_what_is_written_into_its_file(server: Launch | Remote) -> None:
    """A shell reads it as it was printed, and the JSON in it is the server's entry, whatever it holds."""
    *words, given = shlex.split(claude_code_command(server, "people"))
    block = block_for("claude-code", server, "people")
    written = json.loads(block.text)["mcpServers"]["people"]
    assert (words, json.loads(given)) == (["claude", "mcp", "add-json", "people"], written)
    assert written["alwaysLoad"] is True
    added = merged("claude-code", server, "", Path("f"), "people")
    assert json.loads(added)["mcpServers"]["people"] == written
    assert block.where == f"Claude Code: run this instead: {claude_code_command(server, 'people')}"
    printed = subprocess.run(
        ["/bin/sh", "-c", f"claude() {{ printf '%s\\n' \"$@\"; }}; {claude_code_command(server, 'people')}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(printed.stdout.splitlines()[-1]) == written
