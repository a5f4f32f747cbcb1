import shlex
from pathlib import Path

import pytest

from cli_runs import CommandLine, write_graph
from kg_server.commands.failures import EXIT_CODES, ExitCode
from kg_server.commands.shell import EXAMPLES
from pages import ROOT


def test_tools_lists_every_tool_with_what_it_answers(cli: CommandLine) -> None:
    lines = cli.run("tools").out.splitlines()
    assert [line.split()[0] for line in lines[:-2]] == list(EXAMPLES)
    assert lines[5].endswith("  Count an entity's distinct neighbours, also by relation.")


def test_a_tool_is_shown_with_its_arguments_and_calls_to_copy(cli: CommandLine) -> None:
    text = cli.run("tools", "GetNeighbor").out
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith("  ")}
    assert rows["entity"] == ["string", "required;", "Id", "or", "name"]
    assert rows["direction"] == ["out|in|both", "default", '"out"']
    assert "  kg-sextant call GetNeighbor entity=Q1490 relation=P36" in text.splitlines()
    unknown = cli.run("tools", "GetNeigbor")
    assert (unknown.code, "Did you mean GetNeighbor?" in unknown.err) == (2, True)


def test_every_example_is_answered(cli: CommandLine) -> None:
    lines = [shlex.join([name, *words]) for name, calls in EXAMPLES.items() for words in calls]
    run = cli.run_given("\n".join(lines), "shell", "--output", "csv")
    # Only the one that reads a memory needs what another gives.
    assert [line[:9] for line in run.err.splitlines()] == ["No memory"]
    assert len(run.out.splitlines()) > 2 * len(lines)


def test_the_main_argument_comes_from_a_file_or_standard_input(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = tmp_path / "query.rq"
    query.write_text("SELECT ?x ?y WHERE { ?x wdt:P36 ?y }\n", encoding="utf-8")
    words = ("call", "Sparql", "--graph", str(write_graph(tmp_path)), "--output")
    table = "x,x label,y,y label\nQ17,Japan,Q1490,Tokyo\n"
    assert cli.run(*words, "csv", f"@{query}").out == table
    assert cli.run(*words, "tsv", f"@{query}").out == table.replace(",", "\t")
    assert cli.run(*words, "markdown", f"@{query}").out.splitlines()[2] == "| Japan (Q17) | Tokyo (Q1490) |"
    assert cli.run_given(query.read_text(encoding="utf-8"), *words, "csv", "-").out == table
    twice = cli.run(*words, "csv", f"@{query}", "query=ASK {}")
    assert (twice.code, "'query' is given twice" in twice.err) == (2, True)
    missing = cli.run(*words, "csv", "@none.rq")
    assert (missing.code, missing.err) == (2, "kg-sextant: '@none.rq' cannot be read: No such file or directory.\n")


def test_an_unwritable_home_is_no_reason_to_stop(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(in_the_way / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "config.toml").write_text("", encoding="utf-8")
    run = cli.run("call", "Degree", "entity=Q17", "--graph", str(write_graph(tmp_path)))
    assert (run.code, run.out.splitlines()[0][:11]) == (0, "Japan (Q17)")
    assert "cannot be written; " in run.err
    assert "Set cache_folder and data_folder to folders that can be written." in run.err


def test_the_page_of_the_command_line_lists_every_exit_code() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert rows == [f"| {int(code)} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    assert set(ExitCode) < set(EXIT_CODES)
