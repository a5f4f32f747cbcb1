"""`kg-sextant ask`: its settings, its tools and what a terminal shows."""

import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from cli_runs import (
    ABOUT_TOKYO,
    CALLED,
    EVIDENCE,
    EXPLORED,
    PAPER,
    QUESTION,
    CommandLine,
    Run,
    Script,
    Shown,
    asked,
    run_in_terminal,
)
from kg_agents.evidence.answers import AgentAnswer, GivenAnswer, RunStep
from kg_agents.evidence.values import EntityMatch, IdLabels
from kg_agents.linking import LinkedPart, Linking
from kg_agents.llm import Usage
from kg_agents.trace import RunLine, read_trace
from kg_boundary.shown import visible_line
from kg_server.commands.run_view import DOING, LiveView, PlainView, RunView
from kg_server.settings import variable
from scripted_model import Failure, calling, serving_model
from small_graphs import TOKYO, write_story

WAYS = ("command line", "file", "environment")

COUNSEL = ("plan", "thought", "Finish[x]", "[no]", "Look.", "plan", "thought", "Finish[y]", "[yes]")

ABSENT = "Keep: none\nAction: Answer\nNot in the graph: mayors\nOwn knowledge:\nKoike"


def asked_with(cli: CommandLine, script: Script, *words: str, file: str = "", **environ: str) -> tuple[Run, list[str]]:
    """Ask with a settings file of so many more lines; return how it ended, and the model of each request."""
    folders = f"cache_folder = '{cli.cache}'\ndata_folder = '{cli.folder / 'data'}'\n"
    (cli.folder / "config.toml").write_text(folders + file, encoding="utf-8")
    run, requests = asked(cli, script, *ABOUT_TOKYO, *words, **environ)
    return run, [each.model for each in requests]


def told(way: str, name: str, value: str, option: Sequence[str] = ()) -> tuple[tuple[str, ...], str, dict[str, str]]:
    """Return words, lines of a settings file and variables that say a setting in one of the ways."""
    words = tuple(option) if way == "command line" else ()
    line = f'{name} = "{value}"\n' if way == "file" else ""
    return words, line, {variable(name): value} if way == "environment" else {}


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
    words, file, environ = told(way, "llm.reflector", "other", ("--reflector", "other"))
    run, used = asked_with(cli, script, "--agent", agent, *PAPER, *words, file=file, **environ)
    assert (used, begun(cli).reflector, "reflector" in run.err) == (models, "other", False)


@pytest.mark.parametrize("way", WAYS[1:])
def test_another_model_judges_and_reflects_wherever_it_is_named(cli: CommandLine, way: str) -> None:
    _, file, environ = told(way, "llm.judge", "other")
    _, used = asked_with(cli, COUNSEL, "--agent", "graph-counselor", *PAPER, file=file, **environ)
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
    asked_with(cli, script, "--agent", agent, *words, file=file, **environ)
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
    run, used = asked_with(cli, (), *words, "--reflector", "other")
    assert (run.code, run.out, used) == (2, "", [])
    assert "--reflector 'other': nobody reflects here. Graph Counselor does" in run.err


@pytest.mark.parametrize(("agent", "script"), [("tools", CALLED), ("oda", [ABSENT])])
def test_a_setting_for_reflections_that_nobody_makes_is_said_to_have_no_effect(
    cli: CommandLine, agent: str, script: Script
) -> None:
    run, used = asked_with(cli, script, "--agent", agent, "--json", file='llm.reflector = "other"\n')
    assert (set(used), begun(cli).reflector, run.code in {0, 5}) == ({"m"}, "", True)
    assert "The model of llm.reflector is not asked: nobody reflects here." in run.err
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
    run, _ = asked_with(cli, script, "--agent", agent, "--closed-book", closed_book, "--json")
    report = json.loads(run.out)
    answers = [(each["text"], each["source"]) for each in report["answers"]]
    allowed = closed_book == "allowed"
    assert (answers, report["status"]) == (([("Koike", "model")], "partly") if allowed else ([], "not_in_graph"))
    assert (report["model_answer"], run.code) == (["Koike"] if closed_book == "apart" else [], 0 if allowed else 5)
    assert "mayors" in report["explanation"]
    assert Path(report["trace"]).is_file()


OWN = "Keep: none\nAction: Answer\nNot in the graph: mayors\nOwn knowledge:\nShinjuku"

NO_TOOLS = Failure(400, {"error": {"message": "registry.ollama.ai/library/gemma:2b does not support tools"}})


def test_a_model_that_calls_functions_calls_the_tools_itself(cli: CommandLine, tmp_path: Path) -> None:
    trace = str(tmp_path / "run.jsonl")
    run, _ = asked(cli, CALLED, "--trace", trace)
    assert (run.code, run.out.splitlines()) == (0, ["Shinjuku", "", "Evidence:", f"  {EVIDENCE}"])
    assert "1. GetNeighbor(entity=Tokyo)" in run.err
    assert "1 step, 220 tokens" in run.err
    again = cli.run("replay", trace)
    assert (again.out, again.code) == (run.out, 0)


