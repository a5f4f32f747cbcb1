"""Agents over two graphs that call different things by the same ids: what each answer rests on names its graph."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kg_agents.evidence.answers import AgentAnswer
from kg_agents.evidence.ledger import Cited, Ledger
from kg_agents.evidence.values import IdLabels, NameMatch
from kg_agents.llm import Scripted, ScriptedLlm
from kg_agents.parameters import AgentSettings, CounselorSettings, OdaSettings, ToolsSettings
from kg_agents.running import Question, replay_question, run_question
from kg_agents.tools.client import Toolbox, ToolCall
from kg_agents.tools.functions import offered
from kg_agents.tools.readings import shown_by
from kg_agents.tools.results import ToolResult, candidate_of
from kg_agents.tools.several import Owners, about_graphs, graphs_of, without_graphs
from kg_agents.trace import Trace
from oda_runs import answer, calls, stories_tools

PREFIXES = """
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
PEOPLE = f"""{PREFIXES} @prefix ex: <http://people.example/> .
ex:q1 rdfs:label "Ann Lee"@en ; ex:p1 ex:q2 . ex:q2 rdfs:label "Ulm"@en . ex:p1 rdfs:label "born in"@en .
"""
FILMS = f"""{PREFIXES} @prefix ex: <http://films.example/> .
ex:q1 rdfs:label "Sand"@en ; ex:p1 ex:q2 . ex:q2 rdfs:label "Boris Kimura"@en . ex:p1 rdfs:label "directed by"@en .
"""
GRAPHS = ("people", "films")
BORN = ("ex:q1 [people]", "ex:p1 [people]", "ex:q2 [people]")
DIRECTED = ("ex:q1 [films]", "ex:p1 [films]", "ex:q2 [films]")


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[Toolbox]:
    async with stories_tools(tmp_path, {"people": PEOPLE, "films": FILMS}) as connected:
        yield connected


@dataclass
class Asking:
    """Asks with an agent, and checks that the record of the run gives the same answer again."""

    tools: Toolbox
    path: Path

    async def __call__(self, settings: AgentSettings, *replies: Scripted, question: str = "?") -> AgentAnswer:
        graphs = graphs_of((await self.tools.offer()).tools)
        with Trace(self.path) as trace:
            asked = Question(question, (), settings, graphs=graphs)
            found = await run_question(asked, self.tools, ScriptedLlm(replies), trace)
        again, same = await replay_question(self.path)
        assert (same, again.answers) == (True, found.answers)
        return found


@pytest.fixture
def ask(tools: Toolbox, tmp_path: Path) -> Asking:
    return Asking(tools, tmp_path / "run.jsonl")


async def test_the_same_id_in_two_graphs_is_cited_apart_with_the_graph_of_each_fact(ask: Asking) -> None:
    look, there = ("GetNeighbor", {"entity": "ex:q1"}), ("GetNeighbor", {"entity": "ex:q1 [films]"})
    given = [{"text": "Ulm", "results": [1]}, {"text": "ex:q2", "results": [2]}]
    found = await ask(ToolsSettings(only="all"), calls(look, there), calls(("answer", {"answers": given})))
    assert [(each.text, each.facts) for each in found.answers] == [("Ulm", (BORN,)), ("Boris Kimura", (DIRECTED,))]
    assert [each.entities for each in found.answers] == [("ex:q2 [people]",), ("ex:q2 [films]",)]
    assert (found.status, found.explanation) == ("answered", "")
    assert found.labels.triple(DIRECTED) == "Sand (ex:q1) | directed by (ex:p1) [films] | Boris Kimura (ex:q2)"


async def test_an_answer_that_no_result_shows_by_its_words_is_looked_for_in_all_graphs(ask: Asking) -> None:
    look = ("GetNeighbor", {"entity": "Sand", "graph": "films"})
    found = await ask(
        ToolsSettings(only="all"),
        calls(look),
        calls(("answer", {"answers": [{"text": "Boris Kimora", "results": [1]}]})),
    )
    assert [(each.text, each.facts) for each in found.answers] == [("Boris Kimura", (DIRECTED,))]


