"""What `ask` draws on a terminal, and what never gets there."""

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from kg_agents.evidence.answers import AgentAnswer, Answer, Step
from kg_agents.evidence.values import Candidate, Labels
from kg_agents.linking import Linked, Linking
from kg_agents.llm import Usage
from kg_boundary.shown import visible_line
from kg_server.commands.run_view import DOING, JsonView, LiveView, PlainView
from oda_runs import ENOUGH, NEIGHBORS, selecting
from scripted_model import serving_model
from story_graphs import TOKYO, write_story
from terminals import Shown, run_in_terminal

QUESTION = "What is the capital of Tokyo?"
REPLIES = (NEIGHBORS.format("Q1490"), selecting("Q1490,P36,Q179645"), ENOUGH, "Answer: Shinjuku")
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
ATTACK = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\r"
"""Names the window, empties the screen, colours, turns the order of letters round, and begins the line again."""
ESCAPED = r"\u001b]0;owned\u0007\u001b[2J\u009b31m\u202eevil"


def asked(folder: Path, *replies: str, term: str = "xterm") -> Shown:
    graph = str(write_story(folder, TOKYO))
    with serving_model(*replies) as service:
        options = ["--graph", graph, "--entity", "Q1490", "--model", "m", "--base-url", service.url]
        options += ["--set", "manner=paper"]
        return run_in_terminal(folder, "ask", QUESTION, *options, term=term)


def plain(sent: str) -> list[str]:
    """Return the lines of what was sent, without orders to the terminal."""
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", sent).replace("\r", "\n").split("\n")


def test_a_terminal_shows_what_the_run_waits_for_and_keeps_steps_and_answer(tmp_path: Path) -> None:
    shown = asked(tmp_path, *REPLIES)
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


def test_a_terminal_that_can_do_nothing_gets_plain_lines(tmp_path: Path) -> None:
    shown = asked(tmp_path, *REPLIES, term="dumb")
    assert (shown.code, HIDE_CURSOR in shown.sent, "Looking ahead" in shown.sent) == (0, False, False)
    assert "1. GetNeighbor[Q1490]  3 triples" in plain(shown.sent)


def test_the_drawing_is_gone_when_a_run_fails(tmp_path: Path) -> None:
    graph = str(write_story(tmp_path, TOKYO))
    shown = run_in_terminal(tmp_path, "ask", QUESTION, "--graph", graph, "--entity", "Q404")
    assert shown.code == 6
    assert shown.sent.rindex(SHOW_CURSOR) > shown.sent.rindex(HIDE_CURSOR)
    assert "Nothing in the graph is named 'Q404'." in shown.sent


def test_no_text_of_a_model_or_a_graph_gives_orders_to_the_terminal(tmp_path: Path) -> None:
    hostile = f"Thought: {ATTACK}\nAction: GetNeighbor\nEntity_id: Q1490"
    shown = asked(tmp_path, hostile, *REPLIES[1:3], f"Answer: {ATTACK}")
    assert shown.code == 0
    kept = re.sub(r"\x1b\[[\d;]*[mAKhl]|\x1b\[\?25[hl]", "", shown.sent)
    assert [mark for mark in ("\x1b", "\x07", "\x9b", "\u202e") if mark in kept] == []
    assert "\x1b[2J" not in shown.sent
    assert ESCAPED in [line.strip() for line in plain(shown.sent)]


ANSWER = AgentAnswer(
    question=QUESTION,
    answers=(Answer(f"a{ATTACK}", "graph", (("Q1", "P1", '"x"'),)), Answer("b", "computed", (), ("Count[…] = b",))),
    status="partly",
    labels=Labels({"Q1": f"one{ATTACK}"}, {}),
    stop_reason="tokens",
    explanation=f"The end.{ATTACK}",
    steps=(Step(1, "", "", "failed"),),
    usage=Usage(1_000, 234, 0.5, 2),
    seconds=2.25,
    model_answer=(f"c{ATTACK}",),
)


def test_every_line_of_a_plain_view_is_clean(capsys: pytest.CaptureFixture[str]) -> None:
    errors = io.StringIO()
    view = PlainView(Console(file=errors, width=200, soft_wrap=True))
    with view:
        view.linked(Linking())
        linked = Linked(f"x{ATTACK}", Candidate("Q1", f"one{ATTACK}", "", 1.0, "id"))
        view.linked(Linking((linked,), (f"no {ATTACK}",)))
        view.begin(ATTACK)
        view.used(Usage(1))
        view.step(Step(1, f"think\n{ATTACK}", f"Do[{ATTACK}]", f"found{ATTACK}\nmore", (f"kept{ATTACK}",)))
        view.step(Step(2, "", "", ""))
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
    moments = iter([0.0, *[3.0] * 1_000])
    view = LiveView(Console(file=screen, force_terminal=True, width=100), lambda: next(moments, 3.0))
    with view:
        view.begin(f"GetNews{ATTACK}")
        view.used(Usage(5))
    assert f"Waiting for GetNews{ESCAPED}\\r … (0 steps, 5 tokens, 3 s)" in "\n".join(plain(screen.getvalue()))
    assert set(DOING) >= {"observe", "Compose", "action", "plan", "judge"}


def test_json_escapes_what_a_terminal_obeys_and_reads_back_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    view = JsonView()
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
