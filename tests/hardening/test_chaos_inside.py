"""What is below a call raises, hangs, answers garbage or late: the call ends in time, and the next one is right."""

import os
import random
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import anyio
import pytest
from mcp import Client

from calls import Reply, reply_of
from embedders import LEXICAL, RecordingEmbedder
from kg_adapters.caching import CachingAdapter
from kg_adapters.embedding import GuardedEmbedder
from kg_adapters.embedding.protocol import Vectors
from kg_adapters.errors import BackendError, BackendTimeout, BackendUnavailable
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.protocol import KGAdapter
from kg_server.app import build_server
from kg_server.memory.sqlite_storage import SqliteStorage
from kg_server.memory.store import MemoryLimits, MemoryStore
from kg_server.observation.scoring import RelationFirstScorer
from kg_server.settings import Settings
from memories import memory_server
from observers import ranking_server
from small_graphs import shared_store

BLOCKS: Final = 20
TRIALS: Final = 15
"""How many trials each block has."""
TOGETHER: Final = 5
"""How many blocks run side by side, since most of their time they wait for what hangs."""
DEADLINE_S: Final = 1.5
SPARE_S: Final = 20.0
PATIENCE_S: Final = 60.0
Kind: TypeAlias = Literal["raise", "hang", "garbage", "late"]
KINDS: Final[tuple[Kind, ...]] = ("raise", "hang", "garbage", "late")
ERRORS: Final[tuple[Exception, ...]] = (
    BackendError("The graph is broken."),
    BackendTimeout("The graph is late."),
    BackendUnavailable("The graph is away."),
    RuntimeError("Nobody expects this."),
    KeyError("nor this"),
    OSError("nor that"),
)
GARBAGE: Final[tuple[object, ...]] = (None, 17, "garbage", b"\xff", object())
"""What no verb may answer; an answer that is empty may be right."""
UNREADABLE: Final = (*GARBAGE, {"a": 1}, ("nothing",), [17])
"""What only a cache looks at, before it keeps an answer."""
MARKS: Final = (
    "Labels are missing",
    "was not found",
    "Without evidence",
    "Not everything was fetched",
    "Time ran out",
    "Names alone were compared",
    "by spelling alone",
)
"""What answers say that are not the whole truth."""

EX: Final = "http://example.org/"
LABEL: Final = "http://www.w3.org/2000/01/rdf-schema#label"
TYPE: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
CITIES: Final = ("paris", "lyon", "kyoto", "osaka", "tokyo")
GRAPH: Final = "\n".join(
    (
        *(f'<{EX}{name}> <{LABEL}> "{name.title()}"@en .' for name in (*CITIES, "france", "japan", "city", "country")),
        *(f'<{EX}{name}> <{LABEL}> "{name.replace("_", " ")}"@en .' for name in ("located_in", "capital", "people")),
        *(f"<{EX}{name}> <{TYPE}> <{EX}city> ." for name in CITIES),
        *(f"<{EX}{name}> <{EX}located_in> <{EX}{'japan' if 'o' in name[1:] else 'france'}> ." for name in CITIES),
        *(f'<{EX}{name}> <{EX}people> "{1000 * number}" .' for number, name in enumerate(CITIES)),
        f"<{EX}japan> <{EX}capital> <{EX}tokyo> .",
        f"<{EX}france> <{EX}capital> <{EX}paris> .",
    )
)
Call: TypeAlias = tuple[str, Mapping[str, object]]
CALLS: Final[tuple[Call, ...]] = (
    ("Retrieve", {"text": "Kyoto"}),
    ("Retrieve", {"text": ["Kyot", "nothing like it"]}),
    ("GetNeighbor", {"entity": "Kyoto", "direction": "both"}),
    ("GetNeighbor", {"entity": "Kyoto", "relation": "located in"}),
    ("GetPath", {"source": "Kyoto", "target": "Tokyo"}),
    ("Feature", {"entity": "Kyoto"}),
    ("Degree", {"entity": "Japan"}),
    ("Schema", {"about": "city"}),
    ("Schema", {}),
    ("observe", {"question": "Which city is the capital?", "entities": ["Japan"]}),
    ("Compose", {"expression": "Count[Neighbor[Japan, -located in]]"}),
    ("Compose", {"expression": "Top[Type[city], people, 2], Group[Type[city], located in]", "evidence": "all"}),
    ("Compose", {"expression": "Where[Type[city], located in = France, capital = Japan]"}),
    ("Sparql", {"query": 'SELECT ?x { ?x @"located in" @"Japan" }', "timeout_s": DEADLINE_S}),
    ("Sparql", {"query": f'SELECT ?x {{ ?x <{EX}people> "7" }}', "timeout_s": DEADLINE_S}),
)
VERBS: Final = frozenset(
    {
        *("labels", "describe", "neighbors", "degrees", "contains", "features", "search", "find_relations"),
        *("surroundings", "schema", "profile", "paths", "compute", "select", "label_vectors", "search_vectors"),
    }
)
STORED: Final = frozenset({"append", "read"})


