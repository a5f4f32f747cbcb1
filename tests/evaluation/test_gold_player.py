"""The player that knows the gold answers, and every method played once."""

import csv
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from itertools import cycle
from pathlib import Path
from typing import Final

import pyoxigraph as ox
import pytest
from benchmarks.world.graph import World
from benchmarks.world.questions import QUESTIONS

from benchmark_players import BENCHMARKS, WAYS, scored, stored
from calls import unhurried
from cli_runs import CommandLine
from embedders import LEXICAL
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_agents.evidence.answers import BY_MODEL
from kg_agents.evidence.ledger import Cited, Ledger
from kg_agents.evidence.values import EntityMatch, IdLabels, NameMatch, Shown, Triple
from kg_agents.llm import Models
from kg_agents.tools.client import connect_tools
from kg_eval.logs import read_run
from kg_eval.metrics.scores import score
from kg_eval.plan import RunPlan
from kg_eval.player import GoldSpeaker
from kg_eval.questions import BenchmarkName, read_questions
from kg_eval.running import run
from kg_server.app import build_server
from small_graphs import TOKYO, write_story

TOPIC: Final = {"Q1490": "Tokyo"}
RECORDS: Final[dict[BenchmarkName, list[dict[str, object]]]] = {
    "creak": [
        {"sentence": "The capital of Tokyo is Shinjuku.", "label": "true", "qid_topic_entity": TOPIC},
        {"sentence": "The capital of Tokyo is Japan.", "label": "false", "qid_topic_entity": TOPIC},
    ],
    "qald10": [
        {"question": "What is the capital of Tokyo?", "answer": {"Q179645": "Shinjuku"}, "qid_topic_entity": TOPIC},
        {"question": "How many live in Tokyo?", "answer": {"13960236": "13960236"}, "qid_topic_entity": TOPIC},
        {"question": "Of what is Tokyo the capital?", "answer": {"Q17": "Japan"}, "qid_topic_entity": TOPIC},
        {"question": "When was Tokyo founded?", "answer": {"1868-09-03": "1868-09-03"}, "qid_topic_entity": TOPIC},
    ],
    "grbench": [
        {"qid": "0", "question": "What is the capital of Tokyo?", "answer": "Shinjuku"},
        {"qid": "10", "question": "How many capitals does Tokyo have?", "answer": "1"},
    ],
}
GRAPH: Final = f"""{TOKYO}
wd:Q1490 wdt:P1082 13960236 ; wdt:P571 "1868-09-03"^^<http://www.w3.org/2001/XMLSchema#date> .
wdt:P1082 rdfs:label "population"@en . wdt:P571 rdfs:label "inception"@en .
"""
RUNS: Final = """
[[runs]]
name = "oda"
method = "oda"

[[runs]]
name = "oda-paper"
method = "oda"
settings = { manner = "paper", iterations = "2" }

[[runs]]
name = "counselor"
method = "graph-counselor"

[[runs]]
name = "counselor-paper"
method = "graph-counselor"
settings = { manner = "paper" }
"""


