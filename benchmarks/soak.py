"""Many clients ask everything at once for minutes: `python -m benchmarks.soak`, with `--remote` an endpoint.

Every answer must be the one that the same call gave when nobody else asked (over a bad network also an error that names
its cause and the next step), no fact that was appended may be lost, and nothing may leak. It prints figures for each
tool, and ends with status 1 when anything is wrong or a target is missed.
"""

import argparse
import asyncio
import os
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final, Literal, TypeAlias

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent, TextResourceContents
from pydantic import TypeAdapter

from benchmarks.engines.oxigraph import running_oxigraph
from benchmarks.engines.weather import FAIR, ROUGH, Proxy, weathered
from benchmarks.figures import Timings
from benchmarks.graphs import Workload, choose_workload
from benchmarks.serving import ours, over_stdio, running
from kg_adapters.http.options import EndpointOptions
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_adapters.local.sparql.store import ensure_sparql_store, statements
from kg_adapters.local.written_lists import read_lists
from kg_adapters.protocol import KGAdapter
from kg_adapters.registry import OpenOptions
from kg_adapters.sparql.opening import open_sparql
from kg_server.app import build_server
from kg_server.serving.login import SCOPES
from kg_server.serving.tokens import TokenFile
from kg_server.settings import Settings

Verdict: TypeAlias = Literal["right", "clear error", "stopped early", "wrong", "unclear error"]

RESOURCE: Final = "a resource"
SHARES: Final[Mapping[str, int]] = {
    "GetNeighbor": 18,
    "GetNeighbor, page of a hub": 10,
    "Degree": 10,
    "Feature": 8,
    "Retrieve": 12,
    "Retrieve, new words": 2,
    "observe": 6,
    "observe, new question": 2,
    "GetPath": 7,
    "GetPath, hubs": 2,
    "Compose": 6,
    "Sparql": 6,
    "Schema": 3,
    RESOURCE: 4,
    "memory-append": 3,
    "memory-read": 1,
}
"""How many of a hundred calls are of which kind."""
REMOTE: Final = ("GetNeighbor", "Degree", "Feature", "observe", "GetPath", "Compose", "Sparql")
"""The kinds whose answers are the same from an endpoint."""
BAD: Final[tuple[Verdict, ...]] = ("wrong", "unclear error")
MOST_SPREAD: Final = 5.0
"""How many times the median p95 may be."""
GROWTH_MB: Final = 150.0
"""How much more memory a process may hold than when everything had been asked once: new questions fill its caches."""
_MORE_FILES: Final = 8
_SETTLING_S: Final = 20.0
_IDLE_S: Final = 0.5
_LEAST_WORK: Final = 0.05
_HUBS, _PAGES = 6, 4
# Far beyond any deadline: a call that takes longer hangs.
_HANGS_S: Final = 120.0
_PATIENT_S: Final = 60.0
_MOST_APPENDED: Final = 5
_QUESTIONS: Final = 60
_LABEL: Final = "http://www.w3.org/2000/01/rdf-schema#label"
_WORDS: Final = ("river", "city", "king", "island", "song", "engine", "painter", "war", "school", "bridge", "novel")
_ROWS: Final = TypeAdapter(list[list[str]])
_KIB_PER_MB: Final = 1_000_000 / 1_024
_STATUS: Final = re.compile(r"(?m)^(Threads|VmRSS):\s*(\d+)")
_CURSOR: Final = re.compile(r'cursor="[^"]*"')
_CAUSE: Final = re.compile(
    r"HTTP \d{3}|dropped the connection|gave no answer within|in a row, so it is left alone|cannot be reached"
    r"|has asked to be left alone|took longer than|no time for it within"
)
_IN_PART: Final = re.compile(r"Without evidence: |What it rests on was not found|did not come in time| \| error: ")
"""The words of an answer of which a part failed, or whose evidence or details did not come."""
_STEP: Final = re.compile(r"\b(?:[Aa]sk (?:again|for less)|[Cc]heck|Change|raise the setting)\b")


