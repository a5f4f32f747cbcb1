"""What `ask` is told on the command line, in the settings file or in the environment has the same effect."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from cli_runs import CommandLine, Run
from kg_agents.trace import RunLine, read_trace
from oda_runs import ENOUGH, NEIGHBORS, selecting
from scripted_model import Scripted, calling, serving_model
from story_graphs import TOKYO, write_story

QUESTION = "What is the capital of Tokyo?"
WAYS = ("command line", "file", "environment")
PAPER = ("--set", "manner=paper")
COUNSEL = ("plan", "thought", "Finish[x]", "[no]", "Look.", "plan", "thought", "Finish[y]", "[yes]")
EXPLORED = (NEIGHBORS.format("Q1490"), selecting("Q1490,P36,Q179645"), ENOUGH, "Answer: Shinjuku")
CALLED = (
    calling(("GetNeighbor", '{"entity": "Tokyo"}')),
    calling(("answer", '{"answers": [{"text": "Shinjuku", "results": [1]}]}')),
)
ABSENT = "Keep: none\nAction: Answer\nNot in the graph: mayors\nOwn knowledge:\nKoike"
Script: TypeAlias = Sequence[Scripted]


def asked(cli: CommandLine, script: Script, *words: str, file: str = "", **environ: str) -> tuple[Run, list[str]]:
    """Ask with a settings file of so many more lines; return how it ended, and the model of each request."""
    folders = f"cache_folder = '{cli.cache}'\ndata_folder = '{cli.folder / 'data'}'\n"
    (cli.folder / "config.toml").write_text(folders + file, encoding="utf-8")
    graph = str(write_story(cli.folder, TOKYO))
    with serving_model(*script) as service:
        options = ["--graph", graph, "--entity", "Q1490", "--model", "m", "--base-url", service.url]
        run = cli.run("ask", QUESTION, *options, *words, **environ)
        return run, [each.model for each in service.asked]


def told(way: str, name: str, value: str, option: Sequence[str] = ()) -> tuple[tuple[str, ...], str, dict[str, str]]:
    """Return words, lines of a settings file and variables that say a setting in one of the ways."""
    words = tuple(option) if way == "command line" else ()
    line = f'{name} = "{value}"\n' if way == "file" else ""
    return words, line, {f"KG_SEXTANT_{name.upper()}": value} if way == "environment" else {}


def begun(cli: CommandLine) -> RunLine:
    (trace,) = (cli.folder / "data" / "traces").glob("*.jsonl")
    line = read_trace(trace)[0]
    assert isinstance(line, RunLine)
    return line


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("agent", "script", "models"),
    [
        ("graph-counselor", COUNSEL, ["m"] * 4 + ["other"] + ["m"] * 4),
        ("oda", EXPLORED, ["m", "other", "m", "m"]),
    ],
)
def test_another_model_reflects_wherever_it_is_named(
    cli: CommandLine, way: str, agent: str, script: Script, models: list[str]
) -> None:
    words, file, environ = told(way, "reflector_llm", "other", ("--reflector", "other"))
    run, used = asked(cli, script, "--agent", agent, *PAPER, *words, file=file, **environ)
    assert (used, begun(cli).reflector, "reflector" in run.err) == (models, "other", False)


@pytest.mark.parametrize("way", WAYS[1:])
def test_another_model_judges_and_reflects_wherever_it_is_named(cli: CommandLine, way: str) -> None:
    _, file, environ = told(way, "judge_llm", "other")
    _, used = asked(cli, COUNSEL, "--agent", "graph-counselor", *PAPER, file=file, **environ)
    assert used == ["m"] * 3 + ["other"] * 2 + ["m"] * 3 + ["other"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("agent", "script", "parameter"),
    [("tools", CALLED, "turns"), ("oda", [ABSENT], "iterations"), ("graph-counselor", ["Finish[x]", "[yes]"], "steps")],
)
def test_parameters_of_an_agent_count_wherever_they_are_written(
    cli: CommandLine, way: str, agent: str, script: Script, parameter: str
) -> None:
    written = f"{parameter}=3"
    words, file, environ = told(way, "agent_parameters", f"{written},tokens=7000", ("--set", written))
    asked(cli, script, "--agent", agent, *words, file=file, **environ)
    parameters = begun(cli).parameters
    limits = parameters["limits"]
    assert isinstance(limits, dict)
    assert (parameters[parameter], limits["tokens"] == 7_000) == (3, way != "command line")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--agent", "tools"],
        ["--agent", "oda"],
        ["--agent", "oda", "--ablation", "random-reflection"],
        ["--agent", "graph-counselor", "--set", "reflections=0"],
        ["--agent", "graph-counselor", "--ablation", "no-reflection"],
    ],
)
def test_a_model_that_is_to_reflect_where_nobody_does_is_refused(cli: CommandLine, words: list[str]) -> None:
    run, used = asked(cli, (), *words, "--reflector", "other")
    assert (run.code, run.out, used) == (2, "", [])
    assert "--reflector 'other': nobody reflects here. Graph Counselor does" in run.err


@pytest.mark.parametrize(("agent", "script"), [("tools", CALLED), ("oda", [ABSENT])])
def test_a_setting_for_reflections_that_nobody_makes_is_said_to_have_no_effect(
    cli: CommandLine, agent: str, script: Script
) -> None:
    run, used = asked(cli, script, "--agent", agent, "--json", file='reflector_llm = "other"\n')
    assert (set(used), begun(cli).reflector, run.code in {0, 5}) == ({"m"}, "", True)
    assert "The model of reflector_llm is not asked: nobody reflects here." in run.err
    assert json.loads(run.out)["tokens"] > 0


@pytest.mark.parametrize("closed_book", ["never", "apart", "allowed"])
@pytest.mark.parametrize(
    ("agent", "script"),
    [
        (
            "tools",
            (
                CALLED[0],
                calling(("answer", {"outcome": "not_in_graph", "reason": "mayors", "own_knowledge": ["Koike"]})),
            ),
        ),
        ("oda", (ABSENT,)),
        ("graph-counselor", ("Thought: t\nAction: Finish[Koike]", "mayors [not in the graph]")),
    ],
)
def test_what_a_model_knows_by_itself_is_shown_as_the_command_line_says(
    cli: CommandLine, agent: str, script: Script, closed_book: str
) -> None:
    run, _ = asked(cli, script, "--agent", agent, "--closed-book", closed_book, "--json")
    report = json.loads(run.out)
    answers = [(each["text"], each["source"]) for each in report["answers"]]
    allowed = closed_book == "allowed"
    assert (answers, report["status"]) == (([("Koike", "model")], "partly") if allowed else ([], "not_in_graph"))
    assert (report["model_answer"], run.code) == (["Koike"] if closed_book == "apart" else [], 0 if allowed else 5)
    assert "mayors" in report["explanation"]
    assert Path(report["trace"]).is_file()
