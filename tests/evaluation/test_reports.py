"""Tables set runs beside the papers, pictures and pages show them, suites make many, and a judge is asked once."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark_players import QUESTION, write_rows
from kg_agents.evidence.answers import GivenAnswer
from kg_agents.llm import Message, Models, ScriptedLlm, Usage
from kg_agents.trace import LlmLine, ToolLine
from kg_eval.logs import LoggedQuestion, LoggedRun, judge_run, read_run
from kg_eval.metrics.scores import ScoredOutcome, Verdicts
from kg_eval.plan import InvalidPlan, RunPlan, read_suite
from kg_eval.questions import Gold, Record
from kg_eval.reports.page import page_of
from kg_eval.reports.plots import draw
from kg_eval.reports.published import printed, published_figures
from kg_eval.reports.tables import Done, Table, as_csv, as_markdown, as_text, done, tables_of
from kg_eval.running import run
from oda_runs import story_tools
from small_graphs import TOKYO

IN_PAPER = ("manner=paper",)


def outcome(id_: str, text: str, group: str = "") -> ScoredOutcome:
    record = Record(id_, f"Question {id_}?", (Gold("right"),), group=group)
    answers = (GivenAnswer(text, "graph", (("s", "p", text),)),) if text else ()
    return ScoredOutcome(
        record, text, answers, status="answered", usage=Usage(90, 10, 0.5, 2), tool_calls=3, seconds=1.5
    )


def run_of(name: str, *texts: str, verdicts: Verdicts | None = None, **fields: object) -> Done:
    plan = {"benchmark": "qald10", "data": "q.json", "method": name, "model": "gpt-4", "settings": IN_PAPER, **fields}
    if name not in {"oda", "graph-counselor"}:
        plan = {**plan, "settings": ()}
    outcomes = [outcome(str(n), text) for n, text in enumerate(texts, start=1)]
    return run_with(name, RunPlan.model_validate(plan), outcomes, verdicts)


def run_with(name: str, plan: RunPlan, outcomes: Sequence[ScoredOutcome], verdicts: Verdicts | None = None) -> Done:
    questions = tuple(LoggedQuestion(each, CALLS) for each in outcomes)
    return done(name, LoggedRun(plan, questions, verdicts or {}))


def test_a_table_has_the_paper_ours_the_difference_and_the_interval() -> None:
    runs = [run_of("oda", "right", "right", "wrong", ""), run_of("tog", "right", "wrong", "wrong", "wrong")]
    results, differences, costs = tables_of(runs)
    assert results.title == "qald10, tog-em, entities given"
    assert results.rows == (
        ("oda", "oda", "gpt-4", "all", "4", "66.67", "50.00", "-16.67", "15.00 to 85.00"),
        ("tog", "tog", "gpt-4", "all", "4", "53.80", "25.00", "-28.80", "4.56 to 69.94"),
    )
    assert differences.rows == (("tog", "4", "-25.00", "-75.00 to +0.00"),)
    assert costs.rows[0] == (
        *("oda", "75 %", "0 %", "0 %", "75 %", "25 %", "2", "3", "90", "10", "0", "1.5", "0.5", "2.0000"),
    )


def test_given_and_found_entities_never_share_a_table() -> None:
    given, found = run_of("oda", "right"), run_of("oda", "right", linking="model")
    titles = [table.title for table in tables_of([given, found])]
    assert [title.split(", ")[2].partition(":")[0] for title in titles] == ["entities given"] * 2 + [
        "entities found"
    ] * 2


def test_a_figure_of_another_model_is_said_to_be_so() -> None:
    results, _ = tables_of([run_of("oda", "right", model="openai/gpt-5-mini")])
    assert results.remarks == ("oda: the paper's figure is that of GPT-4 (ODA, table 2).",)


def test_groups_stand_under_their_run_with_the_papers_figure_of_each() -> None:
    plan = RunPlan.model_validate(
        {
            "benchmark": "grbench",
            "data": "g",
            "method": "graph-counselor",
            "settings": IN_PAPER,
            "model": "x/Llama-3.1-70B-Instruct",
        }
    )
    run = run_with("gc", plan, [outcome("1", "right", "E-commerce"), outcome("2", "wrong", "Legal")])
    rows = [(row[3], row[5], row[6], row[7]) for row in tables_of([run])[0].rows]
    assert rows == [
        ("all", "-", "50.00", "-"),
        ("E-commerce", "48.33", "100.00", "+51.67"),
        ("Legal", "53.84", "0.00", "-53.84"),
        ("macro", "-", "50.00", "-"),
    ]


ACADEMIC = (
    "dblp",
    *(f"maple-{field}" for field in ("biology", "chemistry", "materials_science", "medicine", "physics")),
)


def of_domains(graphs: Sequence[str], group: str, verdicts: Verdicts | None = None, **fields: object) -> list[Done]:
    """Return runs of Graph Counselor over graphs of GRBench, a right answer in each."""
    common = {"benchmark": "grbench", "method": "graph-counselor", "model": "Llama-3.1-70B-Instruct", **fields}
    return [
        run_with(
            graph,
            RunPlan.model_validate({"settings": IN_PAPER, **common, "data": f"{graph}.jsonl", "graph": graph}),
            [outcome(f"{graph}:1", "right", group)],
            verdicts,
        )
        for graph in graphs
    ]


def test_the_papers_figure_stands_beside_a_run_over_one_domain() -> None:
    results, costs = tables_of(of_domains(["legal"], "Legal"))
    assert [row[3:7] for row in results.rows] == [("Legal", "1", "53.84", "100.00")]
    assert "1.5 (paper 303.3)" in costs.rows[0]


def test_academic_is_one_row_over_its_graphs_and_has_the_papers_figure_only_when_all_are_there() -> None:
    whole = tables_of(of_domains(ACADEMIC, "Academic"))[0]
    assert [row[3:7] for row in whole.rows] == [("Academic", "6", "60.11", "100.00")]
    part = tables_of(of_domains(ACADEMIC[:5], "Academic"))[0]
    assert [row[3:7] for row in part.rows] == [("Academic", "5", "-", "100.00")]
    others = tables_of([*of_domains(ACADEMIC, "Academic"), *of_domains(["legal"], "Legal")])[0]
    assert [row[3:6] for row in others.rows][1:3] == [("Academic", "6", "60.11"), ("Legal", "1", "53.84")]


def test_difficulty_stands_below_where_the_file_gives_it() -> None:
    (run,) = of_domains(["legal"], "Legal")
    texts = ("right", "wrong")
    outcomes = [
        replace(each, record=replace(each.record, level=level))
        for level, each in zip(
            ("easy", "hard"), (outcome(f"legal:{text}", text, "Legal") for text in texts), strict=True
        )
    ]
    rows = tables_of([run_with("legal", run.plan, outcomes)])[0].rows
    assert [row[3:7] for row in rows][1:] == [("level easy", "1", "-", "100.00"), ("level hard", "1", "-", "0.00")]


def test_each_judge_has_a_column_with_the_figure_of_the_papers_judge() -> None:
    verdicts: Verdicts = {
        "qwen/Qwen2.5-72B-Instruct": {"legal:1": "yes"},
        "Llama-3.1-70B-Instruct": {"legal:1": "no"},
        "gpt-5": {"legal:1": "yes"},
    }
    runs = of_domains(["legal"], "Legal", verdicts)
    results = tables_of(runs)[0]
    assert results.columns[9:] == tuple(f"judge ({name})" for name in verdicts)
    assert results.rows[0][9:] == ("100.00 (paper 54.44)", "0.00 (paper 54.44)", "100.00")
    assert [table.title.split(", ")[1] for table in tables_of(runs, "judge")[::2]] == [
        f"judge ({name})" for name in verdicts
    ]


def test_the_average_of_odas_benchmarks_stands_beside_the_papers() -> None:
    benchmarks = ("qald10", "creak", "t-rex", "zero-shot-re")
    runs = [run_of("oda", "right", "wrong", benchmark=each, data=each) for each in benchmarks]
    average = tables_of(runs)[-1]
    assert [row[3:8] for row in average.rows] == [("average", "8", "85.79", "50.00", "-35.79")]
    assert not [table for table in tables_of(runs[:3]) if table.title.startswith("average")]


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("oda", {"settings": ("manner=paper", "hops=2")}),
        ("oda", {"settings": ()}),
        ("oda", {"linking": "model"}),
        ("oda", {"learn": True}),
        ("tog", {"settings": ("width=5",)}),
    ],
)
def test_no_figure_stands_beside_a_run_with_other_parameters(method: str, fields: dict[str, object]) -> None:
    plan = {"benchmark": "qald10", "data": "q", "method": method, "model": "gpt-4", "settings": ()}
    settings = IN_PAPER if method == "oda" else ()
    assert printed(RunPlan.model_validate({**plan, "settings": settings}), "", "tog-em") is not None
    assert printed(RunPlan.model_validate({**plan, "settings": settings, **fields}), "", "tog-em") is None


def test_what_a_paper_says_of_a_part_in_words_stands_below_the_differences() -> None:
    runs = of_domains(["legal"], "Legal") + of_domains(["legal"], "Legal", settings=("ablation=no-planning",))
    runs = [runs[0], replace(runs[1], name="unplanned")]
    remark = (
        "unplanned: up to 6.1 points less on medium and hard questions (Graph Counselor, figure 3, as its text says)."
    )
    assert tables_of(runs)[1].remarks == (remark,)


def paper(benchmark: str, method: str, model: str, metric: str, group: str = "", *settings: str) -> tuple[float, str]:
    """Return the figure that stands beside a run, and its table."""
    paper = IN_PAPER if method in {"oda", "graph-counselor"} else ()
    fields = {"benchmark": benchmark, "data": "q", "method": method, "model": model, "settings": (*paper, *settings)}
    found = printed(RunPlan.model_validate(fields), group, metric)
    return (0.0, "") if found is None else (found.value, found.table)


def test_the_papers_figures_are_all_there() -> None:
    assert len(published_figures()) == 600
    tog = paper("zero-shot-re", "tog", "gpt-4", "tog-em")
    assert tog == paper("zero-shot-re", "tog", "other", "tog-em") == (88.3, "ODA, table 2")
    first = paper("grbench", "graph-cot", "Llama-3.1-70B-Instruct", "rouge-l", "Healthcare")
    assert first == (43.70, "Graph Counselor, table 4")
    assert paper("grbench", "oda", "m", "rouge-l", "Academic") == (0.0, "")


def test_what_is_taken_out_of_a_method_has_figures_of_its_own_or_none() -> None:
    assert paper("qald10", "oda", "gpt-4", "tog-em", "", "ablation=no-observation") == (61.26, "ODA, table 3")
    assert paper("creak", "oda", "gpt-4", "tog-em (official)", "", "hops=3", "ablation=random-reflection")[0] == 89.0
    assert paper("grbench", "graph-counselor", "m", "rouge-l", "Legal", "ablation=no-planning") == (0.0, "")
    assert paper("t-rex", "oda", "gpt-3.5", "tog-em") == (68.0, "ODA, table 4")
    assert paper("t-rex", "oda", "gpt-4", "tog-em", "", "manner=paper") == (86.0, "ODA, table 2")


def test_runs_that_differ_in_one_number_are_a_line(tmp_path: Path) -> None:
    runs = [
        run_of("oda", *texts, settings=settings)
        for settings, texts in (
            (("hops=3", "manner=paper"), ("right", "right")),
            (("manner=paper", "hops=1"), ("wrong", "wrong")),
            (("hops=2", "manner=paper"), ("right", "wrong")),
            (("hops=2", "manner=sextant"), ("right", "wrong")),
        )
    ]
    pictures = [*draw([*runs, run_of("direct", "right")], tmp_path)]
    assert "qald10-entities-given-oda-hops.svg" in [each.name for each in pictures]
    svg = (tmp_path / "qald10-entities-given-oda-hops.svg").read_text(encoding="utf-8")
    assert "qald10, oda, gpt-4, manner=paper: tog-em, entities given" in svg
    for few in (runs[:1], [runs[0], runs[0]], [runs[0], runs[3]]):
        assert not [each for each in draw(few, tmp_path) if each.name.endswith("-hops.svg")]


def test_a_table_is_written_in_three_forms() -> None:
    table = Table("T", ("a", "long"), (("1", "x|y"), ("22", "z")), ("Said.",))
    assert as_text(table) == "T\na   long\n--------\n1   x|y\n22  z\nSaid."
    assert as_markdown(table) == "### T\n\n| a | long |\n| --- | --- |\n| 1 | x\\|y |\n| 22 | z |\n\nSaid.\n"
    assert as_csv([table]) == "T\na,long\n1,x|y\n22,z\n\n"


def test_a_picture_has_a_bar_for_each_run_and_escapes_names(tmp_path: Path) -> None:
    runs = [run_of("oda", "right", "wrong"), replace(run_of("direct", "right"), name="<b>")]
    (path,) = draw(runs, tmp_path)
    svg = path.read_text(encoding="utf-8")
    assert path.name == "qald10-entities-given.svg"
    assert all(text in svg for text in ("qald10: tog-em, entities given", "oda (50.0)", "&lt;b&gt; (100.0)"))
    assert "<b>" not in svg
    assert [*draw(runs, tmp_path)] == [path]
    assert path.read_text(encoding="utf-8") == svg


HOSTILE = "</script><script>alert(1)</script><!--"
CALLS = (
    LlmLine(model="m", purpose="action", messages=(Message("user", HOSTILE),), reply="r", at_s=0),
    ToolLine(tool="observe", arguments={"entity": "Q1"}, text="seen", failed=False, at_s=0),
)


def test_a_page_holds_every_question_and_cannot_be_broken_out_of() -> None:
    page = page_of(run_of("oda", "right", HOSTILE, ""))
    assert (page.count("<script"), page.count("</script>"), "<!--" in page) == (2, 2, False)
    found = re.search(r'<script type="application/json" id="content">(.*)</script>', page)
    assert found is not None
    content = json.loads(found[1])
    shown = [(each["id"], each["verdict"], each["source"], len(each["calls"])) for each in content["questions"]]
    assert shown == [("1", "right", "graph", 2), ("2", "wrong", "graph", 2), ("3", "wrong", "-", 2)]
    assert content["questions"][1]["calls"][0]["asked"] == f"user: {HOSTILE}"


async def test_a_judge_is_asked_once_for_each_answer(tmp_path: Path) -> None:
    rows = [{"question": f"{QUESTION} {n}", "answers": ["Osaka"]} for n in range(3)]
    plan = RunPlan(benchmark="jsonl", data=write_rows(tmp_path, "jsonl", rows), method="direct", model="m")
    folder = tmp_path / "run"
    async with story_tools(tmp_path, TOKYO) as tools:
        await run(plan, folder, tools, Models(ScriptedLlm(["{Osaka}", "{Kyoto}", "{unknown}"])), at_once=1)
    await judge_run(folder, ScriptedLlm(["Yes", "Hm"]))
    await judge_run(folder, ScriptedLlm([]))
    other = ScriptedLlm(["Yes", "Yes"])
    other.name = "other"
    await judge_run(folder, other)
    judged = read_run(folder)
    assert judged.verdicts == {
        "scripted": {"1": "yes", "2": "unreadable", "3": "no"},
        "other": {"1": "yes", "2": "yes", "3": "no"},
    }
    results = tables_of([done("run", judged)], "judge")[0]
    assert (results.rows[0][6], results.remarks) == (
        "33.33",
        ("run: 1 verdicts could not be read; none of them counts as right.",),
    )


SUITE = """
[common]
benchmark = "qald10"
data = "data/qald.json"
model = "gpt-4"
sample = 400

