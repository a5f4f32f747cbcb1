from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from mcp.types import Tool

from cli_runs import CommandLine, Run, write_graph
from kg_server.commands.call import WRITERS, table_of
from kg_server.commands.invocation import COMPLETING
from kg_server.commands.shell import completions

TOOLS = [
    Tool(name="GetNeighbor", input_schema={"properties": {"entity": {}, "relation": {}, "limit": {}}}),
    Tool(name="Sparql", input_schema={"properties": {"query": {}}}),
]


@pytest.fixture
def typed(cli: CommandLine, tmp_path: Path) -> Callable[..., Run]:
    """Runs a shell on the small graph, which is imported before, with these lines."""
    graph = str(write_graph(tmp_path))
    cli.run("call", "Degree", "entity=Q17", "--graph", graph)
    return lambda *lines: cli.run_given("\n".join(lines), "shell", graph)


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


def test_tools_expressions_queries_and_names_are_answered_as_tables(typed: Callable[..., Run]) -> None:
    run = typed(
        "GetNeighbor entity=Japan relation=capital",
        "Count[Neighbor[Q17, capital]]",
        "SELECT ?x ?y",
        "WHERE { ?x wdt:P36 ?y }",
        "LIMIT 1",
        "",
        "Tokyo",
        ".quit",
        "never read",
    )
    said = words(run.out)
    assert (run.code, run.err) == (0, "")
    assert ["head", "relation", "tail"] in said
    assert ["Japan", "(Q17)", "capital", "(P36)", "Tokyo", "(Q1490)"] in said
    assert ["1", "1", "number"] in said
    assert ["Japan", "(Q17)", "Tokyo", "(Q1490)"] in said
    assert any(line[:2] == ["Exact:", "'Tokyo'"] for line in said)
    assert "never" not in run.out


def test_the_form_of_answers_can_be_changed_and_failures_end_with_1(typed: Callable[..., Run]) -> None:
    run = typed(
        ".output csv",
        "GetNeighbor entity=Q17 limit=1",
        "GetNeighbor entity=Q5",
        ".nonsense",
        'Feature entity="',
        ".tools",
    )
    assert run.code == 1
    assert "Q17,Japan,P36,capital,Q1490,Tokyo" in run.out.splitlines()
    assert ["'Q5'" in run.err, "Unknown command '.nonsense'." in run.err, "No closing quotation" in run.err] == [
        True
    ] * 3
    assert "Degree" in run.out


@pytest.mark.parametrize(
    ("before", "word", "expected"),
    [
        ("", "Get", ["GetNeighbor "]),
        ("", "Cou", ["Count["]),
        ("Count[", "nei", ["Neighbor["]),
        ("", "sel", ["SELECT"]),
        ("GetNeighbor ", "", ["entity=", "relation=", "limit="]),
        ("GetNeighbor entity=Q1 ", "re", ["relation="]),
        ("GetNeighbor limit=", "1", []),
    ],
)
def test_what_a_tab_offers(before: str, word: str, expected: list[str]) -> None:
    assert completions(before, word, TOOLS) == expected


