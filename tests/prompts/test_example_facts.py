"""What the examples for the bundled graphs say is what these hold."""

import re
from contextlib import aclosing
from pathlib import Path
from typing import Final

import pytest

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.requests import NeighborRequest
from kg_prompts import examples_for
from kg_server.compose.answer import composition
from kg_server.compose.tool import ExpressionLimits

TURN: Final = "oda/turn.md"
FACT: Final = re.compile(r"^\[[\d, -]+\] (.+) \| (.+) \| (.+?)(?: \(\d of \d shown\))?$", re.MULTILINE)


async def test_selected_triples_and_observations_are_facts(tmp_path: Path) -> None:
    graph = LocalAdapter(open_sample(tmp_path))
    reflected = examples_for("sample", "oda/reflection.md")
    for head, relation, tail in re.findall(r"(Q\d+),(P\d+),(Q\d+)", reflected):
        node, over = graph.prefixes.expand(head), graph.prefixes.expand(relation, "relation")
        page = (await graph.neighbors(NeighborRequest((node,), direction="out", limit=500)))[node]
        assert (over, graph.prefixes.expand(tail)) in {(each.relation, each.tail) for each in page.triples}
    await graph.aclose()


@pytest.mark.parametrize("name", ["sample", "sample:world"])
async def test_what_steps_and_turns_show_is_what_the_graph_holds(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache = tmp_path_factory.getbasetemp() / ("world" if name == "sample:world" else "sample")
    async with aclosing(LocalAdapter(open_sample(cache, name))) as graph:

        async def answer(expression: str) -> str:
            return (await composition(graph, expression, limits=ExpressionLimits(), max_tokens=2_000)).text

        steps = examples_for(name, "graph_counselor/step.md")
        worked = re.findall(r"^Action: ((?!Finish).*)\nObservation 1: (.*)$", steps, re.MULTILINE)
        assert len(worked) == 2
        for expression, observation in worked:
            told = await answer(expression)
            assert [each for each in observation.split("; ") if each not in told] == []
        for prompt in ("task", "judge", "reflection"):
            text = examples_for(name, f"graph_counselor/{prompt}.md")
            observed = re.findall(r"^Action (\d+): (.*)\nObservation \1: ((?:.*\n)+?)Plan", text, re.MULTILINE)
            assert len(observed) >= 2
            for _, expression, observation in observed:
                assert (await answer(expression)).strip() == observation.strip()
        shown = FACT.findall(examples_for(name, TURN))
        assert len(shown) >= 3
        for heads, relation, tail in shown:
            function = "Feature" if tail[:4].isdigit() else "Neighbor"
            for head in heads.split("; "):
                assert tail in await answer(f'{function}["{head}", {relation}]'), head