def test_what_was_solved_is_shown_to_a_model_that_is_asked_something_like_it(cli: CommandLine) -> None:
    shown: list[bool] = []
    for question in ("Which place is the capital of Tokyo in Japan?", QUESTION):
        run, requests = asked(cli, CALLED, "--learn", question=question)
        assert (run.code, "Kept as an example for other questions." in run.err) == (0, True)
        shown.append("1. call: GetNeighbor(entity=Tokyo)" in requests[0].messages[0].content)
    assert shown == [False, True]
    run, requests = asked(cli, CALLED)
    assert ("Kept" in run.err, "GetNeighbor(entity=Tokyo)" in requests[0].messages[0].content) == (False, False)
    notes = cli.folder / "notes.md"
    notes.write_text("## Examples\nWhich place is in Japan?\n`GetNeighbor Q17 country in`\n")
    run, requests = asked(cli, CALLED, KG_SEXTANT_NOTES=str(notes))
    assert ("Kept" in run.err, "1. call: GetNeighbor Q17 country in" in requests[0].messages[0].content) == (
        False,
        True,
    )


def test_a_model_that_cannot_is_asked_by_oda_unless_the_other_was_chosen(cli: CommandLine) -> None:
    words = (*ABOUT_TOKYO, "--json", "--set", "tokens=50000")
    run, _ = asked(cli, (NO_TOOLS, OWN), *words)
    assert (run.code, json.loads(run.out)["model_answer"]) == (5, ["Shinjuku"])
    line = read_trace(Path(json.loads(run.out)["trace"]))[0]
    assert isinstance(line, RunLine)
    limits = {"tokens": 50_000, "seconds": 300.0, "prompt_tokens": 12_000}
    assert (line.agent, line.parameters["limits"]) == ("oda", limits)
    chosen, requests = asked(cli, (NO_TOOLS,), "--agent", "tools", *words)
    report = json.loads(chosen.out)
    assert (chosen.code, report["status"], report["stop_reason"], len(requests)) == (1, "stopped", "functions", 1)
    assert "cannot call functions" in report["explanation"]
    assert "Choose another model, or an agent that needs none" in report["explanation"]


def test_a_model_that_makes_no_call_is_asked_by_oda(cli: CommandLine) -> None:
    run, requests = asked(cli, ("It is Shinjuku.", "Answer: Shinjuku", OWN), *ABOUT_TOKYO)
    assert (run.code, len(requests)) == (5, 3)
    assert "calls none of the functions" in run.err
    assert "llm.tools = false skips the attempt" in run.err


def test_a_setting_says_that_a_model_calls_no_functions(cli: CommandLine) -> None:
    _, requests = asked(cli, (OWN,), *ABOUT_TOKYO, KG_SEXTANT_LLM__TOOLS="false")
    assert [each.tools for each in requests] == [None]


HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"

ATTACK = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\r"
"""Names the window, empties the screen, colours, turns the order of letters round, and begins the line again."""

ESCAPED = r"\u001b]0;owned\u0007\u001b[2J\u009b31m\u202eevil"


def asked_at_terminal(folder: Path, *replies: str) -> Shown:
    graph = str(write_story(folder, TOKYO))
    with serving_model(*replies) as service:
        options = ["--graph", graph, *ABOUT_TOKYO, "--model", "m", "--base-url", service.url, *PAPER]
        return run_in_terminal(folder, "ask", QUESTION, *options)


def plain(sent: str) -> list[str]:
    """Return the lines of what was sent, without orders to the terminal."""
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", sent).replace("\r", "\n").split("\n")


def test_a_terminal_shows_what_the_run_waits_for_and_keeps_steps_and_answer(tmp_path: Path) -> None:
    shown = asked_at_terminal(tmp_path, *EXPLORED)
    assert shown.code == 0
    drawn = [line for line in plain(shown.sent) if " … (" in line]
    for doing in ("Looking ahead", "Choosing an action", "Looking around an entity", "Remembering", "Answering"):
        assert any(f"{doing} … (" in line for line in drawn)
    assert any("1 step, 220 tokens" in line for line in drawn)
    assert (HIDE_CURSOR in shown.sent, shown.sent.rindex(SHOW_CURSOR) > shown.sent.rindex(HIDE_CURSOR)) == (True, True)
    after = plain(shown.sent[shown.sent.rindex(SHOW_CURSOR) :])
    evidence = "  Tokyo (Q1490) | capital (P36) | Shinjuku (Q179645)"
    assert [line for line in after if line][:3] == ["Shinjuku", "Evidence:", evidence]
    assert re.fullmatch(r"2 steps, 440 tokens, \d+\.\d s; trace: .*\.jsonl", [line for line in after if line][3])