@dataclass(frozen=True, slots=True)
class Said:
    """What a tool answered, without cursors, which differ from one graph to the next."""

    text: str
    data: Mapping[str, object] = field(default_factory=dict[str, object])
    is_error: bool = False

    @classmethod
    def by(cls, result: CallToolResult) -> "Said":
        """Return the content of a result."""
        text = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
        content: dict[str, object] = result.structured_content or {}
        data = {name: value for name, value in content.items() if name != "cursor"}
        if isinstance(summary := data.get("summary"), str):
            data["summary"] = _CURSOR.sub("cursor", summary)
        return cls(_CURSOR.sub("cursor", text), data, result.is_error)


@dataclass(frozen=True, slots=True)
class Question:
    """One call: the kind it is counted as, one of `SHARES`, the tool or `RESOURCE`, and its arguments."""

    kind: str
    tool: str
    arguments: Mapping[str, object]

    async def ask(self, client: Client) -> Said:
        """Ask it, and return the answer."""
        if self.tool != RESOURCE:
            return Said.by(await client.call_tool(self.tool, dict(self.arguments)))
        contents = (await client.read_resource(str(self.arguments["uri"]))).contents
        return Said("\n".join(part.text for part in contents if isinstance(part, TextResourceContents)))


Known: TypeAlias = Mapping[str, Sequence[tuple[Question, Said]]]
"""The questions that always have the same answer, each with it, by kind."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a process and those that it has started hold; zero where the system does not report it.

    Args:
        threads: Its threads.
        files: Its open descriptors.
        megabytes: Its resident memory, 10^6 bytes.
        cpu_s: Seconds that the processors have spent on all of them.
    """

    threads: int = 0
    files: int = 0
    megabytes: float = 0.0
    cpu_s: float = 0.0

    @classmethod
    def of(cls, number: int) -> "Footprint":
        """Return the footprint of a process, given its number."""
        folder = Path("/proc", str(number))
        status = dict(_STATUS.findall(_read(folder / "status")))
        if not status:
            return cls()
        numbers = [_read(Path("/proc", str(each), "stat")).rpartition(")")[2].split() for each in _family(number)]
        ticks = sum(int(each[11]) + int(each[12]) for each in numbers if each)
        return cls(
            threads=int(status["Threads"]),
            files=len(list((folder / "fd").iterdir())),
            megabytes=int(status["VmRSS"]) / _KIB_PER_MB,
            cpu_s=ticks / os.sysconf("SC_CLK_TCK"),
        )

    def __str__(self) -> str:
        """Return it for people."""
        return (
            f"{self.megabytes:.0f} MB, {self.files} descriptors, {self.threads} threads, "
            f"{self.cpu_s:.1f} s of processor time"
        )


@dataclass(slots=True)
class Tally:
    """The answers of one kind: how many of each verdict, the seconds of each, and some bad ones."""

    verdicts: Counter[Verdict] = field(default_factory=Counter[Verdict])
    seconds: list[float] = field(default_factory=list[float])
    bad: list[str] = field(default_factory=list[str])

    def add(self, question: Question, said: Said, expected: Said | None, seconds: float) -> Verdict:
        """Judge an answer and count it; where none is expected, any in time that is no error is right."""
        if expected is None:
            expected = Said("") if said.is_error or said.data.get("status") == "timeout" else said
        verdict = judged(said, expected)
        self.verdicts[verdict] += 1
        self.seconds.append(seconds)
        if verdict in BAD and len(self.bad) < 5:
            self.bad.append(f"{question}: {said.text[:300]}")
        return verdict