[[runs]]
name = "tog"
method = "tog"

[[runs]]
name = "hops"
method = "oda"
graph = "sample:world"
settings = { manner = "paper" }
sweep = { hops = [1, 2], top_n = [10, 20] }
"""


def test_a_suite_is_runs_and_sweeps_of_runs(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(SUITE, encoding="utf-8")
    plans = read_suite(tmp_path / "suite.toml", {"model": "other", "seed": 7})
    assert list(plans) == ["tog", *(f"hops-hops={hops}-top_n={n}" for hops in (1, 2) for n in (10, 20))]
    assert plans["tog"] == RunPlan(
        benchmark="qald10", data=tmp_path / "data/qald.json", method="tog", model="gpt-4", sample=400, seed=7
    )
    last = plans["hops-hops=2-top_n=20"]
    assert (last.graph, last.settings) == ("sample:world", ("manner=paper", "hops=2", "top_n=20"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[runs]", "cannot be read: "),
        ("[common]", ": runs: it is missing."),
        ("other = 1\nruns = []", ": other: there is no such field."),
        ('[[runs]]\nname = "a"\nmethod = "tog"', "run 'a': benchmark: it is missing."),
        ('[[runs]]\nname = "a/b"', "'a/b' is not a valid name, or two runs have it."),
    ],
)
def test_what_is_wrong_in_a_suite_is_said(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "suite.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidPlan, match=re.escape(message)):
        read_suite(path, {})
