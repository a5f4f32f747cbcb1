"""`eval` from the shell: a benchmark is run, killed, gone on with, scored, shown and drawn."""

import csv
import shlex
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from benchmark_players import LOOKING, QUESTION, answering, write_rows
from cli_runs import COMMAND, CommandLine, Run
from kg_adapters.embedding import MiniLmEmbedder
from kg_agents.trace import ToolLine
from kg_eval.logs import read_run
from oda_runs import story_store
from patience import PATIENCE_S
from scripted_model import Asked, Failure, calling, serving_model
from small_graphs import TOKYO, write_story

ANSWER = "The answer is {Shinjuku}."


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


def questions(folder: Path, count: int) -> Path:
    rows = [
        {"question": f"{QUESTION} ({n})", "answers": ["Shinjuku" if n % 2 else "Osaka"], "entities": ["Q1490"]}
        for n in range(count)
    ]
    return write_rows(folder, "jsonl", rows)


def test_a_benchmark_is_run_scored_shown_and_drawn(cli: CommandLine, tmp_path: Path) -> None:
    graph, data = str(story_store(TOKYO)), str(questions(tmp_path, 4))
    common = ("--benchmark", "jsonl", "--data", data, "--graph", graph)
    runs = [str(tmp_path / name) for name in ("direct", "rag")]
    with serving_model(ANSWER) as service:
        for out, method in zip(runs, ("direct", "graph-rag-1"), strict=True):
            model = ("--model", "m", "--base-url", service.url)
            run = cli.run("eval", "run", *common, *model, "--method", method, "--out", out, OPENAI_API_KEY="sk-secret")
            assert (run.code, "Samples:   4/  4" in run.err) == (0, True)
            assert "sk-secret" not in run.out + run.err
    assert len(service.asked) == 8
    kept = [read_run(Path(each)) for each in runs]
    assert "sk-secret" not in repr(kept)
    scored = cli.run("eval", "score", runs[0], "--official")
    assert {"set: 50.00 (15.00 to 85.00), 4", "tog-em (official): 50.00 (15.00 to 85.00), 4"} <= {
        *scored.out.splitlines()
    }
    table = cli.run("eval", "table", *runs, "--form", "csv")
    rows = [*csv.reader(table.out.splitlines())]
    assert rows[:4] == [
        ["jsonl, set, entities given"],
        ["run", "method", "model", "group", "questions", "paper", "ours", "difference", "95 % interval"],
        ["direct", "direct", "m", "all", "4", "-", "50.00", "-", "15.00 to 85.00"],
        ["rag", "graph-rag-1", "m", "all", "4", "-", "50.00", "-", "15.00 to 85.00"],
    ]
    assert ["rag", "4", "+0.00", "+0.00 to +0.00"] in rows
    drawn = cli.run("eval", "plot", *runs, "--out", str(tmp_path / "plots"))
    svg = tmp_path / "plots" / "jsonl-entities-given.svg"
    assert drawn.out == f"Drew {svg}.\n"
    assert all(f"{name} (50.0)" in svg.read_text(encoding="utf-8") for name in ("direct", "rag"))
    page = cli.run("eval", "page", runs[1], "-o", str(tmp_path / "rag.html"))
    assert (page.code, "Q1490 | P36 | Q179645" in (tmp_path / "rag.html").read_text(encoding="utf-8")) == (0, True)
    with serving_model("Yes") as service:
        words = ("eval", "score", runs[0], "--judge", "j", "--judge", "k", "--base-url", service.url)
        judged, again = cli.run(*words), cli.run(*words)
    assert {f"judge ({name}): 100.00 (51.01 to 100.00), 4" for name in "jk"} <= {*judged.out.splitlines()}
    assert (again.out, len(service.asked)) == (judged.out, 8)


def test_a_suite_makes_its_runs_and_shows_them_in_one_table(cli: CommandLine, tmp_path: Path) -> None:
    write_story(tmp_path, TOKYO)
    questions(tmp_path, 2)
    suite = """
        common = { benchmark = "jsonl", data = "jsonl.jsonl", method = "self-consistency" }
        [[runs]]
        name = "votes"
        graph = "%s"
        sweep = { samples = [1, 2] }
    """
    (tmp_path / "suite.toml").write_text(suite % (tmp_path / "story.ttl"), encoding="utf-8")
    with serving_model(ANSWER) as service:
        words = ("--model", "m", "--base-url", service.url, "--out", str(tmp_path / "runs"))
        run = cli.run("eval", "suite", str(tmp_path / "suite.toml"), *words)
    shown = [line.split()[:2] for line in run.out.splitlines() if line.startswith("votes-")]
    assert (run.code, len(service.asked)) == (0, 6)
    assert ["votes-samples=1", "self-consistency"] in shown
    assert ["votes-samples=2", "self-consistency"] in shown


