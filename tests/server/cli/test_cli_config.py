import json
import subprocess
import sys
import tomllib
from pathlib import Path

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
    assert entry(cli)["args"] == ["--config", str(tmp_path / "config.toml"), "serve", "sample"]


def test_settings_from_the_environment_go_along_because_hosts_do_not_pass_theirs(cli: CommandLine) -> None:
    found = entry(cli, KG_SEXTANT_LANGUAGES="de", KG_SEXTANT_GRAPH="sample", HOME="/root")
    assert found["env"] == {"KG_SEXTANT_LANGUAGES": "de"}
