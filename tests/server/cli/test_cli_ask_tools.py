"""`ask` where the model can call functions, and where it cannot."""

import json
from pathlib import Path

import pytest

from cli_runs import CommandLine
from kg_agents.trace import RunLine, read_trace
from scripted_model import Failure, Scripted, calling, serving_model
from story_graphs import TOKYO, write_story

QUESTION = "What is the capital of Tokyo?"
EVIDENCE = "Tokyo (Q1490) | capital (P36) | Shinjuku (Q179645)"
CALLED: tuple[Scripted, ...] = (
    calling(("GetNeighbor", '{"entity": "Tokyo"}')),
    calling(("answer", '{"answers": [{"text": "Shinjuku", "results": [1]}]}')),
)
OWN = "Keep: none\nAction: Answer\nNot in the graph: mayors\nOwn knowledge:\nShinjuku"
NO_TOOLS = Failure(400, {"error": {"message": "registry.ollama.ai/library/gemma:2b does not support tools"}})


@pytest.fixture
def graph(tmp_path: Path) -> str:
    return str(write_story(tmp_path, TOKYO))


def test_a_model_that_calls_functions_calls_the_tools_itself(cli: CommandLine, graph: str, tmp_path: Path) -> None:
    trace = str(tmp_path / "run.jsonl")
    with serving_model(*CALLED) as service:
        run = cli.run("ask", QUESTION, "--graph", graph, "--model", "m", "--base-url", service.url, "--trace", trace)
    assert (run.code, run.out.splitlines()) == (0, ["Shinjuku", "", "Evidence:", f"  {EVIDENCE}"])
    assert "1. GetNeighbor(entity=Tokyo)" in run.err
    assert "1 step, 220 tokens" in run.err
    assert (cli.run("replay", trace).out, cli.run("replay", trace).code) == (run.out, 0)


def test_what_was_solved_is_shown_to_a_model_that_is_asked_something_like_it(
    cli: CommandLine, graph: str, tmp_path: Path
) -> None:
    options = ["--graph", graph, "--model", "m", "--learn", "--base-url"]
    asked = ["Which place is the capital of Tokyo in Japan?", QUESTION, "Which place is the capital of Tokyo in Japan?"]
    shown: list[bool] = []
    for question in asked:
        with serving_model(*CALLED) as service:
            run = cli.run("ask", question, *options, service.url)
        assert (run.code, "Kept as an example for other questions." in run.err) == (0, True)
        shown.append("1. call: GetNeighbor(entity=Tokyo)" in service.asked[0].messages[0].content)
    assert shown == [False, True, True]
    with serving_model(*CALLED) as service:
        run = cli.run("ask", QUESTION, *[each for each in options if each != "--learn"], service.url)
    assert ("Kept" in run.err, "GetNeighbor(entity=Tokyo)" in service.asked[0].messages[0].content) == (False, False)


def test_a_model_that_cannot_is_asked_by_oda_unless_the_other_was_chosen(cli: CommandLine, graph: str) -> None:
    options = ["--graph", graph, "--entity", "Q1490", "--model", "m", "--json", "--set", "tokens=50000", "--base-url"]
    with serving_model(NO_TOOLS, OWN) as service:
        run = cli.run("ask", QUESTION, *options, service.url)
    assert (run.code, json.loads(run.out)["model_answer"]) == (5, ["Shinjuku"])
    begun = read_trace(Path(json.loads(run.out)["trace"]))[0]
    assert isinstance(begun, RunLine)
    assert (begun.agent, begun.parameters["limits"]) == (
        "oda",
        {"tokens": 50_000, "seconds": 300.0, "prompt_tokens": 12_000},
    )
    with serving_model(NO_TOOLS) as service:
        chosen = cli.run("ask", QUESTION, "--agent", "tools", *options, service.url)
    said = json.loads(chosen.out)
    assert (chosen.code, said["status"], said["stop_reason"], len(service.asked)) == (1, "stopped", "functions", 1)
    assert "cannot call functions" in said["explanation"]
    assert "Choose another model, or an agent that needs none" in said["explanation"]


def test_a_model_that_makes_no_call_is_asked_by_oda(cli: CommandLine, graph: str) -> None:
    options = ["--graph", graph, "--entity", "Q1490", "--model", "m", "--base-url"]
    with serving_model("It is Shinjuku.", "Answer: Shinjuku", OWN) as service:
        run = cli.run("ask", QUESTION, *options, service.url)
    assert (run.code, len(service.asked)) == (5, 3)
    assert "calls none of the functions" in run.err
    assert "llm_tools=false skips the attempt" in run.err


def test_a_setting_says_that_a_model_calls_no_functions(cli: CommandLine, graph: str) -> None:
    options = ["--graph", graph, "--entity", "Q1490", "--model", "m", "--base-url"]
    with serving_model(OWN) as service:
        cli.run("ask", QUESTION, *options, service.url, KG_SEXTANT_LLM_TOOLS="false")
    assert [each.tools for each in service.asked] == [None]


def test_the_agent_tools_needs_a_model(cli: CommandLine, graph: str) -> None:
    run = cli.run("ask", QUESTION, "--graph", graph, "--agent", "tools")
    assert (run.code, "The agent tools needs a model." in run.err) == (2, True)