ODA_IN_PAPER = ("--method", "oda", "--set", "manner=paper")


def run_of(cli: CommandLine, folder: Path, *words: str, **environ: str) -> Run:
    """Run ODA over two questions, with a model that answers as soon as it is asked."""
    graph, data = str(story_store(TOKYO)), str(questions(folder, 2))
    with serving_model(lambda asked: "Action: Answer" if "GetNeighbor" in asked.prompt else "Answer: x") as service:
        model = ("--model", "m", "--base-url", service.url, "--out", str(folder / "run"))
        return cli.run(
            "eval", "run", "--benchmark", "jsonl", "--data", data, "--graph", graph, *model, *words, **environ
        )


def test_oda_in_the_manner_of_the_paper_sets_the_papers_score_and_records_it(cli: CommandLine, tmp_path: Path) -> None:
    assert run_of(cli, tmp_path, *ODA_IN_PAPER).code == 0
    kept = read_run(tmp_path / "run")
    assert (kept.plan.score, kept.plan.embedder) == ("paper", MiniLmEmbedder().fingerprint)
    calls = [call for question in kept.questions for call in question.calls]
    texts = [call.text for call in calls if isinstance(call, ToolLine) and call.tool == "observe"]
    assert len(texts) == 2
    assert all("by meaning, as in the ODA paper." in text for text in texts)


def test_oda_in_the_manner_of_the_paper_does_not_go_on_without_an_embedder(cli: CommandLine, tmp_path: Path) -> None:
    refused = run_of(cli, tmp_path, *ODA_IN_PAPER, KG_SEXTANT_EMBEDDING__EMBEDDER="lexical")
    assert (refused.code, "embedding model, and none runs here. Set embedding.embedder" in refused.err) == (2, True)


def test_a_server_that_scores_otherwise_is_refused_in_the_manner_of_the_paper(cli: CommandLine, tmp_path: Path) -> None:
    server = shlex.join((*COMMAND, "serve", str(story_store(TOKYO)), "--timeout-s", str(PATIENCE_S)))
    with serving_model("Action: Answer") as service:
        words = ("ask", QUESTION, "--entity", "Q1490", "--agent", "oda", "--set", "manner=paper", "--model", "m")
        run = cli.run(*words, "--server", server, "--base-url", service.url)
    assert (run.code, "this one was scored by meaning and spelling. Serve the graph with" in run.err) == (1, True)


def test_a_run_is_not_resumed_with_another_embedder(cli: CommandLine, tmp_path: Path) -> None:
    assert run_of(cli, tmp_path, "--method", "graph-rag-1").code == 0
    again = run_of(cli, tmp_path, "--method", "graph-rag-1", KG_SEXTANT_EMBEDDING__EMBEDDER="lexical")
    assert (again.code, "holds a run with another embedder. Choose another --out." in again.err) == (2, True)


def test_the_similar_reflection_compares_in_a_run_of_a_benchmark(cli: CommandLine, tmp_path: Path) -> None:
    graph, data = str(story_store(TOKYO)), str(questions(tmp_path, 1))
    script = ("Action: GetNeighbor\nEntity_id: Q1490", "Action: Answer", "Answer: Shinjuku")
    with serving_model(*script) as service:
        words = ("--benchmark", "jsonl", "--data", data, "--graph", graph, "--out", str(tmp_path / "run"))
        model = ("--model", "m", "--base-url", service.url)
        run = cli.run("eval", "run", *words, *model, "--method", "oda", "--set", "ablation=similar-reflection")
    assert (run.code, "P36" in service.asked[-1].prompt) == (0, True)


