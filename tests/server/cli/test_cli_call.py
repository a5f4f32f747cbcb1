import json
from pathlib import Path

import pytest

from cli_runs import CommandLine, write_graph
from kg_adapters.errors import InvalidRequest
from kg_server.commands.call import parse_arguments, split_arguments

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


def test_one_value_makes_a_list_of_one_and_half_a_list_is_refused_by_the_tool() -> None:
    assert parse_arguments({"triples": "Q1490"}, SCHEMA) == {"triples": ["Q1490"]}
    assert parse_arguments({"triples": '["Q1490"'}, SCHEMA) == {"triples": '["Q1490"'}


def test_arguments_are_split_at_the_first_equals_sign() -> None:
    assert split_arguments(["query=ASK { ?a ?b 'x=y' }", "type="]) == {"query": "ASK { ?a ?b 'x=y' }", "type": ""}


@pytest.mark.parametrize("written", [["Q5"], ["=Q5"], ["a=1", "a=2"]])
def test_arguments_without_a_key_or_twice_are_refused(written: list[str]) -> None:
    with pytest.raises(InvalidRequest):
        split_arguments(written)


def test_a_call_prints_the_text_that_a_model_would_read(cli: CommandLine, tmp_path: Path) -> None:
    run = cli.run("call", "GetNeighbor", "entity=Q17", "relation=P36", "--graph", str(write_graph(tmp_path)))
    assert run.code == 0
    assert run.out.splitlines() == ["Japan (Q17) | capital (P36) | Tokyo (Q1490)."]


def test_a_call_prints_the_structured_answer_as_json(cli: CommandLine, tmp_path: Path) -> None:
    run = cli.run("call", "GetNeighbor", "entity=Q17", "limit=1", "--json", "--graph", str(write_graph(tmp_path)))
    assert json.loads(run.out)["triples"] == [["Q17", "P36", "Q1490"]]


def test_a_refused_call_ends_with_1_and_the_reason_on_standard_error(cli: CommandLine, tmp_path: Path) -> None:
    run = cli.run("call", "GetNeighbor", "entity=Q5", "--json", "--graph", str(write_graph(tmp_path)))
    assert (run.code, run.out) == (1, "")
    assert "'Q5'" in run.err


def test_an_unknown_tool_ends_with_2_and_what_may_have_been_meant(cli: CommandLine, tmp_path: Path) -> None:
    run = cli.run("call", "getneighbour", "entity=Q17", "--graph", str(write_graph(tmp_path)))
    assert (run.code, run.out) == (2, "")
    assert "Did you mean GetNeighbor?" in run.err


def test_labels_come_in_the_languages_of_the_settings(cli: CommandLine, tmp_path: Path) -> None:
    graph = str(write_graph(tmp_path))
    run = cli.run("call", "GetNeighbor", "entity=Q17", "--graph", graph, KG_SEXTANT_LANGUAGES="de")
    assert "Tokio (Q1490)" in run.out


def test_a_folder_called_like_a_graph_is_mentioned_and_opens_by_its_path(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sample").mkdir()
    write_graph(Path("sample"))
    named = cli.run("call", "Schema", "--graph", "sample")
    assert "sample is the graph of that name. What is called so in this folder is ./sample.\n" in named.err
    assert named.out.startswith("Graph 'sample'")
    by_path = cli.run("call", "Schema", "--graph", "./sample")
    assert "graph of that name" not in by_path.err
    assert "japan" in by_path.out