@pytest.mark.parametrize(("term", "draws"), [("xterm", True), ("dumb", False)])
def test_what_was_drawn_is_gone_when_a_run_fails(tmp_path: Path, term: str, draws: bool) -> None:
    graph = str(write_story(tmp_path, TOKYO))
    shown = run_in_terminal(tmp_path, "ask", QUESTION, "--graph", graph, "--entity", "Q404", term=term)
    assert (shown.code, HIDE_CURSOR in shown.sent) == (6, draws)
    assert shown.sent.rfind(SHOW_CURSOR) >= shown.sent.rfind(HIDE_CURSOR)
    assert "Nothing in the graph is named 'Q404'." in shown.sent


def test_no_text_of_a_model_or_a_graph_gives_orders_to_the_terminal(cli: CommandLine) -> None:
    hostile = f"Thought: {ATTACK}\nAction: GetNeighbor\nEntity_id: Q1490"
    run, _ = asked(cli, (hostile, *EXPLORED[1:3], f"Answer: {ATTACK}"), *ABOUT_TOKYO, *PAPER)
    assert run.code == 0
    assert all(mark == "\n" or mark.isprintable() for mark in run.out + run.err)
    assert ESCAPED in [line.strip() for line in run.out.splitlines()]


ANSWER = AgentAnswer(
    question=QUESTION,
    answers=(
        GivenAnswer(f"a{ATTACK}", "graph", (("Q1", "P1", '"x"'),)),
        GivenAnswer("b", "computed", (), ("Count[…] = b",)),
    ),
    status="partly",
    labels=IdLabels({"Q1": f"one{ATTACK}"}, {}),
    stop_reason="tokens",
    explanation=f"The end.{ATTACK}",
    steps=(RunStep(1, "", "", "failed"),),
    usage=Usage(1_000, 234, 0.5, 2),
    seconds=2.25,
    model_answer=(f"c{ATTACK}",),
)


def test_every_line_of_a_plain_view_is_clean(capsys: pytest.CaptureFixture[str]) -> None:
    errors = io.StringIO()
    view = PlainView(Console(file=errors, width=200, soft_wrap=True))
    with view:
        view.linked(Linking())
        linked = LinkedPart(f"x{ATTACK}", EntityMatch("Q1", f"one{ATTACK}", "", 1.0, "id"))
        view.linked(Linking((linked,), (f"no {ATTACK}",)))
        view.begin(ATTACK)
        view.used(Usage(1))
        view.step(RunStep(1, f"think\n{ATTACK}", f"Do[{ATTACK}]", f"found{ATTACK}\nmore", (f"kept{ATTACK}",)))
        view.step(RunStep(2, "", "", ""))
    view.conclude(ANSWER, Path("trace.jsonl"))
    evil = rf"{ESCAPED}\r"
    assert capsys.readouterr().out.splitlines() == [
        *(f"a{evil}", "b", "", f"Evidence for a{evil}:"),
        f'  one{evil} (Q1) | P1 | "x"',
        *("", "Evidence for b:", "  Count[…] = b"),
        *("", "The model says by itself, and the graph does not:", f"  c{evil}"),
        *("", f"The end.{ESCAPED}"),
    ]
    assert [line for line in errors.getvalue().splitlines() if "Entities" not in line] == [
        f"no {evil}",
        f"1. Do[{evil}]  found{ESCAPED}",
        "   think",
        f"   {ESCAPED}",
        f"   + kept{evil}",
        "2. ·",
        "",
        "1 step, 1,234 tokens, cost 0.5000, 2.2 s; trace: trace.jsonl",
    ]
    assert errors.getvalue().startswith("Entities: none was found\nEntities: ")


def test_a_call_without_a_word_for_it_is_shown_by_its_name() -> None:
    screen = io.StringIO()
    view = LiveView(Console(file=screen, force_terminal=True, _environ={}, width=100))
    with view:
        view.begin(f"GetNews{ATTACK}")
        view.used(Usage(5))
    assert f"Waiting for GetNews{ESCAPED}\\r … (0 steps, 5 tokens)" in "\n".join(plain(screen.getvalue()))
    assert set(DOING) >= {"observe", "Compose", "action", "plan", "judge"}


def test_json_escapes_what_a_terminal_obeys_and_reads_back_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    view = RunView()
    with view:
        view.say("x")
        view.linked(Linking())
        view.begin("x")
        view.used(Usage())
        view.step(ANSWER.steps[0])
    view.conclude(ANSWER, Path("trace.jsonl"))
    text = capsys.readouterr().out
    assert all(mark == "\n" or mark.isprintable() for mark in text)
    assert [each["text"] for each in json.loads(text)["answers"]] == list(ANSWER.texts)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("two  words", "two  words"),
        ("C:\\temp | x", "C:\\temp | x"),
        ("a\x1b[31mb", r"a\u001b[31mb"),
        ("\n a\tb\u2066 ", r"\n a\tb\u2066 "),
    ],
)
def test_what_is_printed_stays_on_its_line(text: str, shown: str) -> None:
    assert visible_line(text) == shown
