import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cli_runs import COMMAND, CommandLine, write_graph


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


def test_the_sample_stays_a_name(cli: CommandLine, tmp_path: Path) -> None:
    for name in ("sample", "sample:world"):
        args = entry(cli, KG_SEXTANT_GRAPH=name)["args"]
        assert args == ["--config", str(tmp_path / "config.toml"), "serve", name]


def test_settings_from_the_environment_go_along_because_hosts_do_not_pass_theirs(cli: CommandLine) -> None:
    found = entry(cli, KG_SEXTANT_LANGUAGES="de", KG_SEXTANT_GRAPH="sample", HOME="/root")
    assert found["env"] == {"KG_SEXTANT_LANGUAGES": "de"}


SECRETS = {
    "KG_SEXTANT_ENDPOINT_USER": "ada",
    "KG_SEXTANT_ENDPOINT_PASSWORD": "correct-horse",
    "KG_SEXTANT_LLM_API_KEY": "k",
    "KG_SEXTANT_LLM_BASE_URL": "https://bob:battery-staple@example.org/v1",
}


@pytest.mark.parametrize("host", ["claude", "cursor", "vscode", "codex"])
def test_secrets_are_printed_only_when_asked_for(cli: CommandLine, host: str) -> None:
    run = cli.run("config", host, "mine://ada:pin-code@example.org/?token=sesame", **SECRETS)
    shown = run.out + run.err
    told = [each for each in ("correct-horse", "battery-staple", "pin-code", "sesame", '"k"', "=k ") if each in shown]
    assert (run.code, told) == (0, [])
    assert "<KG_SEXTANT_ENDPOINT_PASSWORD>" in run.out
    assert run.err.splitlines()[-1] == (
        "Not shown: KG_SEXTANT_ENDPOINT_PASSWORD, KG_SEXTANT_LLM_API_KEY, KG_SEXTANT_LLM_BASE_URL, what stands in "
        "place of … in the arguments. Fill it in, or run this again with --show-secrets."
    )


def test_secrets_are_printed_when_asked_for(cli: CommandLine) -> None:
    assert entry(cli, "--show-secrets", **SECRETS)["env"] == SECRETS
