"""The command line: help, versions, wrong words and settings."""

import json
import os
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from cli_runs import COMMAND, CommandLine, write_graph
from kg_adapters.errors import BackendUnavailable, InvalidRequest, UnknownEntity
from kg_server import demo
from kg_server.commands.output import FailuresForPeople


def ended(error: BaseException, *, debug: bool = False) -> object:
    with pytest.raises(SystemExit) as caught, FailuresForPeople(debug=debug):
        raise error
    return caught.value.code


KEY = "sk-5f3a9c-of-mine"


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        (["serve", "--log-level", KEY], {}),
        (["serve", "--http", KEY], {}),
        (["serve", "--http", f"{KEY}:{KEY}"], {}),
        (["serve", "--languages", f"{KEY}!"], {}),
        (["ask", "Who?", "--base-url", KEY], {}),
        (["ask", "Who?", "--model", "m", "--set", KEY], {}),
        (["ask", "Who?", "--model", "m", "--set", f"hops={KEY}"], {}),
        (["ask", "Who?", "--model", "m"], {"KG_SEXTANT_AGENT_PARAMETERS": KEY}),
        (["call", "Schema", "--graph", "http://127.0.0.1:9/"], {"KG_SEXTANT_ENDPOINT__DEFAULT_GRAPHS": KEY}),
        (["call", "Schema", "--graph", "http://127.0.0.1:9/"], {"KG_SEXTANT_ENDPOINT__NAMED_GRAPHS": KEY}),
        (["call", "Schema", "--graph", "https://127.0.0.1:9/"], {"KG_SEXTANT_ENDPOINT__CA_FILE": KEY}),
        (["call", "Schema", "--graph", "wikidata"], {"KG_SEXTANT_WIKIDATA__API_URL": KEY}),
    ],
)
def test_a_key_given_as_another_setting_is_not_shown(
    cli: CommandLine, words: list[str], environ: dict[str, str]
) -> None:
    run = cli.run("--debug", *words, **environ)
    assert run.code in {1, 2}
    assert KEY not in run.out + run.err


def test_version_prints_the_distribution_and_its_version(cli: CommandLine) -> None:
    run = cli.run("--version")
    assert (run.code, run.out) == (0, f"kg-sextant {version('kg-sextant')}\n")


def test_help_names_every_command_and_documents_the_exit_codes(cli: CommandLine) -> None:
    text = cli.run("--help").out
    assert [name for name in ("serve", "call", "import", "doctor", "config") if name not in text] == []
    assert "1 the request failed or was refused; 2 wrong usage" in " ".join(text.split())
    assert "<bool>" not in text


def test_help_before_a_command_names_every_other_too(cli: CommandLine) -> None:
    assert cli.run("--help", "serve").out == cli.run("--help").out


def test_a_misspelt_command_is_told_apart_from_an_argument_that_is_called_like_one(cli: CommandLine) -> None:
    run = cli.run("sreve", "tools")
    assert (run.code, run.out) == (2, "")
    assert "No such command 'sreve'. Did you mean 'serve'?" in run.err


@pytest.mark.parametrize("words", [("sreve",), ("call",), ("config", "emacs"), ("serve", "--port", "1")])
def test_wrong_words_end_with_2_and_a_hint_on_standard_error(cli: CommandLine, words: tuple[str, ...]) -> None:
    run = cli.run(*words)
    assert (run.code, run.out) == (2, "")
    assert "--help" in run.err


def test_a_wrong_setting_ends_with_2_and_one_sentence(cli: CommandLine) -> None:
    run = cli.run("config", "cursor", KG_SEXTANT_TIMEOUT="5")
    assert (run.code, run.out) == (2, "")
    assert run.err == (
        "kg-sextant: Unknown setting: KG_SEXTANT_TIMEOUT in the environment. Did you mean KG_SEXTANT_TIMEOUT_S?\n"
    )


def test_a_graph_that_does_not_exist_ends_with_2_and_says_what_is_expected(cli: CommandLine) -> None:
    run = cli.run("call", "Schema", "--graph", "nowhere.ttl")
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("kg-sextant: There is no graph 'nowhere.ttl'. Expected sample,")


def test_a_command_for_one_graph_refuses_several(cli: CommandLine) -> None:
    several = {"KG_SEXTANT_GRAPHS__FILMS": "f.ttl", "KG_SEXTANT_GRAPHS__PEOPLE": "p.ttl"}
    run = cli.run("notes", **several)
    assert (run.code, run.out) == (2, "")
    assert run.err == "kg-sextant: This command works with one graph, not with films and people: name one.\n"


def test_one_of_several_graphs_is_called_by_its_name(cli: CommandLine) -> None:
    several = {"KG_SEXTANT_GRAPHS__WORLD": "sample:world", "KG_SEXTANT_GRAPHS__PEOPLE": "p.ttl"}
    run = cli.run("call", "Retrieve", "London", "--graph", "world", **several)
    wrong = cli.run("call", "Schema", "--graph", "wolrd", **several)
    assert (run.code, "London" in run.out) == (0, True)
    assert wrong.code == 2
    assert "has no graph 'wolrd'. Did you mean world? Its graphs are people, world." in wrong.err