@dataclass(frozen=True)
class Report:
    """One load over one transport.

    Args:
        name: What people call it.
        seconds: How long it took.
        tallies: The answers by kind.
        acknowledged: How many facts the server acknowledged in memories.
        lost: How many of these were not there in the end.
        before: What the server held when everything had been asked once.
        after: What it held at rest.
        logged: What it wrote to its log.
        weather: What the network did to requests, and how often.
        left_open: How many connections are still open after it.
        recovered: Whether every call was answered rightly once the network was good again.
    """

    name: str
    seconds: float
    tallies: Mapping[str, Tally]
    acknowledged: int
    lost: int
    before: Footprint
    after: Footprint
    logged: Sequence[str] = ()
    weather: Mapping[str, int] = field(default_factory=dict[str, int])
    left_open: int = 0
    recovered: bool = True

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How many answers there were of each verdict."""
        return sum((tally.verdicts for tally in self.tallies.values()), Counter[Verdict]())

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong on any machine, as sentences; nothing should be."""
        before, after = self.before, self.after
        most_threads = 40  # anyio keeps as many for later work
        found = {f"{number} answers are of the kind {kind!r}": kind in BAD for kind, number in self.verdicts.items()}
        found |= {
            "no answer was right": not self.verdicts["right"],
            "calls still fail when the network is good again": not self.recovered,
            f"{self.lost} of {self.acknowledged} facts that were acknowledged are lost": self.lost > 0,
            f"{self.left_open} connections are left open": self.left_open > 0,
            f"{after.files} descriptors are open; before it {before.files}": after.files > before.files + _MORE_FILES,
            f"{after.threads} threads are left; before it {before.threads}": (
                after.threads > before.threads + most_threads
            ),
            f"memory grew by {after.megabytes - before.megabytes:.0f} MB": (
                after.megabytes > before.megabytes + GROWTH_MB
            ),
            f"the server logged {len(self.logged)} lines": bool(self.logged),
        }
        return tuple(text for text, holds in found.items() if holds)

    @property
    def misses(self) -> tuple[str, ...]:
        """The targets that are missed, which a busy machine may do; none over a bad network."""
        if self.weather:
            return ()
        every = self._every
        late = self.verdicts["clear error"] + self.verdicts["stopped early"]
        found = {
            f"p95 is {every.p95 / every.median:.1f} times the median": every.p95 > MOST_SPREAD * every.median,
            f"{late} answers came too late": late > 0,
        }
        return tuple(text for text, holds in found.items() if holds)

    @property
    def _every(self) -> Timings:
        return Timings(tuple(taken for tally in self.tallies.values() for taken in tally.seconds))

    def lines(self) -> Iterator[str]:
        """Yield the figures for people."""
        calls = len(self._every.seconds)
        verdicts = ", ".join(f"{number:,} {verdict}" for verdict, number in self.verdicts.most_common())
        yield f"{self.name}: {calls:,} calls in {self.seconds:.0f} s, {calls / self.seconds:.0f} a second: {verdicts}"
        kinds = sorted(self.tallies.items(), key=lambda each: -sum(each[1].seconds))
        for kind, timings in (("all", self._every), *((kind, Timings(tuple(each.seconds))) for kind, each in kinds)):
            p50, p95 = timings.median * 1e3, timings.p95 * 1e3
            yield f"  {kind:26}{len(timings.seconds):>9,} calls, p50 {p50:9,.1f} ms, p95 {p95:9,.1f} ms"
        yield f"memory: {self.acknowledged:,} facts acknowledged, {self.lost} lost"
        if self.weather:
            yield f"network: {', '.join(f'{number:,} {kind}' for kind, number in self.weather.items())}"
        yield f"before: {self.before}"
        yield f"after:  {self.after}"
        yield from (f"LOG {line}" for line in self.logged[:5])
        yield from (f"BAD {each}" for tally in self.tallies.values() for each in tally.bad)
        yield from (f"MISSED: {miss}." for miss in self.misses)
        yield from (f"WRONG: {problem}." for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Soak:
    """What is asked, and for how long.

    Args:
        folder: Where the servers keep their files.
        work: What the questions are about.
        clients: How many ask at once.
        seconds: For how long.
        seed: Where the dice start.
        timeout_s: How many seconds a call to an endpoint may take.
    """

    folder: Path
    work: Workload
    clients: int = 64
    seconds: float = 180.0
    seed: int = 0
    timeout_s: float = 5.0

    @property
    def environ(self) -> dict[str, str]:
        """The variables that keep a server's files in the folder."""
        return {f"KG_SEXTANT_{name}_FOLDER": str(self.folder / name.lower()) for name in ("CACHE", "DATA")}


class Caller:
    """One caller, who asks what the dice choose, and keeps facts in a memory.

    Args:
        client: Its session.
        known: What it may ask, with the answers.
        entities: What new questions are about.
        dice: What chooses.
        tallies: Where its answers are counted, by kind.
    """

    def __init__(
        self,
        client: Client,
        known: Known,
        entities: Sequence[str],
        dice: random.Random,
        tallies: Mapping[str, Tally],
    ) -> None:
        self._client = client
        self._known = known
        self._entities = entities
        self._dice = dice
        self._tallies = tallies
        self._memory: str | None = None
        self.acknowledged: set[tuple[str, ...]] = set()

    async def ask_until(self, end: float, shares: Mapping[str, int]) -> None:
        """Ask until the clock shows `end`."""
        while perf_counter() < end:
            (kind,) = self._dice.choices(list(shares), list(shares.values()))
            if kind == "memory-append" or (kind == "memory-read" and self._memory is None):
                await self._append()
            elif kind in self._known:
                await self.ask(*self._dice.choice(self._known[kind]))
            else:
                await self.ask(self._new_question(kind), None)

    async def ask(self, question: Question, expected: Said | None) -> Verdict:
        """Ask one question and count its answer."""
        return (await self._asked(question, expected))[0]

    async def lost(self) -> int:
        """Read the memory to its end, and return how many acknowledged facts are not there."""
        arguments: dict[str, object] = {"memory": self._memory}
        found = set[tuple[str, ...]]()
        while self._memory is not None:
            content = await _content(self._client, "memory-read", arguments)
            found.update(tuple(row[1:4]) for row in _ROWS.validate_python(content.get("facts", [])))
            if content.get("cursor") is None:
                break
            arguments["cursor"] = content["cursor"]
        return len(self.acknowledged - found)

    async def _asked(self, question: Question, expected: Said | None) -> tuple[Verdict, Said]:
        began = perf_counter()
        try:
            with anyio.fail_after(_HANGS_S):
                said = await question.ask(self._client)
        except (MCPError, TimeoutError) as error:
            said = Said(f"{type(error).__name__}: {error}", is_error=True)
        return self._tallies[question.kind].add(question, said, expected, perf_counter() - began), said

    async def _append(self) -> None:
        rows = [row for _, said in self._known["GetNeighbor"] for row in _ROWS.validate_python(said.data["triples"])]
        chosen = self._dice.sample(rows, min(_MOST_APPENDED, len(rows)))
        arguments: dict[str, object] = {"triples": chosen}
        if self._memory is not None:
            arguments["memory"] = self._memory
        _, said = await self._asked(Question("memory-append", "memory-append", arguments), None)
        if not said.is_error:
            self._memory = str(said.data["memory"])
            self.acknowledged.update(map(tuple, chosen))

    def _new_question(self, kind: str) -> Question:
        """Return a question in words that nobody has asked before, so that the model has work."""
        words = f"{' '.join(self._dice.sample(_WORDS, 3))} of {self._dice.randrange(10**9)}"
        if kind == "memory-read":
            return Question(kind, kind, {"memory": self._memory})
        if kind == "Retrieve, new words":
            return Question(kind, "Retrieve", {"text": words})
        about = [f"<{self._dice.choice(self._entities)}>"]
        return Question(kind, "observe", {"question": f"Which {words}?", "entities": about})


def judged(said: Said, expected: Said) -> Verdict:
    """Return the verdict about an answer, beside the one that the same graph gives when nobody else asks."""
    if said == expected:
        return "right"
    if _CAUSE.search(said.text) and _STEP.search(said.text):
        # A part of an expression may fail beside another that is answered.
        return "clear error"
    if said.is_error:
        return "unclear error"
    return "stopped early" if said.data.get("status") == "timeout" or _IN_PART.search(said.text) else "wrong"


def soaked_over_http(soak: Soak) -> Report:
    """Soak our server over HTTP with a client and a token for each caller."""
    return asyncio.run(_over_http(soak))


def soaked_over_stdio(soak: Soak) -> Report:
    """Soak our server over stdio with all callers in one session."""
    return asyncio.run(_over_stdio(soak))


async def _over_http(soak: Soak) -> Report:
    await _prepare(soak)
    tokens = TokenFile(soak.folder / "tokens.json")
    given = [tokens.add(f"client-{number}", SCOPES, None, None) for number in range(soak.clients)]
    # Whoever asks alone asks much faster than one of many.
    login = {"KG_SEXTANT_HOSTING__TOKENS": str(tokens.path), "KG_SEXTANT_HOSTING__CALLS_PER_MINUTE": "0"}
    with running(*ours("sample"), "--http", "127.0.0.1:0", environ={**soak.environ, **login}) as server:
        async with _logged_in(server.url, given[0]) as alone:
            known = await _answered_alone(alone, soak.work)
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(_logged_in(server.url, each)) for each in given]
            report = await _loaded(f"{soak.clients} clients over HTTP", clients, known, soak, server.process)
        # Connections end with their clients.
        return replace(report, after=await _rested(server.process), logged=server.logged)