async def test_what_links_one_thing_in_two_graphs_is_evidence_of_both(tmp_path: Path) -> None:
    people = f"""{PREFIXES} @prefix p: <http://people.example/> .
        p:ann rdfs:label "Ann Lee"@en ; p:born p:ulm . p:ulm rdfs:label "Ulm"@en . p:born rdfs:label "born in"@en ."""
    films = f"""{PREFIXES} @prefix f: <http://films.example/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
        f:sand rdfs:label "Sand"@en ; f:by f:ann . f:by rdfs:label "directed by"@en .
        f:ann rdfs:label "Ann Lee"@en ; owl:sameAs <http://people.example/ann> ."""
    path = ("GetPath", {"source": "Sand", "target": "Ulm", "graph": ["films", "people"]})
    llm = ScriptedLlm([calls(path), answer("Ulm")])
    async with stories_tools(tmp_path, {"people": people, "films": films}) as tools:
        with Trace(tmp_path / "run.jsonl") as trace:
            asked = Question(
                "Where was who directed Sand born?", ("Ann Lee", "Sand"), ToolsSettings(only="all"), graphs=GRAPHS
            )
            found = await run_question(asked, tools, llm, trace)
    assert "It is about p:ann [people], f:ann [films], f:sand [films]." in llm.asked[0].prompt
    assert (found.status, found.explanation) == ("answered", "")
    assert [found.labels.triple(fact) for fact in found.evidence] == [
        "Sand (f:sand) | directed by (f:by) [films] | Ann Lee (f:ann)",
        "Ann Lee (f:ann) | born in (p:born) [people] | Ulm (p:ulm)",
    ]


async def test_the_model_is_offered_the_names_of_the_graphs(tools: Toolbox) -> None:
    chosen = {each.name: each.parameters for each in offered((await tools.offer()).tools, "all")}
    for name in ("GetNeighbor", "Compose"):
        assert graphs_of([tool for tool in offered((await tools.offer()).tools, "all") if tool.name == name]) == GRAPHS
    assert "graph" not in str(chosen["memory-read"])


async def test_an_entity_that_oda_finds_is_looked_at_in_its_graph(ask: Asking) -> None:
    found = await ask(
        OdaSettings(),
        "Sand",
        "Thought: There.\nKeep: 1\nAction: GetNeighbor[c1]",
        "Thought: There.\nKeep: none\nAction: Answer\nAnswer: Boris Kimura [1]",
        question="Who directed Sand?",
    )
    assert [(each.text, each.facts) for each in found.answers] == [("Boris Kimura", (DIRECTED,))]
    assert (found.status, found.explanation) == ("answered", "")


async def test_graph_counselor_composes_in_the_graph_of_what_it_names(ask: Asking) -> None:
    found = await ask(
        CounselorSettings(),
        "Sand",
        "Plan: look.\nThought: director.\nAction: Neighbor[ex:q1, directed by]",
        "Plan: end.\nThought: known.\nAction: Finish[Boris Kimura [1]]",
        "It is what the graph says.\n[yes]",
        question="Who directed Sand?",
    )
    assert [(each.text, each.facts) for each in found.answers] == [("Boris Kimura", (DIRECTED,))]
    assert found.status == "answered"


async def nobody(texts: Sequence[str]) -> Sequence[NameMatch]:
    """Know no name."""
    del texts
    return ()


def looked_at(head: str, relation: str, tail: str, **arguments: str) -> ToolCall:
    data = {
        "triples": [["ex:q1", "ex:p1", "ex:q2"]],
        "labels": {"ex:q1": head, "ex:q2": tail},
        "relations": {"ex:p1": relation},
        "outgoing": {"ex:p1": 1},
    }
    return ToolCall("GetNeighbor", {"entity": "ex:q1", **arguments}, "", data, failed=False)