@pytest.mark.parametrize(
    ("benchmark", "model"), [("qald10", "gold"), *((benchmark, "gold-rephrased") for benchmark in RECORDS)]
)
def test_a_suite_over_published_forms_scores_100_in_both_manners(
    benchmark: BenchmarkName, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / ("legal.jsonl" if benchmark == "grbench" else "data.jsonl")
    data.write_text("\n".join(map(json.dumps, RECORDS[benchmark])), encoding="utf-8")
    graph = write_story(tmp_path, GRAPH)
    linking = "model" if benchmark == "grbench" else "gold"
    common = f'[common]\nbenchmark = "{benchmark}"\ndata = "{data}"\ngraph = "{graph}"\nlinking = "{linking}"\n'
    (tmp_path / "suite.toml").write_text(common + RUNS, encoding="utf-8")
    cli = CommandLine(tmp_path, capsys)
    run = cli.run("eval", "suite", str(tmp_path / "suite.toml"), "--model", model, "--out", str(tmp_path / "runs"))
    assert run.code == 0, run.err
    runs = [str(tmp_path / "runs" / name) for name in ("oda", "oda-paper", "counselor", "counselor-paper")]
    table = [*csv.DictReader(cli.run("eval", "table", *runs, "--form", "csv").out.splitlines()[1:6])]
    assert {row["run"]: row["ours"] for row in table} == {Path(each).name: "100.00" for each in runs}


def test_the_player_scores_100_on_the_world_with_every_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = Path(__file__).parents[2] / "benchmarks" / "world" / "questions.json"
    cli = CommandLine(tmp_path, capsys)
    for method, linking in (("oda", "model"), ("graph-counselor", "model"), ("tools", "none")):
        out = str(tmp_path / method)
        asked = ("--benchmark", "world", "--data", str(data), "--graph", "sample:world", "--method", method)
        run = cli.run(
            *("eval", "run", *asked, "--linking", linking, "--sample", "12", "--model", "gold-rephrased", "--out", out),
            KG_SEXTANT_EMBEDDING__EMBEDDER="lexical",
        )
        assert run.code == 0, run.err
        assert " 100.00" in cli.run("eval", "table", out).out
    assert not list((tmp_path / "data").glob("*"))  # The memories of a run are none of the user's.


@pytest.mark.parametrize(("method", "calls"), [("oda", 1), ("graph-counselor", 2)])
async def test_who_finishes_from_the_first_prompt_loses_nothing_that_it_stated(
    method: str, calls: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache = tmp_path_factory.getbasetemp() / "world"
    settings = unhurried(cache_folder=cache, data_folder=tmp_path, embedding=LEXICAL)
    plan = RunPlan.model_validate(
        {"benchmark": "world", "data": QUESTIONS, "method": method, "model": "gold", "sample": 40}
    )
    async with (
        aclosing(LocalAdapter(open_sample(cache, "sample:world"))) as graph,
        connect_tools(build_server(graph, settings)) as tools,
    ):
        assert await run(plan, tmp_path / "run", tools, Models(GoldSpeaker(read_questions("world", QUESTIONS)))) == 0
    # Graph Counselor asks its judge as well.
    at_once = [each for each in read_run(tmp_path / "run").outcomes if each.answers and each.usage.calls == calls]
    named = [each for each in at_once if any(gold.id for gold in each.record.golds)]
    lost = [(each.record.id, each.status) for each in at_once if score(each, "set") != 1 or each.status != "answered"]
    unstated = [(each.record.id, answer) for each in named for answer in each.answers if answer.is_unconfirmed]
    assert (lost, unstated) == ([], [])
    assert len(named) >= 10


def _facts(world: World, dice: random.Random, count: int) -> Iterator[tuple[Triple, IdLabels]]:
    """Yield facts of the world that end in a value or an entity, with what they are called."""
    rows = world.solutions(
        "SELECT ?s ?sl ?r ?rl ?o ?ol { ?s ?r ?o . ?s <http://www.w3.org/2000/01/rdf-schema#label> ?sl . "
        "?r <http://www.w3.org/2000/01/rdf-schema#label> ?rl FILTER(lang(?sl) = 'en' && lang(?rl) = 'en') "
        "OPTIONAL { ?o <http://www.w3.org/2000/01/rdf-schema#label> ?ol FILTER(lang(?ol) = 'en') } }"
    )
    for row in dice.sample(sorted(rows, key=str), count):
        head, relation, tail = (str(getattr(row[name], "value", row[name])) for name in ("s", "r", "o"))
        is_value = isinstance(row["o"], ox.Literal)
        nodes = {head: str(getattr(row["sl"], "value", ""))}
        if not is_value and "ol" in row:
            nodes[tail] = str(getattr(row["ol"], "value", ""))
        labels = IdLabels(nodes, {relation: str(getattr(row["rl"], "value", ""))})
        yield (head, relation, f'"{tail}"' if is_value else tail), labels


def _near(fact: Triple, labels: IdLabels, others: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield answers near the end of a fact that are not it."""
    value = fact[2].strip('"')
    year, *rest = value.split("-")
    if len(rest) == 2 and year.isdecimal():
        yield f"{int(year) + 1}-{rest[0]}-{rest[1]}"
        yield f"{year}-{rest[0]}-{int(rest[1]) % 28 + 1:02}"
        yield f"{year}-{int(rest[0]) % 12 + 1:02}"
    elif value.replace(".", "", 1).isdecimal():
        yield f"-{value}"
        yield f"{float(value) * 10:.10g}"
        yield f"{float(value) + 1:g}" if "." in value else str(int(value) + 1)
        if "(" in (unit := labels.relations[fact[1]]):
            yield f"{value} {'km' if '(m' in unit else 'miles'}"
    elif fact[2] in labels.nodes:
        name = labels.nodes[fact[2]]
        wrong = [each for each in others if each[1] != name]
        near = [each for each in wrong if each[1].split()[-1] == name.split()[-1]]
        for entity, other in (near or wrong)[:2]:
            yield other
            yield f"{name} ({entity})"


async def test_200_answers_near_the_right_ones_are_never_stated() -> None:
    world, dice = World(), random.Random(28)  # noqa: S311 - nothing is kept secret by it
    facts = [*_facts(world, dice, 160)]
    others = sorted({each for _, labels in facts for each in labels.nodes.items()})
    bearers = {name: entity for entity, name in others}

    async def resolve(texts: Sequence[str]) -> Sequence[NameMatch]:
        known = [text for text in texts if text in bearers]
        return [NameMatch(text, "exact", (EntityMatch(bearers[text], text, "", 1.0, "label"),)) for text in known]

    asked = 0
    for fact, labels in facts:
        right = labels.nodes.get(fact[2], fact[2].strip('"'))
        ledger = Ledger()
        ledger.add(Shown((fact,), labels=labels))
        # The fact states its head as well as its tail.
        for wrong in (each for each in _near(fact, labels, others) if each not in {right, labels.nodes[fact[0]]}):
            for numbers in ((), (1,)):
                (answer,) = await ledger.answers([Cited(wrong, numbers)], f"What of {fact[0]}?", (fact[0],), resolve)
                assert answer.source == "model" or BY_MODEL in " ".join(answer.computed), (fact, right, wrong)
            asked += 1
        (stated,) = await ledger.answers([Cited(right, (1,))], f"What of {fact[0]}?", (fact[0],), resolve)
        assert stated.source == "graph", (fact, right)
    assert asked >= 200


def test_every_method_and_every_benchmark_goes_through_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = CommandLine(tmp_path, capsys)
    store = stored(cli, tmp_path)
    benchmarks: Iterator[BenchmarkName] = cycle(BENCHMARKS)
    scores = {way: scored(cli, tmp_path, store, way, next(benchmarks)) for way in WAYS}
    assert scores == dict.fromkeys(scores, 1.0)
    assert len(scores) == len(WAYS)
