"""`kg-sextant call` and `tools`."""

import json
import shlex
from pathlib import Path

import pytest

from calls import plain
from cli_runs import CommandLine, write_graph
from kg_adapters.errors import InvalidRequest
from kg_server.commands.output import EXIT_CODES, ExitCode
from kg_server.commands.tools import EXAMPLES, parse_arguments, split_arguments
from pages import ROOT
from patience import PATIENCE_S

SCHEMA: dict[str, object] = {
    "properties": {
        "entity": {"type": "string"},
        "relation": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "direction": {"enum": ["out", "in"]},
        "limit": {"type": "integer"},
        "max_tokens": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "avoid_hubs": {"type": "boolean"},
        "timeout_s": {"type": "number"},
        "triples": {"type": "array", "items": {"type": "string"}},
        "text": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    }
}


def test_values_are_read_as_the_schema_of_the_tool_says() -> None:
    written = {
        "entity": "42",
        "relation": "null",
        "direction": "out",
        "limit": "5",
        "max_tokens": "300",
        "avoid_hubs": "false",
        "timeout_s": "0.5",
        "triples": '["a", "b"]',
    }
    assert parse_arguments(written, SCHEMA) == {
        "entity": "42",
        "relation": "null",
        "direction": "out",
        "limit": 5,
        "max_tokens": 300,
        "avoid_hubs": False,
        "timeout_s": 0.5,
        "triples": ["a", "b"],
    }


def test_what_cannot_be_read_stays_text_for_the_tool_to_refuse() -> None:
    assert parse_arguments({"limit": "many", "unknown": "1"}, SCHEMA) == {"limit": "many", "unknown": "1"}


def test_one_value_makes_a_list_of_one_and_half_a_list_is_refused() -> None:
    assert parse_arguments({"triples": "Q1490", "text": "[sic]"}, SCHEMA) == {"triples": ["Q1490"], "text": "[sic]"}
    for name in ("triples", "text"):
        with pytest.raises(
            InvalidRequest, match=f"The value of '{name}' begins .* not valid JSON from character 10 on"
        ):
            parse_arguments({name: '["Q1490",'}, SCHEMA)


def test_arguments_are_split_at_the_first_equals_sign() -> None:
    assert split_arguments(["query=ASK { ?a ?b 'x=y' }", "type="]) == {"query": "ASK { ?a ?b 'x=y' }", "type": ""}


def test_values_without_a_key_are_those_of_the_first_arguments() -> None:
    written = split_arguments(["Q5", "limit=3", "?x = 1"])
    assert parse_arguments(written, SCHEMA) == {"entity": "Q5", "relation": "?x = 1", "limit": 3}


@pytest.mark.parametrize("written", [["limit=1", "limit=2"], ["Q5", "entity=Q6"], ["entity=Q6", "Q5"], ["Q5"] * 12])
def test_arguments_given_twice_or_too_many_are_refused(written: list[str]) -> None:
    with pytest.raises(InvalidRequest, match=r"is given twice; give it once|This tool has . arguments: entity, rel"):
        parse_arguments(split_arguments(written), SCHEMA)


def test_a_call_prints_the_text_that_a_model_would_read(cli: CommandLine, tmp_path: Path) -> None:
    run = cli.run("call", "getneighbor", "Q17", "relation=P36", "--graph", str(write_graph(tmp_path)))
    assert run.code == 0
    assert plain(run.out).splitlines() == ["Japan | capital | Tokyo."]


def test_a_call_prints_the_structured_answer_as_json(cli: CommandLine, tmp_path: Path) -> None:
    run = cli.run("call", "GetNeighbor", "entity=Q17", "limit=1", "--json", "--graph", str(write_graph(tmp_path)))
    assert json.loads(run.out)["triples"] == [["Q17", "P36", "Q1490"]]


def test_tools_are_listed_as_json_with_their_schemas(cli: CommandLine) -> None:
    tool = json.loads(cli.run("tools", "Degree", "--json").out)
    assert (tool["name"], tool["inputSchema"]["required"]) == ("Degree", ["entity"])


def test_a_refused_call_ends_with_1_and_the_reason_on_standard_error(cli: CommandLine, tmp_path: Path) -> None:
    run = cli.run("call", "GetNeighbor", "entity=Q5", "--json", "--graph", str(write_graph(tmp_path)))
    assert (run.code, run.out) == (1, "")
    assert "'Q5'" in run.err


def test_an_unknown_tool_ends_with_2_and_what_may_have_been_meant(cli: CommandLine, tmp_path: Path) -> None:
    run = cli.run("call", "getneighbour", "entity=Q17", "--graph", str(write_graph(tmp_path)))
    assert (run.code, run.out) == (2, "")
    assert "Did you mean GetNeighbor?" in run.err


def test_a_tool_in_place_of_a_command_is_refused_with_the_command_that_calls_it(cli: CommandLine) -> None:
    run = cli.run("retrieve", "Johann Wolfgang", "--json")
    assert (run.code, run.out) == (2, "")
    assert run.err.endswith(" call Retrieve 'Johann Wolfgang' --json\n")
    assert run.err.startswith("kg-sextant: Retrieve is a tool, not a command. Call it: kg-sextant --config ")


def test_labels_come_in_the_languages_of_the_settings(cli: CommandLine, tmp_path: Path) -> None:
    graph = str(write_graph(tmp_path))
    run = cli.run("call", "GetNeighbor", "entity=Q17", "--graph", graph, KG_SEXTANT_LANGUAGES="de")
    assert "Tokio" in run.out


def test_a_folder_called_like_a_graph_is_mentioned_and_opens_by_its_path(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sample").mkdir()
    write_graph(Path("sample"))
    named = cli.run("call", "Schema", "--graph", "sample")
    assert "sample is the graph of that name. What is called so in this folder is ./sample.\n" in named.err
    assert named.out.startswith("Graph 'sample': 15,777 entities")
    by_path = cli.run("call", "Schema", "--graph", "./sample")
    assert "graph of that name" not in by_path.err
    assert by_path.out.startswith("Graph 'sample': 2 entities")


def test_tools_lists_every_tool_with_what_it_answers(cli: CommandLine) -> None:
    lines = cli.run("tools").out.splitlines()
    assert [line.split()[0] for line in lines[:-2]] == list(EXAMPLES)
    assert "  Count how many neighbours an entity has" in lines[5]


def test_a_tool_is_shown_with_its_arguments_and_calls_to_copy(cli: CommandLine) -> None:
    text = cli.run("tools", "GetNeighbor").out
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith("  ")}
    assert rows["entity"] == ["string", "required;", "Id", "or", "name"]
    assert rows["direction"] == ["out|in|both", "default", '"out"']
    assert "  kg-sextant call GetNeighbor entity=Q17 relation=P36" in text.splitlines()
    unknown = cli.run("tools", "GetNeigbor")
    assert (unknown.code, "Did you mean GetNeighbor?" in unknown.err) == (2, True)


def test_every_example_is_answered(cli: CommandLine) -> None:
    more = {"Sparql": (f"timeout_s={PATIENCE_S:g}",)}
    lines = [shlex.join((name, *words, *more.get(name, ()))) for name, calls in EXAMPLES.items() for words in calls]
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
    assert (run.code, run.out.splitlines()[0][:5]) == (0, "Japan")
    assert "cannot be written; " in run.err
    assert "Set cache_folder and data_folder to folders that can be written." in run.err


def test_the_page_of_the_command_line_lists_every_exit_code() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert rows == [f"| {int(code)} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    assert set(ExitCode) < set(EXIT_CODES)