async def test_an_answer_may_name_its_graph_behind_the_id() -> None:
    ledger = Ledger()
    for call in (
        looked_at("Ann Lee", "born in", "Ulm"),
        looked_at("Sand", "directed by", "Boris Kimura", graph="films"),
    ):
        ledger.add(shown_by(call, GRAPHS))
    cited = [Cited("Ulm", (1,)), Cited("ex:q2", (2,)), Cited("Ann Lee (ex:q1) [people]", (1,))]
    found = await ledger.answers(cited, "?", (), nobody)
    assert [(each.text, each.facts) for each in found] == [
        ("Ulm", (BORN,)),
        ("Boris Kimura", (DIRECTED,)),
        ("Ann Lee", (BORN,)),
    ]
    assert [each.entities for each in found[:2]] == [("ex:q2 [people]",), ("ex:q2 [films]",)]
    assert ledger.labels.triple(DIRECTED) == "Sand (ex:q1) | directed by (ex:p1) [films] | Boris Kimura (ex:q2)"
    assert shown_by(looked_at("Sand", "directed by", "Boris Kimura")).facts == (("ex:q1", "ex:p1", "ex:q2"),)


def test_a_name_that_one_thing_bears_in_two_graphs_is_not_ambiguous() -> None:
    row = ["ex:q1", "Ann Lee", "", "", "1", "label 'Ann Lee'", "", "1"]
    data = {
        "candidates": [
            [*row, "also in films as ex:q7 and ex:q8", "people"],
            ["ex:q7", *row[1:], "films"],
            [*row, "films"],
        ]
    }
    call = ToolCall("Retrieve", {"text": "Ann Lee"}, "", data, failed=False)
    one, same, namesake = map(candidate_of, ToolResult.of(call, graphs=GRAPHS).candidates)
    assert (one.id, one.also, one.named) == (
        "ex:q1 [people]",
        ("ex:q7 [films]", "ex:q8 [films]"),
        "Ann Lee (ex:q1) [people]",
    )
    assert NameMatch("Ann Lee", "exact", (one, same)).is_one
    assert not NameMatch("Ann Lee", "exact", (one, same, namesake)).is_one


@pytest.mark.parametrize(
    ("given", "graph"),
    [
        (None, "people"),
        ("FILMS", "films"),
        (["Films"], "films"),
        ("people, films", ""),
        ("[people,films]", ""),
        ('["people", "films"]', ""),
    ],
)
def test_the_ids_of_an_answer_are_those_of_the_graph_that_the_server_read(given: object, graph: str) -> None:
    assert Owners.of("GetNeighbor", {"graph": given}, GRAPHS).graph == graph


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"entity": "ex:q1"}, {"entity": "ex:q1"}),
        (
            {"entity": "ex:q1 [films]", "relation": "ex:p1 [films]"},
            {"entity": "ex:q1", "relation": "ex:p1", "graph": "films"},
        ),
        ({"entity": "x [other]"}, {"entity": "x [other]"}),
        (
            {"source": "ex:q1 [films]", "target": "ex:q2 [people]"},
            {"source": "ex:q1", "target": "ex:q2", "graph": ["films", "people"]},
        ),
        ({"entities": ["a [people]", "b [people]"]}, {"entities": ["a", "b"], "graph": "people"}),
    ],
)
def test_a_call_names_the_graphs_of_the_ids_that_it_is_about(
    given: Mapping[str, object], sent: Mapping[str, object]
) -> None:
    assert without_graphs(given, GRAPHS) == sent


@pytest.mark.parametrize(
    ("written", "sent", "graph"),
    [
        ("Neighbor[ex:q1, ex:p1]", "Neighbor[ex:q1, ex:p1]", None),
        ("Neighbor[ex:q1 [films], ex:p1]", "Neighbor[ex:q1, ex:p1]", "films"),
        ("Neighbor[Sand (ex:q1) [films]]", "Neighbor[Sand (ex:q1)]", "films"),
        ("Neighbor['Sand', born in]", "Neighbor['Sand', born in]", "films"),
        ("Union[Sand, Ann Lee]", "Union[Sand, Ann Lee]", ["people", "films"]),
        ("Retrieve [films]", "Retrieve [films]", None),
    ],
)
def test_an_expression_is_about_the_graphs_of_what_it_names(
    written: str, sent: str, graph: str | list[str] | None
) -> None:
    labels = IdLabels({"ex:q1 [people]": "Ann Lee", "ex:q1 [films]": "Sand"})
    assert about_graphs(written, labels, GRAPHS) == (sent, graph)
    assert about_graphs(written, labels, ()) == (written, None)
