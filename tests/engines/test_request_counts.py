"""What each tool costs an endpoint, in requests, as the page about large graphs says."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from benchmarks.engines.weather import Proxy, weathered
from mcp import Client

from calls import UNHURRIED, reply_of
from kg_server.app import build_server
from remote_graphs import Engine

# In the process in which other tests are over it.
pytestmark = [pytest.mark.xdist_group("engines"), pytest.mark.xdist_group("virtuoso")]

PAGE = Path(__file__).parents[2] / "docs" / "endpoints.md"
ROW = re.compile(r"^\| `([A-Za-z-]+)`([^|]*)\| (\d+) \| (\d+) \|", re.MULTILINE)
QUESTION = "What is the capital of Japan?"
OTHER = "What is the capital of France?"
CALLS: Mapping[str, tuple[Mapping[str, object], Mapping[str, object]]] = {
    "Retrieve": ({"text": "Tokyo"}, {"text": "Paris"}),
    "Retrieve, misspelled": ({"text": "Tokoy"}, {"text": "Pariss"}),
    "GetNeighbor": ({"entity": "Q1490"}, {"entity": "Q90"}),
    "GetNeighbor, a hub": ({"entity": "Q30", "direction": "in"}, {"entity": "Q183", "direction": "in"}),
    "Feature": ({"entity": "Q1490"}, {"entity": "Q90"}),
    "Degree": ({"entity": "Q1490"}, {"entity": "Q90"}),
    "GetPath, 3 hops": ({"source": "Q1490", "target": "Q90"}, {"source": "Q17", "target": "Q142"}),
    "observe, 1 hop": (
        {"question": QUESTION, "entities": ["Q17"], "hops": 1},
        {"question": OTHER, "entities": ["Q142"], "hops": 1},
    ),
    "observe, 3 hops": (
        {"question": QUESTION, "entities": ["Q17"], "hops": 3},
        {"question": OTHER, "entities": ["Q142"], "hops": 3},
    ),
    "Compose": ({"expression": "Count[Neighbor[Q17, P36]]"}, {"expression": "Count[Neighbor[Q142, P36]]"}),
    "memory-append": ({"triples": [["Q17", "P36", "Q1490"]]}, {"triples": [["Q1490", "P17", "Q17"]]}),
    "Sparql": (
        {"query": "SELECT ?x { wd:Q17 wdt:P36 ?x }"},
        {"query": "SELECT ?x { wd:Q142 wdt:P36 ?x }"},
    ),
}
"""By its name on the page, a tool's first call to a new server, and a call about something else."""


async def test_the_page_tells_the_requests_of_each_tool(virtuoso_engine: Engine, tmp_path: Path) -> None:
    engine = virtuoso_engine
    counted: dict[str, tuple[int, int]] = {}
    for number, (name, (first, other)) in enumerate(CALLS.items()):
        with weathered(engine.running.url) as proxy:
            async with (
                engine.opened(engine.sample, tmp_path / str(number), url=proxy.url) as graph,
                Client(build_server(graph, UNHURRIED)) as client,
            ):
                tool = name.partition(",")[0]
                counts = [await requests_of(client, proxy, tool, arguments) for arguments in (first, other)]
        counted[name] = (counts[0], counts[1])
    most = told()
    assert counted.keys() == most.keys()
    # A profile that is being learned beside a call may save a request.
    assert {name: counts for name, counts in counted.items() if not _agree(counts, most[name])} == {}


def _agree(counts: tuple[int, int], most: tuple[int, int]) -> bool:
    return all(0 <= told - counted <= 1 for counted, told in zip(counts, most, strict=True))


async def requests_of(client: Client, proxy: Proxy, tool: str, arguments: Mapping[str, object]) -> int:
    """Return how many requests a call makes."""
    before = proxy.happened["fair"]
    reply = reply_of(await client.call_tool(tool, dict(arguments)))
    assert not reply.is_error, reply.text
    return proxy.happened["fair"] - before


def told() -> Mapping[str, tuple[int, int]]:
    """Return what the page says."""
    rows = (row.groups() for row in ROW.finditer(PAGE.read_text(encoding="utf-8")))
    return {tool + more.rstrip(): (int(first), int(other)) for tool, more, first, other in rows}