@asynccontextmanager
async def _logged_in(url: str, token: str) -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=_HANGS_S) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def _over_stdio(soak: Soak) -> Report:
    await _prepare(soak)
    others = children_of(os.getpid())
    async with over_stdio(ours("sample"), soak.environ) as client:
        (process,) = (number for number in children_of(os.getpid()) if number not in others)
        known = await _answered_alone(client, soak.work)
        name = f"{soak.clients} in flight over stdio"
        return await _loaded(name, [client] * soak.clients, known, soak, process)


async def _prepare(soak: Soak) -> None:
    """Build what SPARQL needs: a server would answer at first that it is still being built."""
    store = open_sample(soak.folder / "cache")
    await ensure_sparql_store(store.folder, store.index, lists=partial(read_lists, store))


def soaked_remotely(soak: Soak, endpoint: EndpointOptions) -> Report:
    """Soak an endpoint that holds the sample, over a network that drops, stalls, refuses and cuts."""
    with weathered(endpoint.url, seed=soak.seed) as proxy:
        return asyncio.run(_remotely(soak, endpoint.model_copy(update={"url": proxy.url}), proxy))


async def _remotely(soak: Soak, endpoint: EndpointOptions, proxy: Proxy) -> Report:
    await _prepare(soak)
    async with _clients(LocalAdapter(open_sample(soak.folder / "cache")), soak, 1, _PATIENT_S) as (alone,):
        known = await _answered(alone, [each for each in lasting_questions(soak.work) if each.kind in REMOTE])

    async def opened() -> KGAdapter:
        return await open_sparql(proxy.url, OpenOptions(soak.folder / "opened"), endpoint=endpoint)

    # What is built once and kept, such as compiled patterns and caches of the libraries, is no leak.
    async with _clients(await opened(), soak, soak.clients, soak.timeout_s) as clients:
        await _failing(clients, [each for kind in known.values() for each in kind], defaultdict(Tally))
    before = await _rested(os.getpid())
    proxy.happened.clear()
    async with _clients(await opened(), soak, soak.clients, soak.timeout_s) as clients:
        proxy.weather = ROUGH
        report = await _loaded(f"{soak.clients} clients of an endpoint", clients, known, soak, os.getpid(), REMOTE)
        proxy.weather = FAIR
        # It may take the pause that the last failures have brought.
        failing = [each for kind in known.values() for each in kind]
        with anyio.move_on_after(_SETTLING_S):
            while failing:
                failing = await _failing(clients, failing, report.tallies)
                await anyio.sleep(_IDLE_S if failing else 0)
    weather = {str(kind): number for kind, number in proxy.happened.items()}
    after = await _rested(os.getpid(), proxy)
    left_open = proxy.open_connections
    return replace(report, before=before, after=after, weather=weather, left_open=left_open, recovered=not failing)