def test_commands_work_over_several_graphs(cli: CommandLine, tmp_path: Path) -> None:
    graphs = ("--graph", "world=sample:world", "--graph", f"japan={write_graph(tmp_path)}")
    every = cli.run("call", "Retrieve", "Tokyo", *graphs)
    table = cli.run("call", "Retrieve", "Tokyo", "--output", "csv", *graphs)
    one = cli.run("call", "Degree", "Tokyo", "graph=japan", *graphs)
    schema = cli.run("call", "Schema", *graphs)
    listed = cli.run("tools", "Degree", *graphs)
    typed = cli.run_given("Tokyo\nDegree Japan graph=japan\n", "shell", "sample:world", graphs[-1])
    checked = cli.run("doctor", "world=sample:world", graphs[-1], "--json", KG_SEXTANT_LINKS="P36,zz:isbn,wdt:P999")
    assert [run.code for run in (every, one, listed, typed, checked)] == [0, 0, 0, 0, 0]
    assert [line for line in every.out.splitlines() if line.startswith("In ")] == ["In world:", "In japan:"]
    assert list(dict.fromkeys(line.rpartition(",")[2] for line in table.out.splitlines())) == [
        "graph",
        "world",
        "japan",
    ]
    assert "Tokyo (Q1490)" in one.out
    assert "\njapan: 2 things" in schema.out
    assert "graph  " in listed.out
    assert "Japan (Q17) has 1 distinct neighbour" in typed.out
    told = [finding["text"] for finding in json.loads(checked.out)["findings"]]
    assert {"world: The graph is on this machine", "japan: The graph is on this machine"} <= {*told}
    unused = [text.partition("fact of ")[2].partition(",")[0] for text in told if text.startswith("links: ")]
    assert unused == ["zz:isbn", "wdt:P999"]


@pytest.mark.parametrize("words", [["token", "list"], ["config", "cursor", "--server", "http://127.0.0.1:9/mcp"]])
def test_a_command_that_needs_no_graph_works_with_the_settings_of_several(cli: CommandLine, words: list[str]) -> None:
    run = cli.run(*words, KG_SEXTANT_GRAPHS__FILMS="f.ttl", KG_SEXTANT_GRAPHS__PEOPLE="p.ttl")
    assert run.code == 0


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidRequest("Wrong."), 2),
        (UnknownEntity("Q0"), 1),
        (BackendUnavailable("Gone."), 1),
        (PermissionError(13, "Permission denied", "/root"), 1),
        (ZeroDivisionError("division by zero"), 3),
    ],
)
def test_every_kind_of_failure_has_its_exit_code_and_no_traceback(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(error) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert captured.err.startswith("kg-sextant: ")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ExceptionGroup("tasks", [ExceptionGroup("more", [InvalidRequest("Wrong.")])]), 2, "kg-sextant: Wrong.\n"),
        (BaseExceptionGroup("tasks", [SystemExit(1)]), 1, ""),
        (ExceptionGroup("tasks", [InvalidRequest("One."), InvalidRequest("Two.")]), 3, "kg-sextant: a bug stopped"),
    ],
)
def test_a_single_failure_inside_a_task_group_reads_like_one_outside(
    error: BaseException, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(error) == code
    assert capsys.readouterr().err.startswith(message)


def test_a_traceback_appears_with_debug(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(ZeroDivisionError("division by zero"), debug=True) == 3
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_debug_may_stand_anywhere(cli: CommandLine) -> None:
    run = cli.run("call", "Schema", "--graph", "nowhere.ttl", "--debug")
    assert run.code == 2
    assert "Traceback (most recent call last)" in run.err


def in_ascii(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command whose output can take nothing but ASCII."""
    environ = {**os.environ, "PYTHONIOENCODING": "ascii", "KG_SEXTANT_CACHE_FOLDER": str(folder / "cache")}
    return subprocess.run([*COMMAND, *words], env=environ, capture_output=True, text=True, check=False)


def test_characters_that_the_output_cannot_show_are_escaped_except_in_a_block_that_this_would_change(
    tmp_path: Path,
) -> None:
    graph = tmp_path / "tōkyō.nt"
    graph.touch()
    written = in_ascii(tmp_path, "config", "cursor", str(graph))
    assert (written.returncode, written.stdout) == (2, "")
    assert "PYTHONUTF8=1" in written.stderr
    missing = in_ascii(tmp_path, "replay", "tōkyō")
    assert r"The trace t\u014dky\u014d cannot be read" in missing.stderr


def test_a_reader_that_leaves_early_gets_no_complaint() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COMMAND, "config", "cursor"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "Cursor: ~/.cursor/mcp.json, or .cursor/mcp.json in a project.\n")


def test_the_demo_answers_its_question_with_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--cache-folder", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Answer: 1749, Arthur Schopenhauer (Q38193)" in lines
    evidence = lines[lines.index("Evidence:") + 1 :]
    assert evidence[:3] == [
        "  Johann Wolfgang von Goethe (Q5879) | date of birth (P569) | 1749",
        "  Albert Einstein (Q937) | influenced by (P737) | Arthur Schopenhauer (Q38193)",
        "  Arthur Schopenhauer (Q38193) | influenced by (P737) | Johann Wolfgang von Goethe (Q5879)",
    ]
    tools = ["Retrieve", "GetNeighbor", "Retrieve", "observe", "GetNeighbor", "GetPath", "Compose", "memory-append"]
    assert [line.split()[1] for line in lines if line.startswith("   ▸ ")] == [*tools, "memory-read"]
    assert any(" holds 2 facts in 1 path." in line for line in lines)
    start = next(number for number, line in enumerate(lines) if line.startswith("Now connect your assistant"))
    block = "\n".join(lines[lines.index("{", start) : lines.index("}", start) + 1])
    assert json.loads(block)["mcpServers"]["kg-sextant"]["args"][-2:] == ["serve", "sample"]


def test_the_demo_fails_when_its_server_does_not_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert demo.main(["--cache-folder", str(tmp_path / "file" / "cache")]) == 1
    assert "The demo failed" in capsys.readouterr().out
