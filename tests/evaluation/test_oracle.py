"""The oracle plays methods over the world as far as their actions reach, and says nothing that it was not shown."""

from pathlib import Path
from typing import Final

import pytest
from benchmarks.world.one_call import read_calls
from benchmarks.world.oracle import Oracle
from benchmarks.world.play import played
from benchmarks.world.questions import QUESTIONS
from benchmarks.world.reasons import DRAWN, LEFT_OUT, UNSEEN, reasons_of
from benchmarks.world.walks import next_function, ways_of

from kg_agents.llm import LlmRequest, Message
from kg_eval.metrics.scores import score
from kg_eval.questions import read_questions

IN_REACH: Final = frozenset(
    {"one-hop", "two-hop", "three-hop", "literal", "comparison", "intersection", "no-such-fact"}
)


async def test_think_on_graph_reaches_what_chains_of_relations_reach(tmp_path: Path) -> None:
    (run,) = await played(["tog"], tmp_path, 7, 3)
    scores = {each.record.id: score(each, "set") for each in run.outcomes if each.record.kind in IN_REACH}
    assert len(run.outcomes) == 7
    assert scores == dict.fromkeys(scores, 1.0)
    assert len(scores) >= 3
    kinds, reasons = reasons_of([run], tmp_path, read_calls())
    missed = sorted(each.record.id for each in run.outcomes if score(each, "set") != 1)
    assert sorted(", ".join(ids for _, _, ids in reasons.rows).split(", ")) == missed
    assert {reason for _, reason, _ in reasons.rows} <= {LEFT_OUT, DRAWN, UNSEEN}
    assert len(kinds.rows) == len({each.record.kind for each in run.outcomes})


async def test_the_agents_answer_what_their_tools_can_tell(tmp_path: Path) -> None:
    runs = await played(["oda", "graph-counselor", "tools"], tmp_path, 5, 4)
    wrong = [(run.name, each.record.id) for run in runs for each in run.outcomes if score(each, "set") != 1.0]
    kinds = {each.record.kind for each in runs[0].outcomes}
    assert ([len(run.outcomes) for run in runs], wrong, len(kinds)) == ([5] * 3, [], 5)
    sources = {answer.source for run in runs for each in run.outcomes for answer in each.answers}
    assert sources <= {"graph", "computed"}


async def test_the_oracle_says_only_what_a_prompt_shows() -> None:
    records = read_questions("world", QUESTIONS)
    oracle = Oracle("text-rag", records, read_calls())
    for record in records[:20]:
        prompt = f"Answer the question.\n<data>\n{record.question}\n</data>"
        request = LlmRequest((Message("user", prompt),), "answer", 0.0, 256)
        assert (await oracle.complete(request)).text == "{unknown}"


@pytest.mark.parametrize(
    ("question", "given", "observed", "functions"),
    [
        ("q01", "Tončiák Paper (w:E1)", ["A (w:E2)", "B (w:E3)"], ["w:E1, headquarters", "w:E2, located in region"]),
        ("q37", "", [], ['"Šuvák & Čálmann Shipyards", -builder']),
        ("q20", "Weistzeine Vliteda (w:E1)", [], ["w:E1, -written by"]),
        ("q59", "Čautan Lanaru (w:E1)", ["_:c1\nw:S2"], ["w:E1, career entry", "_:c1, at organisation"]),
        ("q56", "Kevhraine T. Zistard (w:E1)\nKevhraine T. Zistard (w:E2)", ["x"], ["w:E1, born on", "w:E2, born on"]),
        ("q46", "Jáviaru & Dovmann Pictures (w:E1)", ["A (w:E2)"], ["w:E1, headquarters", None]),
    ],
)
def test_the_ways_of_a_query_are_gone_one_function_at_a_time(
    question: str, given: str, observed: list[str], functions: list[str | None]
) -> None:
    ways = ways_of(read_calls()[question])
    found = [next_function(ways, given, observed[:seen]) for seen in range(len(functions))]
    assert [each and each.partition("[")[2].removesuffix("]") for each in found] == functions