@dataclass(slots=True)
class Chaos:
    """Lets answers through, or does to them what a trial is about.

    Attributes:
        verb: What fails; None where nothing does.
        kind: How.
        chance: What chooses among errors and garbage.
        garbage: What may be answered instead.
        used: What was asked since this was emptied.
        struck: Whether anything has failed since it was set.
    """

    verb: str | None = None
    kind: Kind = "raise"
    chance: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - a plan, no secret
    garbage: Sequence[object] = GARBAGE
    used: set[str] = field(default_factory=set[str])
    struck: bool = False

    async def through(
        self, verb: str, ask: Callable[..., Awaitable[object]], /, *args: object, **kwargs: object
    ) -> object:
        self.used.add(verb)
        if verb != self.verb:
            return await ask(*args, **kwargs)
        self.struck = True
        match self.kind:
            case "raise":
                raise self.chance.choice(ERRORS)
            case "hang":
                await anyio.sleep_forever()
            case "late":
                await anyio.sleep(DEADLINE_S * self.chance.choice((0.1, 0.5)))
            case "garbage":
                return self.chance.choice(self.garbage)
        return await ask(*args, **kwargs)


class ChaoticGraph(LocalAdapter):
    """A graph whose verbs fail by a plan."""

    chaos: Chaos

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever it is
        found = super().__getattribute__(name)
        return partial(self.chaos.through, name, found) if name in VERBS else found


class ChaoticStore(MemoryStore):
    """A memory store whose verbs fail by a plan."""

    chaos: Chaos

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever it is
        found = super().__getattribute__(name)
        return partial(self.chaos.through, name, found) if name in STORED else found


class ChaoticEmbedder(RecordingEmbedder):
    """A model that fails by a plan."""

    chaos: Chaos

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await self.chaos.through("embed", super().embed, texts)  # type: ignore[return-value]  # pyright: ignore[reportReturnType] - garbage


async def ended(client: Client, call: Call) -> Reply:
    """Return the answer to a call, which ends soon after its deadline whatever happens."""
    with anyio.fail_after(DEADLINE_S + SPARE_S):
        return reply_of(await client.call_tool(call[0], dict(call[1])))


async def unfailing(client: Client, call: Call) -> Reply:
    """Return the answer to a call that nothing disturbs; a busy machine may need a second try."""
    with anyio.fail_after(PATIENCE_S):
        reply = await ended(client, call)
        while reply.is_error and any(late in reply.text for late in ("took longer", "was stopped after")):
            reply = await ended(client, call)
    return reply


def is_honest(reply: Reply, right: Reply) -> bool:
    """Say whether an answer is right, an error, or says what it lacks."""
    if reply.is_error or reply.data == right.data or reply.data.get("status") == "timeout":
        return True
    return any(mark in reply.text for mark in MARKS if mark not in right.text)


@asynccontextmanager
async def tools_over(graph: KGAdapter, folder: Path) -> AsyncGenerator[Client]:
    settings = Settings(cache_folder=folder, data_folder=folder, embedding=LEXICAL, timeout_s=DEADLINE_S)
    async with Client(build_server(graph, settings)) as client:
        yield client