@pytest.mark.parametrize(
    ("shell", "environ", "expected"),
    [
        ("bash", {"COMP_WORDS": "kg-sextant call GetN", "COMP_CWORD": "2"}, ["GetNeighbor"]),
        ("bash", {"COMP_WORDS": "kg-sextant call Feature ", "COMP_CWORD": "3"}, ["entity=", "feature="]),
        (
            "bash",
            {"COMP_WORDS": "kg-sextant call Feature entity = Frankfurt", "COMP_CWORD": "5"},
            ["Frankfurt", "Frankfurt\\ \\(Oder\\)"],
        ),
        ("bash", {"COMP_WORDS": "kg-sextant call Feature ent", "COMP_CWORD": "3"}, ["entity=", "entity=VALUE"]),
        (
            "fish",
            {
                "_TYPER_COMPLETE_ARGS": "kg-sextant call Feature entity=Frankfurt",
                "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            },
            ["entity=Frankfurt"],
        ),
    ],
)
def test_a_shell_completes_tools_arguments_and_entities(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, shell: str, environ: dict[str, str], expected: list[str]
) -> None:
    variables = {**environ, COMPLETING: f"complete_{shell}"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    run = cli.run(**variables)
    assert [line.partition("\t")[0] for line in run.out.splitlines()][: len(expected)] == expected


def test_completion_imports_no_file_and_offers_what_was_imported_before(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    graph = write_graph(tmp_path)

    def offered(*words: str) -> list[str]:
        environ = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1), COMPLETING: "complete_bash"}
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        run = cli.run(**environ, KG_SEXTANT_GRAPH=str(graph), KG_SEXTANT_CACHE_FOLDER=str(cli.cache))
        for name in environ:
            monkeypatch.delenv(name)
        return run.out.splitlines()

    entity = ("kg-sextant", "call", "Feature", "entity", "=", "Jap")
    assert offered("kg-sextant", "call", "GetN") == ["GetNeighbor"]
    assert offered("kg-sextant", "call", "Feature", "") == ["entity=", "feature="]
    assert offered(*entity) == []
    cli.run("call", "Degree", "entity=Q17", "--graph", str(graph))
    assert offered(*entity) == ["Japan"]
    graph.write_text(graph.read_text(encoding="utf-8") + "# more\n", encoding="utf-8")
    assert offered(*entity) == ["Japan"]


ANSWERS: list[tuple[dict[str, object], str]] = [
    ({"truth": True, "variables": [], "rows": []}, "answer\ntrue"),
    (
        {"triples": [["a", "r", "b"]], "values": [["a", "f", "1"]], "labels": {"a": "A"}},
        "head,head label,relation,tail\na,A,r,b\na,A,f,1",
    ),
    ({"paths": [[["a", "r", "b"], ["b", "r", "c"]]]}, "path,step,head,relation,tail\n1,1,a,r,b\n1,2,b,r,c"),
    (
        {"features": [["f", "x,y", "string"]], "relations": {"f": "F"}},
        'feature,feature label,value,type\nf,F,"x,y",string',
    ),
    (
        {"groups": [["a", "r", "out", "2", "0.1", "1", "b", "c"]]},
        "entity,relation,direction,count,score,hop,far ends\na,r,out,2,0.1,1,b c",
    ),
    ({"neighbors": 2, "outgoing": {"r": 2}, "incoming": {}}, "direction,relation,count\nout,r,2"),
    (
        {"entities": 1, "triples": 3, "classes": {"c": 1}, "relations": {"r": 2}, "features": {"f": 3}},
        "kind,id,count\nclass,c,1\nrelation,r,2\nfeature,f,3",
    ),
    ({"facts": [["1", "a", "r", "b", "verified"]]}, "path,head,relation,tail,verified\n1,a,r,b,verified"),
    (
        {"facts": [["1", "a", "r", "b", "verified", "one"], ["2", "a", "r", "c", "verified"]]},
        "path,head,relation,tail,verified,graph\n1,a,r,b,verified,one\n2,a,r,c,verified,",
    ),
    ({"paths": [[["a", "r", "b", "one"]]]}, "path,step,head,relation,tail,graph\n1,1,a,r,b,one"),
    ({"results": [["1", "a", "r", "2", "number", "one"]]}, "part,node,relation,result,type,graph\n1,a,r,2,number,one"),
    ({}, ""),
]


@pytest.mark.parametrize(("structured", "expected"), ANSWERS)
def test_the_rows_of_every_kind_of_answer_are_written(structured: dict[str, object], expected: str) -> None:
    assert WRITERS["csv"](table_of(structured)) == expected


def test_a_cell_of_markdown_stays_one_cell() -> None:
    table = table_of({"variables": ["x"], "rows": [["a|b\nc"]]})
    assert WRITERS["markdown"](table) == "| x |\n| --- |\n| a\\|b c |"


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_no_cell_of_a_table_is_a_formula(form: Literal["csv", "tsv"]) -> None:
    cells = ["=1+1", "+cmd", "-capital", "@SUM", "-1,000.5", "+2e3", "a=b"]
    table = table_of({"variables": ["x"], "rows": [[each] for each in cells]})
    assert WRITERS[form](table).replace('"', "").split("\n")[1:] == [*(f"'{each}" for each in cells[:4]), *cells[4:]]


def test_a_cell_of_markdown_is_no_markup() -> None:
    table = table_of({"variables": ["x"], "rows": [["<script>`a` & ![b](c)"]]})
    assert WRITERS["markdown"](table).split("\n")[2] == "| &lt;script&gt;\\`a\\` &amp; !\\[b\\](c) |"
