"""What the examples for the sample graph say is what the sample graph holds."""

import re
from pathlib import Path

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import sample_store
from kg_adapters.local.store import open_store
from kg_adapters.requests import NeighborRequest
from kg_prompts import examples_for
from kg_server.compose.answer import Limits, composition


async def test_selected_triples_and_observations_are_facts(tmp_path: Path) -> None:
    graph = LocalAdapter(open_store(sample_store(tmp_path)))
    reflected = examples_for("sample", "oda/reflection.md")
    for head, relation, tail in re.findall(r"(Q\d+),(P\d+),(Q\d+)", reflected):
        node, over = graph.prefixes.expand(head), graph.prefixes.expand(relation, "relation")
        page = (await graph.neighbors(NeighborRequest((node,), direction="out", limit=500)))[node]
        assert (over, graph.prefixes.expand(tail)) in {(each.relation, each.tail) for each in page.triples}
    actions = examples_for("sample", "graph_counselor/action.md")
    worked = re.findall(r"^Action \d: ((?!Finish).*)\nObservation \d: (.*)$", actions, re.MULTILINE)
    assert len(worked) == 2
    for expression, observation in worked:
        answer = await composition(graph, expression, limits=Limits(), max_tokens=2_000)
        assert [each for each in observation.split(", ") if each not in answer.text] == []
    await graph.aclose()