@asynccontextmanager
async def _clients(graph: KGAdapter, soak: Soak, count: int, timeout_s: float) -> AsyncGenerator[list[Client]]:
    told = {
        "cache_folder": soak.folder,
        "data_folder": soak.folder,
        "embedding": {"embedder": "lexical"},
        "timeout_s": timeout_s,
    }
    async with aclosing(graph), AsyncExitStack() as stack:
        server = build_server(graph, Settings.model_validate(told))
        yield [await stack.enter_async_context(Client(server)) for _ in range(count)]


async def _failing(
    clients: Sequence[Client], asked: Sequence[tuple[Question, Said]], tallies: Mapping[str, Tally]
) -> list[tuple[Question, Said]]:
    """Ask every question once, all clients at once, and return those without the right answer."""
    failing: list[tuple[Question, Said]] = []

    async def ask(number: int, client: Client) -> None:
        caller = Caller(client, {}, (), random.Random(0), tallies)  # noqa: S311 - dice, not secrets
        failing.extend([each for each in asked[number :: len(clients)] if await caller.ask(*each) != "right"])

    async with anyio.create_task_group() as tasks:
        for number, client in enumerate(clients):
            tasks.start_soon(ask, number, client)
    return failing


async def _loaded(
    name: str,
    clients: Sequence[Client],
    known: Known,
    soak: Soak,
    process: int,
    kinds: Sequence[str] = tuple(SHARES),
) -> Report:
    before = await _rested(process)
    tallies: dict[str, Tally] = defaultdict(Tally)
    dice = [random.Random(f"{soak.seed} {name} {number}") for number in range(len(clients))]  # noqa: S311 - dice, not secrets
    callers = [Caller(client, known, soak.work.low, own, tallies) for client, own in zip(clients, dice, strict=True)]
    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        for caller in callers:
            tasks.start_soon(caller.ask_until, began + soak.seconds, {kind: SHARES[kind] for kind in kinds})
    seconds = perf_counter() - began
    lost = sum([await caller.lost() for caller in callers])
    acknowledged = sum(len(caller.acknowledged) for caller in callers)
    return Report(name, seconds, tallies, acknowledged, lost, before, await _rested(process))


