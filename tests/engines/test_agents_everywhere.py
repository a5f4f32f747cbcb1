"""The agents do the same on the sample at hand, behind real engines, and in Wikidata's form, over every transport."""

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal as Choice
from typing import TypeAlias

import anyio.to_thread
import pytest
from mcp import StdioServerParameters

from kg_agents import (
    ODA,
    CounselorSettings,
    GraphCounselor,
    KnowledgeGraph,
    OdaSettings,
    OdaWithoutModel,
    ScriptedLlm,
    connect,
)
from kg_agents.evidence.answers import AgentAnswer
from kg_agents.evidence.values import Triple
from kg_server.app import build_server
from kg_server.commands.graphs import opened
from kg_server.commands.loading import load_settings
from kg_server.settings import variable
from oda_runs import ENOUGH, NEIGHBORS, PATH, selecting
from remote_graphs import ENGINE_S, Engine
from server_processes import address_of, started
from wikidata_stand_in import WikidataStandIn, as_wikidata, running

pytestmark = pytest.mark.xdist_group("engines")

Transport: TypeAlias = Choice["memory", "stdio", "http"]
TRANSPORTS: tuple[Transport, ...] = ("memory", "stdio", "http")
GRAPHS = ("sample", "oxigraph", "virtuoso", "wikidata")

BIRTH: Triple = ("Q5879", "P19", "Q1794")
INFLUENCES: tuple[Triple, ...] = (("Q1035", "P737", "Q5879"), ("Q37030", "P737", "Q5879"))


@pytest.fixture(params=GRAPHS)
async def environ(
    request: pytest.FixtureRequest, tmp_path: Path, sample_triples: bytes
) -> AsyncIterator[Mapping[str, str]]:
    """What the environment of a server says, for each graph in turn."""
    folders = {"cache_folder": tmp_path / "cache", "data_folder": tmp_path / "data", "timeout_s": ENGINE_S}
    if request.param == "sample":
        yield variables(graph="sample", **folders)
    elif request.param == "wikidata":
        store = as_wikidata(sample_triples.decode().splitlines(keepends=True))
        async with running(WikidataStandIn(store)) as stand_in:
            yield variables(**wikidata_settings(stand_in), **folders)
    else:
        engine: object = request.getfixturevalue(f"{request.param}_engine")
        assert isinstance(engine, Engine)
        yield variables(**engine_settings(engine), **folders)


def variables(**settings: object) -> dict[str, str]:
    return {variable(name.replace("__", ".")): str(value) for name, value in settings.items()}


def engine_settings(engine: Engine) -> dict[str, object]:
    return {
        "graph": engine.running.url,
        "endpoint__default_graphs": engine.sample,
        "endpoint__dialect": engine.dialect,
        "endpoint__text_search": engine.text_search,
    }


def wikidata_settings(stand_in: WikidataStandIn) -> dict[str, object]:
    told = stand_in.options()
    return {
        "graph": "wikidata",
        "wikidata__contact": told.contact,
        "wikidata__query_url": told.query_url,
        "wikidata__scholarly_url": told.scholarly_url,
        "wikidata__api_url": told.api_url,
        "wikidata__requests_per_minute": told.requests_per_minute,
    }


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> Transport:
    """Each transport in turn."""
    return next(each for each in TRANSPORTS if each == request.param)


@asynccontextmanager
async def connected(environ: Mapping[str, str], transport: Transport) -> AsyncGenerator[KnowledgeGraph]:
    """Connect to a server of ours as an agent of anybody would."""
    if transport == "stdio":
        server = StdioServerParameters(command=sys.executable, args=["-m", "kg_server", "serve"], env=dict(environ))
        async with connect(server) as graph:
            yield graph
    elif transport == "http":
        async with serving(environ) as url, connect(url) as graph:
            yield graph
    else:
        settings = load_settings({}, environ, None).settings
        async with opened(settings) as adapter, connect(build_server(adapter, settings)) as graph:
            yield graph


@asynccontextmanager
async def serving(environ: Mapping[str, str]) -> AsyncGenerator[str]:
    """Serve over HTTP on a free port of loopback."""
    with started(environ) as process:
        yield await anyio.to_thread.run_sync(address_of, process)


@dataclass(frozen=True)
class Told:
    """What matters of an answer: it is the same wherever the graph is."""

    answers: tuple[str, ...]
    evidence: frozenset[Triple]
    stop_reason: str
    actions: tuple[str, ...]

    @classmethod
    def of(cls, answer: AgentAnswer, most: int = 99) -> "Told":
        """Return it of an answer, with the first answers and triples only."""
        actions = tuple(step.action for step in answer.steps)
        return cls(
            answer.texts[:most], frozenset((answer.evidence or answer.facts)[:most]), answer.stop_reason, actions
        )


async def observing(graph: KnowledgeGraph) -> Told:
    replies = (
        *(NEIGHBORS.format("Q5879"), selecting(",".join(BIRTH), *map(",".join, INFLUENCES))),
        *(PATH.format("Q1794", "Q1035"), "Triples: none", ENOUGH, "Answer:\nFrankfurt"),
    )
    agent = ODA(ScriptedLlm(replies), graph, settings=OdaSettings(manner="paper"))
    return Told.of(await agent.answer("Where was Goethe born?", ["Q5879"]))


async def counselling(graph: KnowledgeGraph) -> Told:
    replies = (
        *("Find him.", "I need where he was born.", "Neighbor[Retrieve[Johann Wolfgang von Goethe], place of birth]"),
        *("Count.", "Whom did he influence?", "Count[Neighbor[Q5879, -influenced by]], Feature[Q1794, rdfs:label]"),
        *("Done.", "It is there.", "Finish[Frankfurt]", "[yes]"),
    )
    settings = CounselorSettings(manner="paper", functions="all")
    return Told.of(
        await GraphCounselor(ScriptedLlm(replies), graph, settings=settings).answer("Where was Goethe born?")
    )


async def guessing(graph: KnowledgeGraph) -> Told:
    return Told.of(await OdaWithoutModel(graph).answer("What is his place of birth?", ["Q5879"]), most=1)


EXPECTED = {
    "ODA": Told(
        ("Frankfurt",),
        frozenset({BIRTH}),
        "answered",
        ("GetNeighbor[Q5879]", "GetPath[Q1794, Q1035]", "Answer"),
    ),
    "Graph Counselor": Told(
        ("Frankfurt",),
        frozenset({BIRTH, ("Q1794", "rdfs:label", '"Frankfurt"')}),
        "answered",
        (
            "Neighbor[Retrieve[Johann Wolfgang von Goethe], place of birth]",
            "Count[Neighbor[Q5879, -influenced by]], Feature[Q1794, rdfs:label]",
            "Finish[Frankfurt]",
        ),
    ),
    "without a model": Told((), frozenset({BIRTH}), "no_model", ("GetNeighbor[Q5879]",)),
}


async def test_every_agent_does_the_same_wherever_the_graph_is(
    environ: Mapping[str, str], transport: Transport
) -> None:
    async with connected(environ, transport) as graph:
        told = {
            "ODA": await observing(graph),
            "Graph Counselor": await counselling(graph),
            "without a model": await guessing(graph),
        }
    assert told == EXPECTED
