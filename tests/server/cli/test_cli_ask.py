"""`ask` and `replay`: a question from the shell, with a model and without one."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cli_runs import ABOUT_TOKYO, COMMAND, EVIDENCE, EXPLORED, PAPER, QUESTION, CommandLine, asked
from kg_agents.trace import RunLine, read_trace
from loopback_service import Reply, answering
from oda_runs import ENOUGH
from patience import PATIENCE_S
from scripted_model import Asked, Failure, calling, serving_model
from small_graphs import GOETHE, TOKYO, write_story

NO_ENTITY = (
    "No answer: what the question is about was not found.\n\n"
    "There is no entity to begin with. Name one that the question is about (--entity).\n"
)


def test_without_a_model_facts_are_shown_and_it_says_what_to_set(cli: CommandLine, tmp_path: Path) -> None:
    graph = str(write_story(tmp_path, GOETHE))
    run = cli.run("ask", "Where was Johann Wolfgang von Goethe born?", "--graph", graph)
    first, _, shown, fact, *_ = run.out.splitlines()
    assert (run.code, first, shown) == (4, "No model, so no answer.", "The facts most like the question:")
    assert fact == "  Johann Wolfgang von Goethe (Q5879) | place of birth (P19) | Frankfurt (Q1794)"
    assert "No model is set" in run.err
    assert "KG_SEXTANT_LLM__MODEL" in run.err
    assert "OPENAI_API_KEY" in run.err
    assert "Entities: 'Johann Wolfgang von Goethe' is Johann Wolfgang von Goethe (Q5879)" in run.err
    assert "1. GetNeighbor[Q5879]  2 triples" in run.err


def test_without_a_model_those_that_run_on_this_machine_are_offered(cli: CommandLine) -> None:
    def answer(body: bytes, key: str | None) -> Reply:
        assert (body, key) == (b"", None)
        return Reply({"data": [{"id": "llama3.2"}, {"id": "nomic-embed-text"}, {"id": "of \x1b[1m me"}]})

    def page(body: bytes, key: str | None) -> Reply:
        del body, key
        return Reply(b"<html>")

    with (
        answering(answer) as url,
        answering(page) as other,
        socket.create_server(("127.0.0.1", 0)) as mute,
    ):
        ports = [str(urlsplit(each).port) for each in (other, url)]
        listed = ",".join((*ports, str(mute.getsockname()[1])))
        words = ("ask", "Who?", "--agent", "graph-counselor")
        run = cli.run(*words, KG_SEXTANT_LLM__LOCAL_PORTS=listed, OPENAI_API_KEY="sk-secret")
    lines = run.err.splitlines()
    assert (run.code, lines[0]) == (2, "No model is set, but some run on this machine:")
    assert lines[1] == f"  1. --model llama3.2 --base-url {url}"
    assert lines[2].startswith("  2. --model 'of \\u001b[1m me' --base-url ")
    assert lines[3] == "Add one of these to the command, or set llm.model and llm.base_url."
    assert "Graph Counselor needs a model" in lines[4]


def test_without_a_model_the_question_when_goethe_was_born_is_not_answered_by_a_botanist(cli: CommandLine) -> None:
    run = cli.run("ask", "When was Goethe born?", "--json")
    report = json.loads(run.out)
    assert (run.code, report["status"], report["answers"], report["model_answer"]) == (4, "no_model", [], [])
    assert report["facts"]
    assert [fact for fact in report["facts"] if "Q5879" not in fact["triple"]] == []


def test_with_a_model_each_step_is_shown_and_then_the_answer_with_its_evidence(
    cli: CommandLine, tmp_path: Path
) -> None:
    graph, trace = str(write_story(tmp_path, TOKYO)), tmp_path / "run.jsonl"
    with serving_model("Tokyo", *EXPLORED) as service:
        options = ["--graph", graph, "--model", "m", "--base-url", service.url, *PAPER, "--trace", str(trace)]
        run = cli.run("ask", QUESTION, *options, OPENAI_API_KEY="sk-secret")
    assert (run.code, run.out.splitlines()) == (0, ["Shinjuku", "", "Evidence:", f"  {EVIDENCE}"])
    assert [line for line in run.err.splitlines() if line.startswith(("1.", "   +", "2."))] == [
        "1. GetNeighbor[Q1490]  3 triples",
        f"   + {EVIDENCE}",
        "2. Answer",
    ]
    assert "2 steps, 550 tokens, " in run.err
    assert set(service.keys) == {"Bearer sk-secret"}
    assert "sk-secret" not in run.out + run.err + trace.read_text(encoding="utf-8")


def test_a_question_over_two_graphs_is_answered_with_the_graph_of_each_fact(cli: CommandLine, tmp_path: Path) -> None:
    words: list[str] = []
    for name, label, over in (("people", "Ann Lee", "born in"), ("films", "Sand", "directed by")):
        graph = f"""@prefix ex: <http://{name}.example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
            ex:q1 rdfs:label "{label}" ; ex:p1 ex:q2 . ex:p1 rdfs:label "{over}" . ex:q2 rdfs:label "Sand Lee" ."""
        (tmp_path / f"{name}.ttl").write_text(graph, encoding="utf-8")
        words += ["--graph", f"{name}={tmp_path / name}.ttl"]
    looks = [("GetNeighbor", {"entity": "ex:q1", **more}) for more in ({}, {"graph": "films"})]
    given = [{"text": "Sand Lee", "results": [number]} for number in (1, 2)]
    script = (calling(*looks), calling(("answer", {"answers": given})))
    trace = tmp_path / "run.jsonl"
    with serving_model(*script) as service:
        options = ["--model", "m", "--base-url", service.url, "--trace", str(trace)]
        run = cli.run("ask", "Who made what?", *words, *options)
    assert (run.code, run.out.splitlines()) == (
        0,
        [
            "Sand Lee [people]",
            "Sand Lee [films]",
            "",
            "Evidence for Sand Lee:",
            "  Ann Lee (ex:q1) | born in (ex:p1) [people] | Sand Lee (ex:q2)",
            "",
            "Evidence for Sand Lee:",
            "  Sand (ex:q1) | directed by (ex:p1) [films] | Sand Lee (ex:q2)",
        ],
    )
    again = cli.run("replay", str(trace), "--json")
    facts = [fact for each in json.loads(again.out)["answers"] for fact in each["evidence"]]
    assert [(fact["triple"], fact["graph"]) for fact in facts] == [
        (["ex:q1", "ex:p1", "ex:q2"], graph) for graph in ("people", "films")
    ]


def test_a_replay_gives_the_same_answer_without_model_and_graph(cli: CommandLine, tmp_path: Path) -> None:
    trace = tmp_path / "run.jsonl"
    first, _ = asked(cli, EXPLORED, *ABOUT_TOKYO, *PAPER, "--trace", str(trace))
    (tmp_path / "story.ttl").unlink()
    again = cli.run("replay", str(trace))
    assert (again.code, again.out) == (0, first.out)
    lines = trace.read_text(encoding="utf-8").replace('"text": "Shinjuku"', '"text": "Osaka"')
    trace.write_text(lines, encoding="utf-8")
    other = cli.run("replay", str(trace))
    assert (other.code, other.err.splitlines()[-1]) == (1, "The answer is not the one that was recorded.")


def test_a_turn_may_answer_at_once_with_the_facts_that_yield_it(cli: CommandLine) -> None:
    def answering(asked: Asked) -> str:
        line = next(each for each in asked.prompt.splitlines() if each.endswith("Tokyo | capital | Shinjuku"))
        return f"Keep: none\nAction: Answer\nAnswer:\nShinjuku {line.partition(' ')[0]}"

    run, _ = asked(cli, ("Tokyo", answering), "--agent", "oda")
    assert (run.code, run.out.splitlines()) == (0, ["Shinjuku", "", "Evidence:", f"  {EVIDENCE}"])


def test_a_file_that_is_no_trace_is_not_overwritten(cli: CommandLine, tmp_path: Path) -> None:
    graph = write_story(tmp_path, TOKYO)
    words = ["ask", QUESTION, "--graph", str(graph), "--entity", "Q1490", "--trace"]
    run = cli.run(*words, str(graph))
    assert (run.code, "holds no trace and is not overwritten. Choose another file." in run.err) == (1, True)
    assert graph.read_text(encoding="utf-8") == TOKYO
    assert [cli.run(*words, str(tmp_path / "run.jsonl")).code for _ in range(2)] == [4, 4]


def test_each_run_of_a_question_keeps_a_record_of_its_own(cli: CommandLine, tmp_path: Path) -> None:
    words = ("ask", QUESTION, "--graph", str(write_story(tmp_path, TOKYO)), *ABOUT_TOKYO, "--json")
    traces = {json.loads(cli.run(*words, KG_SEXTANT_EMBEDDING__EMBEDDER="lexical").out)["trace"] for _ in range(3)}
    assert len(traces) == 3
    for trace in traces:
        assert [type(line) for line in read_trace(Path(trace))].count(RunLine) == 1


def test_an_address_in_the_log_tells_no_password(tmp_path: Path) -> None:
    folders = {"KG_SEXTANT_DATA_FOLDER": str(tmp_path), "KG_SEXTANT_CACHE_FOLDER": str(tmp_path)}
    environ = {**os.environ, **folders, "KG_SEXTANT_LOG_LEVEL": "info"}
    graph = str(write_story(tmp_path, TOKYO))
    with serving_model("Tokyo", ENOUGH, "Answer: x") as service:
        url = service.url.replace("//", "//bob:hunter2@")
        words = [*COMMAND, "ask", QUESTION, "--graph", graph, "--model", "m", "--base-url", url, *PAPER]
        run = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (run.returncode, len(service.asked), "hunter2" in run.stdout + run.stderr) == (0, 3, False)


@pytest.mark.usefixtures("heard_interrupts")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_an_interrupt_from_the_keyboard_says_where_the_record_is(tmp_path: Path) -> None:
    trace, asked = tmp_path / "run.jsonl", threading.Event()

    def stall(_: Asked) -> str:
        asked.set()
        time.sleep(3)
        return "Tokyo"

    environ = {**os.environ, "KG_SEXTANT_DATA_FOLDER": str(tmp_path), "KG_SEXTANT_CACHE_FOLDER": str(tmp_path)}
    with serving_model(stall) as service:
        words = [*COMMAND, "ask", QUESTION, "--model", "m", "--base-url", service.url, *PAPER, "--trace", str(trace)]
        with subprocess.Popen(words, env=environ, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
            assert asked.wait(PATIENCE_S)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, f"Interrupted; the record until then is {trace}." in err) == (130, True)
    assert trace.read_text(encoding="utf-8").startswith('{"kind": "run"')


@pytest.mark.parametrize(
    "given",
    ["Q1490", "wd:Q1490", "http://www.wikidata.org/entity/Q1490", "<http://www.wikidata.org/entity/Q1490>", " tokyo "],
)
def test_an_entity_can_be_given_as_any_form_of_its_id_or_by_its_name(cli: CommandLine, given: str) -> None:
    replies = (EXPLORED[0], "Triples: none", EXPLORED[0], ENOUGH, "Answer: no idea")
    run, requests = asked(cli, replies, "--entity", given, *ABOUT_TOKYO, *PAPER)
    assert (run.code, run.out.splitlines()) == (0, ["no idea"])
    assert f"Entities: {given.strip()!r} is Tokyo (Q1490)" in run.err.splitlines()
    assert "<data>\nTokyo (Q1490)\n</data>" in requests[0].prompt
    assert "GetNeighbor[Q1490] was taken already" in requests[3].prompt


def test_an_entity_that_is_only_a_tail_is_found_by_its_iri(cli: CommandLine, tmp_path: Path) -> None:
    graph = str(write_story(tmp_path, TOKYO))
    run = cli.run("ask", "Of what is it the capital?", "--graph", graph, "--entity", "wd:Q179645")
    assert (run.code, run.out.splitlines()[3]) == (4, "  Tokyo (Q1490) | capital (P36) | Shinjuku (Q179645)")
    assert "Entities: 'wd:Q179645' is Shinjuku (Q179645)" in run.err.splitlines()


def test_a_name_between_colons_is_shown_as_it_is(cli: CommandLine, tmp_path: Path) -> None:
    graph = str(write_story(tmp_path, TOKYO.replace('"Shinjuku"', '"the :cat: ward"')))
    run = cli.run("ask", QUESTION, "--graph", graph, "--entity", "Q1490")
    assert "  Tokyo (Q1490) | capital (P36) | the :cat: ward (Q179645)" in run.out.splitlines()


def test_json_for_programs_is_all_that_is_printed(cli: CommandLine, tmp_path: Path) -> None:
    run = cli.run("ask", QUESTION, "--graph", str(write_story(tmp_path, TOKYO)), "--entity", "Q1490", "--json")
    report = json.loads(run.out)
    assert sorted(report) == sorted(
        (
            *("question", "status", "answers", "model_answer", "facts", "stop_reason", "explanation"),
            *("steps", "tokens", "cost", "seconds", "trace"),
        )
    )
    assert [line for line in run.err.splitlines() if not line.endswith("…")] == []
    assert (run.code, report["question"], report["status"], report["tokens"]) == (4, QUESTION, "no_model", 0)
    assert {"triple": ["Q1490", "P36", "Q179645"], "text": EVIDENCE} in report["facts"]
    assert [sorted(step) for step in report["steps"]] == [["action", "found", "kept", "number", "thought"]]
    assert Path(report["trace"]).is_file()


def test_a_question_that_is_no_text_is_asked_as_far_as_it_is_one(cli: CommandLine, tmp_path: Path) -> None:
    graph = str(write_story(tmp_path, TOKYO))
    run = cli.run("ask", "What is the capital of Tokyo\udcff?", "--graph", graph, "--json")
    assert (run.code, json.loads(run.out)["question"]) == (4, "What is the capital of Tokyo??")


def test_parameters_come_from_the_command_line_before_the_settings_and_are_in_the_record(
    cli: CommandLine, tmp_path: Path
) -> None:
    trace = tmp_path / "run.jsonl"
    words = (*ABOUT_TOKYO, *PAPER, "--set", "hops=2", "--ablation", "no-observation", "--trace", str(trace))
    asked(cli, (ENOUGH, "Answer: x"), *words, KG_SEXTANT_AGENT_PARAMETERS="hops=1,iterations=4")
    begun = next(line for line in read_trace(trace) if isinstance(line, RunLine))
    chosen = {name: begun.parameters[name] for name in ("hops", "iterations", "ablation")}
    assert chosen == {"hops": 2, "iterations": 4, "ablation": "no-observation"}
    assert cli.run("replay", str(trace)).code == 0


def test_as_in_the_paper_graph_counselor_retrieves_the_nearest_node(cli: CommandLine) -> None:
    replies = ["plan", "thought", "Retrieve[Tokyo City]", "plan", "thought", "Finish[Tokyo]"]
    words = ("--agent", "graph-counselor", *ABOUT_TOKYO, "--json", "--set", "ablation=no-reflection")
    run, _ = asked(cli, replies, *words)
    assert json.loads(run.out)["steps"][0]["found"].startswith("Tokyo")


def test_graph_counselor_answers_with_a_judge(cli: CommandLine) -> None:
    steps = ("look it up", "its capital", "Neighbor[Q1490, capital]", "it is there", "done", "Finish[Shinjuku]")
    words = ("--agent", "graph-counselor", *ABOUT_TOKYO, *PAPER, "--json")
    run, requests = asked(cli, (*steps, "[yes]"), *words)
    report = json.loads(run.out)
    assert (run.code, report["status"], report["stop_reason"]) == (0, "answered", "answered")
    assert "Neighbor" not in run.err
    assert report["answers"] == [
        {
            "text": "Shinjuku",
            "source": "graph",
            "evidence": [{"triple": ["Q1490", "P36", "Q179645"], "text": EVIDENCE}],
            "computed": [],
        }
    ]
    assert "You judge" in requests[-1].prompt
    again = cli.run("replay", report["trace"], "--json")
    assert (again.code, json.loads(again.out)["answers"]) == (0, report["answers"])


def test_any_server_with_the_tools_will_do(cli: CommandLine, tmp_path: Path) -> None:
    graph = write_story(tmp_path, GOETHE)
    server = f"{sys.executable} -m kg_server --config {tmp_path / 'config.toml'} serve {graph}"
    cli.run("doctor", str(graph))
    run = cli.run("ask", "Where was Johann Wolfgang von Goethe born?", "--server", server)
    assert (run.code, run.out.splitlines()[3].rpartition(" | ")[2]) == (4, "Frankfurt (Q1794)")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["ask", " "], 2, "The question is blank."),
        (["ask", "Who?", "--entity", " "], 2, "An --entity is blank."),
        (["ask", "Who?", "--agent", "graph-counselor"], 2, "Graph Counselor needs a model."),
        (["ask", "Who?", "--agent", "tools"], 2, "The agent tools needs a model."),
        (["ask", "Who?", "--set", "hop=2"], 2, "There is no parameter 'hop'. Did you mean hops?"),
        (["ask", "Who?", "--ablation", "no-planning"], 2, "The parameter ablation cannot be used"),
        (["ask", "Who?", "--graph", "nowhere.ttl"], 2, "There is no graph 'nowhere.ttl'."),
        (["ask", "Who?", "--server", "false"], 1, "The server 'false' cannot be reached"),
        (["replay", "nowhere.jsonl"], 2, "The trace nowhere.jsonl cannot be read"),
    ],
)
def test_what_cannot_be_asked_ends_with_a_sentence(cli: CommandLine, words: list[str], code: int, said: str) -> None:
    run = cli.run(*words)
    assert (run.code, run.out, said in run.err) == (code, "", True)


def test_an_entity_that_is_not_there_is_said_in_a_sentence_with_a_code_of_its_own(
    cli: CommandLine, tmp_path: Path
) -> None:
    graph = str(write_story(tmp_path, TOKYO))
    run = cli.run("ask", "Who?", "--graph", graph, "--entity", "Shinjuki-m")
    near = "Nothing in the graph is named 'Shinjuki-m'. Near, not the same: Shinjuku (Q179645)."
    assert (run.code, run.out) == (6, f"No answer: what the question is about was not found.\n\n{near}\n")


def test_what_the_graph_does_not_hold_is_said_and_what_the_model_knows_stands_apart(cli: CommandLine) -> None:
    reply = "Keep: none\nAction: Answer\nNot in the graph: mayors\nOwn knowledge:\nKoike"
    run, _ = asked(cli, (reply,), *ABOUT_TOKYO, "--agent", "oda")
    claimed = ["The model says by itself, and the graph does not:", "  Koike"]
    assert (run.code, run.out.splitlines()) == (
        5,
        ["The graph does not hold the answer.", "", *claimed, "", "mayors"],
    )
    never, requests = asked(cli, (reply,), *ABOUT_TOKYO, "--agent", "oda", "--closed-book", "never")
    assert never.out.splitlines() == ["The graph does not hold the answer.", "", "mayors"]
    assert "Own knowledge" not in requests[0].prompt


def test_where_nothing_is_found_it_says_so_and_ends_with_a_code_of_its_own(cli: CommandLine, tmp_path: Path) -> None:
    graph = str(write_story(tmp_path, TOKYO))
    nobody = cli.run("ask", "What is what?", "--graph", graph)
    assert (nobody.code, nobody.out) == (6, NO_ENTITY)
    with serving_model(Failure(401)) as service:
        refused = cli.run("ask", QUESTION, "--graph", graph, "--model", "m", "--base-url", service.url, *PAPER)
    assert (refused.code, "Check the API key." in refused.out) == (1, True)