async def _rested(process: int, proxy: Proxy | None = None) -> Footprint:
    """Return what a process holds once it does nothing any more, and its connections are closed."""
    end = perf_counter() + _SETTLING_S
    held = Footprint.of(process)
    while perf_counter() < end:
        await anyio.sleep(_IDLE_S)
        last, held = held, Footprint.of(process)
        is_closed = proxy is None or not proxy.open_connections
        if is_closed and held.cpu_s - last.cpu_s < _LEAST_WORK and held.files <= last.files:
            break
    return held


async def _answered(client: Client, questions: Sequence[Question]) -> Known:
    """Ask questions one after the other, and return them with their answers."""
    known: dict[str, list[tuple[Question, Said]]] = defaultdict(list)
    for question in questions:
        said = await question.ask(client)
        assert not said.is_error, f"{question}: {said.text}"
        known[question.kind].append((question, said))
    return known


async def _answered_alone(client: Client, work: Workload) -> Known:
    """Return all that has one answer for ever, with the pages of hubs, whose cursors are part of the questions."""
    pages: list[Question] = []
    for hub in work.hubs[:_HUBS]:
        arguments: dict[str, object] = {"entity": f"<{hub}>", "direction": "both", "limit": 100, "max_tokens": 8_000}
        for _ in range(_PAGES):
            pages.append(Question("GetNeighbor, page of a hub", "GetNeighbor", arguments))
            content = await _content(client, "GetNeighbor", arguments)
            if content.get("cursor") is None:
                break
            arguments = {**arguments, "cursor": content["cursor"]}
    return await _answered(client, [*lasting_questions(work), *pages])