@pytest.mark.parametrize("cached", [False, True], ids=["plain", "cached"])
@pytest.mark.parametrize("first", range(0, BLOCKS // 2, TOGETHER))
async def test_whatever_the_graph_does_calls_end_in_time_and_the_next_is_right(
    tmp_path: Path, first: int, cached: bool
) -> None:
    async with anyio.create_task_group() as blocks:
        for block in range(first, first + TOGETHER):
            blocks.start_soon(try_block, tmp_path / str(block), block, cached)


async def try_block(folder: Path, block: int, cached: bool) -> None:
    chance, chaos, now = random.Random(block), Chaos(), [0.0]  # noqa: S311 - a plan, no secret
    async with AsyncExitStack() as stack:
        graph = await stack.enter_async_context(aclosing(ChaoticGraph(shared_store(GRAPH, form="nt"))))
        graph.chaos = chaos
        chaos.garbage = UNREADABLE if cached else GARBAGE
        served = CachingAdapter(graph, clock=lambda: now[0]) if cached else graph
        client = await stack.enter_async_context(tools_over(served, folder))
        right: dict[int, Reply] = {}
        pairs: list[tuple[int, str]] = []
        for place, call in enumerate(CALLS):
            now[0] += 1e6
            chaos.used.clear()
            right[place] = await unfailing(client, call)
            assert not right[place].is_error, right[place].text
            pairs += [(place, verb) for verb in sorted(chaos.used)]
        for trial in range(TRIALS):
            now[0] += 1e6
            place, chaos.verb = chance.choice(pairs)
            chaos.kind, chaos.struck, chaos.chance = chance.choice(KINDS), False, chance
            plan = f"block {block}, trial {trial}: {CALLS[place]} while {chaos.verb} is made to {chaos.kind}"
            reply = await ended(client, CALLS[place])
            assert is_honest(reply, right[place]), f"{plan}: {reply.text}"
            chaos.verb = None
            again = await unfailing(client, CALLS[place])
            assert (again.text, again.data) == (right[place].text, right[place].data), plan


@pytest.mark.parametrize("kind", KINDS)
async def test_whatever_the_model_does_letters_rank_and_the_next_call_is_right(tmp_path: Path, kind: Kind) -> None:
    chaos, model = Chaos(kind=kind), ChaoticEmbedder()
    model.chaos = chaos
    scorer = RelationFirstScorer(GuardedEmbedder(model, timeout_s=DEADLINE_S / 3, pause_s=1e-6))
    call: Call = ("observe", {"question": "Which city is the capital?", "entities": ["Japan"]})
    async with (
        aclosing(LocalAdapter(shared_store(GRAPH, form="nt"))) as graph,
        Client(ranking_server(graph, scorer, DEADLINE_S)) as client,
    ):
        right = await unfailing(client, call)
        for seed in range(len(GARBAGE)):
            chaos.verb, chaos.struck, chaos.chance = "embed", False, random.Random(seed)  # noqa: S311 - a plan
            reply = await ended(client, call)
            assert chaos.struck
            assert is_honest(reply, right), reply.text
            chaos.verb = None
            assert (await unfailing(client, call)).data == right.data


@pytest.mark.parametrize("verb", sorted(STORED))
@pytest.mark.parametrize("kind", KINDS)
async def test_whatever_the_memory_store_does_nothing_answered_is_lost(tmp_path: Path, verb: str, kind: Kind) -> None:
    chaos = Chaos()
    store = ChaoticStore(SqliteStorage(tmp_path / "memories.sqlite3"), MemoryLimits())
    store.chaos = chaos
    facts = [[f"{EX}{city}", f"{EX}located_in", f"{EX}japan"] for city in ("kyoto", "osaka", "tokyo")]
    async with aclosing(LocalAdapter(shared_store(GRAPH, form="nt"))) as graph:
        server = memory_server(graph, store, settings=Settings(timeout_s=DEADLINE_S))
        async with Client(server) as client:
            begun = await unfailing(client, ("memory-append", {"triples": facts[:1]}))
            memory = str(begun.data["memory"])
            appends: Call = ("memory-append", {"triples": facts[1:], "memory": memory})
            reads: Call = ("memory-read", {"memory": memory})
            before = await unfailing(client, reads)
            for seed in range(3):
                chaos.verb, chaos.kind, chaos.chance = verb, kind, random.Random(seed)  # noqa: S311 - a plan
                reply = await ended(client, reads if verb == "read" else appends)
                chaos.verb = None
                assert reply.is_error or kind == "late", reply.text
                kept = await unfailing(client, reads)
                assert kept.data == before.data or (kind == "late" and verb == "append"), kept.text
            stored = await unfailing(client, ("memory-append", {"triples": facts, "memory": memory}))
            assert not stored.is_error
            assert len(stored.text.splitlines()) >= len(facts)


@pytest.mark.skipif(sys.platform == "win32", reason="processes are stopped by signals")
@pytest.mark.parametrize("sent", ["SIGKILL", "SIGSTOP"])
async def test_whatever_its_processes_do_a_query_ends_in_time_and_the_next_is_right(tmp_path: Path, sent: str) -> None:
    hurried: Call = ("Sparql", {"query": f"SELECT ?x {{ ?x <{EX}located_in> <{EX}japan> }}", "timeout_s": DEADLINE_S})
    patient: Call = ("Sparql", {**hurried[1], "timeout_s": PATIENCE_S})
    async with aclosing(LocalAdapter(shared_store(GRAPH, form="nt"))) as graph, tools_over(graph, tmp_path) as client:
        right = reply_of(await client.call_tool(patient[0], dict(patient[1])))
        assert not right.is_error, right.text
        for _ in range(3):
            for process in graph.sparql.pool.workers.processes:
                os.kill(process.pid, getattr(signal, sent))
            reply = await ended(client, hurried)
            assert is_honest(reply, right), reply.text
            again = reply_of(await client.call_tool(patient[0], dict(patient[1])))
            assert (again.text, again.data) == (right.text, right.data)