def test_wrong_use_is_said_in_a_sentence(cli: CommandLine, tmp_path: Path) -> None:
    data = str(questions(tmp_path, 1))
    out = ("--out", str(tmp_path / "run"))
    without_model = cli.run("eval", "run", "--benchmark", "jsonl", "--data", data, *out)
    assert (without_model.code, "A benchmark needs a model. For a model set llm" in without_model.err) == (2, True)
    unknown = cli.run("eval", "run", "--benchmark", "qald", "--data", data, "--model", "m", *out)
    assert (unknown.code, "--benchmark 'qald': it must be 'qald10'" in unknown.err) == (2, True)
    nothing = cli.run("eval", "table", str(tmp_path / "none"))
    assert (nothing.code, "holds no run. Make one with `kg-sextant eval run" in nothing.err) == (2, True)
    (tmp_path / "bad.jsonl").write_text("{}\n", encoding="utf-8")
    bad = cli.run(
        *("eval", "run", "--benchmark", "jsonl", "--data", str(tmp_path / "bad.jsonl"), "--model", "m"),
        *("--graph", str(story_store(TOKYO)), *out),
    )
    assert (bad.code, "bad.jsonl, line 1: question: it is missing." in bad.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "code", "kept"),
    [
        (("--method", "tog", "--reflector", "r"), 2, None),
        (("--method", "oda", "--reflector", "r"), 2, None),
        (("--method", "oda", "--set", "manner=paper", "--reflector", "r", "--sample", "1"), 0, "r"),
        (("--method", "direct"), 0, ""),
    ],
)
def test_a_model_that_reflects_is_taken_where_a_method_asks_it(
    cli: CommandLine, tmp_path: Path, words: tuple[str, ...], code: int, kept: str | None
) -> None:
    graph, data = str(story_store(TOKYO)), str(questions(tmp_path, 1))
    out = tmp_path / "out"
    with serving_model(*[ANSWER] * 20) as service:
        common = ("--benchmark", "jsonl", "--data", data, "--graph", graph, "--model", "m", "--base-url", service.url)
        run = cli.run("eval", "run", *common, *words, "--out", str(out), KG_SEXTANT_LLM__REFLECTOR="r")
    assert (run.code, "asks no model to reflect. graph-counselor does" in run.err) == (code, code == 2)
    assert kept is None or read_run(out).plan.reflector == kept


def test_a_run_that_learns_shows_what_it_solved_and_keeps_it_in_its_folder(cli: CommandLine, tmp_path: Path) -> None:
    asked = ["What is the capital of Tokyo?", "Which place is Tokyo's capital city?", "What is the capital of Tokyo??"]
    data = write_rows(tmp_path, "jsonl", [{"question": each, "answers": ["Shinjuku"]} for each in asked])
    common = ("--benchmark", "jsonl", "--data", str(data), "--graph", str(story_store(TOKYO)))
    out = tmp_path / "run"
    with serving_model(by_calls) as service:
        model = ("--model", "m", "--base-url", service.url, "--at-once", "1", "--learn")
        run = cli.run("eval", "run", *common, *model, "--method", "tools", "--linking", "none", "--out", str(out))
        wrong = cli.run("eval", "run", *common, *model, "--method", "tog", "--out", str(tmp_path / "other"))
    first = [each.messages[0].content for each in service.asked if each.messages[-1].role == "user"]
    solved = [[f"question: {question}\n" in prompt for question in asked] for prompt in first]
    assert (run.code, solved) == (0, [[False] * 3, [True, False, False], [False, True, False]])
    assert (out / "learned" / "experience.sqlite3").exists()
    assert (wrong.code, "tog learns nothing. Choose one of graph-counselor, oda, tools" in wrong.err) == (2, True)


def by_calls(asked: Asked) -> Failure:
    """Reply as a model that looks the capital up and answers with what it is shown."""
    call = answering("Shinjuku") if asked.messages[-1].role == "tool" else LOOKING
    return calling((call.name, call.arguments))


def test_a_killed_run_keeps_the_questions_that_were_answered(cli: CommandLine, tmp_path: Path) -> None:
    graph, data, out = str(write_story(tmp_path, TOKYO)), str(questions(tmp_path, 3)), str(tmp_path / "run")
    cli.run("import", graph, "--to", str(tmp_path / "store"))
    reached, released = threading.Event(), threading.Event()

    def replying(asked: Asked) -> Failure:
        if len(service.asked) == 4 and not released.is_set():
            reached.set()
            released.wait(PATIENCE_S)
        return by_calls(asked)

    with serving_model(replying) as service:
        words = (
            *("--config", str(tmp_path / "config.toml"), "eval", "run", "--benchmark", "jsonl", "--data", data),
            *("--graph", str(tmp_path / "store"), "--method", "tools", "--set", "turns=4"),
            *("--model", "m", "--base-url", service.url, "--at-once", "1", "--out", out),
        )
        killed = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            assert reached.wait(PATIENCE_S)
        finally:
            killed.send_signal(signal.SIGKILL)
            killed.communicate()
            released.set()
        before = len(service.asked)
        run = cli.run(*words[2:])
    assert (before, len(service.asked), run.code) == (4, 8, 0)
    kinds = ["tool", "llm", "tool", "llm", "tool"]
    assert [[call.kind for call in question.calls] for question in read_run(Path(out)).questions] == [kinds] * 3