def lasting_questions(work: Workload) -> list[Question]:
    """Return the questions that always have the same answer."""
    asked = [Question("Schema", "Schema", {}), Question(RESOURCE, RESOURCE, {"uri": "kg://schema"})]
    for pair in work.random_pairs:
        entity, other = (f"<{each}>" for each in pair)
        calls: Mapping[str, Mapping[str, object]] = {
            "GetNeighbor": {"entity": entity, "direction": "both"},
            "Degree": {"entity": entity},
            "Feature": {"entity": entity},
            "observe": {"question": "What is it part of?", "entities": [entity], "hops": 1},
            "GetPath": {"source": entity, "target": other, "max_hops": 2},
            "Compose": {"expression": f"Count[Neighbor[{entity}]], Degree[{entity}]"},
            "Sparql": {"query": f"SELECT ?l {{ {entity} <{_LABEL}> ?l }} ORDER BY ?l"},
        }
        asked += [Question(tool, tool, arguments) for tool, arguments in calls.items()]
        asked.append(Question(RESOURCE, RESOURCE, {"uri": f"kg://entity/Q{pair[0].rpartition('/Q')[2]}"}))
    asked += [Question("Retrieve", "Retrieve", {"text": name}) for name in (*work.names, *work.typos)]
    asked += [
        Question("GetPath, hubs", "GetPath", {"source": f"<{source}>", "target": f"<{target}>", "max_hops": 3})
        for source, target in (*work.hub_adjacent, *work.hub_pairs)
    ]
    return asked


async def _content(client: Client, tool: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
    result = await client.call_tool(tool, dict(arguments))
    return result.structured_content or dict[str, object]()


def children_of(number: int) -> tuple[int, ...]:
    """Return the numbers of the processes that one has started and that still run."""
    files = Path("/proc", str(number), "task").glob("*/children")
    return tuple(int(child) for file in files for child in _read(file).split())


def _family(number: int) -> Iterator[int]:
    yield number
    for child in children_of(number):
        yield from _family(child)


def _read(file: Path) -> str:
    """Return the content of a file of the system; nothing when its process has ended meanwhile."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def main(words: Sequence[str] | None = None) -> int:
    """Soak the sample, print the figures, and return 1 when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--remote", action="store_true", help="ask an endpoint over a bad network")
    parser.add_argument("--seconds", type=float, default=180.0, help="how long over each transport (180)")
    parser.add_argument("--clients", type=int, help="how many at once (64 over HTTP, 32 over stdio, 16 with --remote)")
    given = parser.parse_args(words)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        index = open_sample(folder / "cache").index
        soak = Soak(folder, choose_workload(index, _QUESTIONS), 16, given.seconds)
        if given.remote:
            engine, graph = stack.enter_context(running_oxigraph(folder)), "http://example.org/graph/soak"
            engine.load(graph, "".join(statements(index)).encode())
            told = EndpointOptions(url=engine.url, default_graphs=(graph,), timeout_s=4.5, pause_s=1.0)
            reports = [soaked_remotely(replace(soak, clients=given.clients or 16), told)]
        else:
            reports = [
                soaked_over_http(replace(soak, clients=given.clients or 64)),
                soaked_over_stdio(replace(soak, clients=given.clients or 32)),
            ]
    for report in reports:
        print(*report.lines(), sep="\n")
    return 1 if any(report.problems or report.misses for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
