"""The oracle plays methods over the world as far as their actions reach, and says nothing that it was not shown."""

from pathlib import Path
from typing import Final

from benchmarks.world.one_call import read_calls
from benchmarks.world.oracle import Oracle
from benchmarks.world.play import played
from benchmarks.world.questions import QUESTIONS

from kg_agents.llm import LlmRequest, Message
from kg_eval.metrics.scores import score
from kg_eval.questions import read_questions

IN_REACH: Final = frozenset(
    {"one-hop", "two-hop", "three-hop", "literal", "comparison", "intersection", "no-such-fact"}
)


async def test_think_on_graph_reaches_what_chains_of_relations_reach(tmp_path: Path) -> None:
    (run,) = await played(["tog"], tmp_path, sample=7, seed=3)
    scores = {each.record.id: score(each, "set") for each in run.outcomes if each.record.kind in IN_REACH}
    assert len(run.outcomes) == 7
    assert scores == dict.fromkeys(scores, 1.0)
    assert len(scores) >= 3


async def test_the_agents_answer_what_their_tools_can_tell(tmp_path: Path) -> None:
    runs = await played(["oda", "graph-counselor", "tools"], tmp_path, sample=5, seed=4)
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
