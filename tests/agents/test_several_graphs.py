"""Agents over two graphs that call different things by the same ids: what each answer rests on names its graph."""

from collections.abc import Sequence

import pytest

from kg_agents.evidence.ledger import Cited, Ledger
from kg_agents.evidence.values import IdLabels, NameMatch
from kg_agents.tools.client import ToolCall
from kg_agents.tools.readings import shown_by
from kg_agents.tools.several import about_graphs

GRAPHS = ("people", "films")
BORN = ("Q1 [people]", "P1 [people]", "Q2 [people]")
DIRECTED = ("Q1 [films]", "P1 [films]", "Q2 [films]")


async def nobody(texts: Sequence[str]) -> Sequence[NameMatch]:
    """Know no name."""
    del texts
    return ()


def looked_at(head: str, relation: str, tail: str, **arguments: str) -> ToolCall:
    data = {
        "triples": [["Q1", "P1", "Q2"]],
        "labels": {"Q1": head, "Q2": tail},
        "relations": {"P1": relation},
        "outgoing": {"P1": 1},
    }
    return ToolCall("GetNeighbor", {"entity": "Q1", **arguments}, "", data, failed=False)


async def test_the_same_id_in_two_graphs_is_cited_apart_with_the_graph_of_each_fact() -> None:
    ledger = Ledger()
    for call in (looked_at("Ann Lee", "born in", "Ulm"), looked_at("Sand", "directed by", "Bo Kim", graph="films")):
        ledger.add(shown_by(call, GRAPHS))
    cited = [Cited("Ulm", (1,)), Cited("Q2", (2,)), Cited("Ann Lee (Q1) [people]", (1,))]
    found = await ledger.answers(cited, "?", (), nobody)
    assert [(each.text, each.facts) for each in found] == [
        ("Ulm", (BORN,)),
        ("Bo Kim", (DIRECTED,)),
        ("Ann Lee", (BORN,)),
    ]
    assert [each.entities for each in found[:2]] == [("Q2 [people]",), ("Q2 [films]",)]
    assert ledger.labels.triple(DIRECTED) == "Sand (Q1) | directed by (P1) [films] | Bo Kim (Q2)"
    assert shown_by(looked_at("Sand", "directed by", "Bo Kim")).facts == (("Q1", "P1", "Q2"),)


@pytest.mark.parametrize(
    ("written", "sent", "graph"),
    [
        ("Neighbor[Q1, P1]", "Neighbor[Q1, P1]", None),
        ("Neighbor[Q1 [films], P1]", "Neighbor[Q1, P1]", "films"),
        ("Neighbor[Sand (Q1) [films]]", "Neighbor[Sand (Q1)]", "films"),
        ("Neighbor['Sand', born in]", "Neighbor['Sand', born in]", "films"),
        ("Union[Sand, Ann Lee]", "Union[Sand, Ann Lee]", ["people", "films"]),
        ("Retrieve [films]", "Retrieve [films]", None),
    ],
)
def test_an_expression_is_about_the_graphs_of_what_it_names(
    written: str, sent: str, graph: str | list[str] | None
) -> None:
    labels = IdLabels({"Q1 [people]": "Ann Lee", "Q1 [films]": "Sand"})
    assert about_graphs(written, labels, GRAPHS) == (sent, graph)
    assert about_graphs(written, labels, ()) == (written, None)
