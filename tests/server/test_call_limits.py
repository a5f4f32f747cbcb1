"""What one caller may take of a server that others use too, and what anybody may ask of it."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.responses import PlainTextResponse
from starlette.types import Message, Scope

from cli_runs import write_graph
from kg_adapters.errors import BackendUnavailable
from kg_server.callers import Caller, access_of
from kg_server.mcp_server import SextantServer
from kg_server.serving.audit import CallRecord
from kg_server.serving.http import CheckedRequests
from kg_server.serving.limits import CallLimits
from kg_server.serving.public import CHECKED_FOR_S, Readiness, server_card
from kg_server.serving.tokens import TokenFile
from kg_server.settings import HostingSettings
from patience import PATIENCE_S
from server_processes import address_of, started

HEAVY = f"SELECT (COUNT(*) AS ?n) {{ {' '.join(f'?a{each} ?b{each} ?c{each} .' for each in range(12))} }}"
AT_ONCE = 2
GREEDY = 50
PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'


@dataclass
class Door:
    """An application behind limits, and a clock that tests set."""

    settings: HostingSettings
    now: float = 0.0
    limits: CallLimits = field(init=False)

    def __post_init__(self) -> None:
        self.limits = CallLimits(self.settings, clock=lambda: self.now)

    async def ask(
        self, subject: str, body: bytes = PING, rest: anyio.Event | None = None, asked: anyio.Event | None = None
    ) -> tuple[int, str, str]:
        """Send a message for a caller; return the status, how long to wait, and the reason.

        Args:
            subject: The caller.
            body: The message, or its beginning.
            rest: Set when the rest of it, which is empty, arrives; None if nothing is missing.
            asked: Set when the rest is asked for.
        """
        sent: list[Message] = []
        pieces = [body, b""][: 1 if rest is None else 2]

        async def receive() -> Message:
            piece = pieces.pop(0)
            if rest is not None and not pieces:
                assert asked is not None
                asked.set()
                await rest.wait()
            return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

        async def send(message: Message) -> None:
            sent.append(message)

        app = CheckedRequests(
            PlainTextResponse("answered"), 2_000_000, limited=partial(self.limits.before, tools=frozenset[str]())
        )
        scope: Scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [(b"host", b"localhost")]}
        token = auth_context_var.set(AuthenticatedUser(access_of(Caller(subject), "token")) if subject else None)
        try:
            await app(scope, receive, send)
        finally:
            auth_context_var.reset(token)
        wait = dict(sent[0]["headers"]).get(b"retry-after", b"").decode()
        return sent[0]["status"], wait, sent[1]["body"].decode()


CALL = CallRecord(0.0, Caller("ann"), "tools/call", "Sparql", "ok")


@pytest.mark.parametrize(
    ("limit", "taken", "wait_s"),
    [
        ({"calls_per_minute": 2}, CALL, 30),
        ({"rows_per_minute": 60}, replace(CALL, rows=90), 31),
        ({"seconds_per_minute": 30}, replace(CALL, seconds=45.0), 31),
        ({"seconds_per_minute": 6}, replace(CALL, seconds=0.1, outcome="cancelled"), 41),
    ],
    ids=["calls", "rows", "seconds", "a cancelled call"],
)
async def test_what_a_caller_took_it_waits_for_while_others_and_local_ones_go_on(
    limit: Mapping[str, float], taken: CallRecord, wait_s: int
) -> None:
    door = Door(HostingSettings.model_validate(limit))
    for _ in range(2):
        assert (await door.ask("ann"))[0] == 200
    door.limits.book(taken)
    status, wait, reason = await door.ask("ann")
    assert (status, int(wait)) == (429, wait_s)
    assert f"(hosting.{next(iter(limit))}). Wait {wait_s} seconds" in reason
    assert [json.loads((await door.ask("ann", b" " * n + PING))[2])["id"] for n in (0, 1_000_000)] == [7, None]
    for other in ("ben", "", "", ""):
        assert (await door.ask(other))[0] == 200
    door.now += wait_s
    assert (await door.ask("ann"))[0] == 200


async def test_a_message_counts_while_it_arrives_and_no_more_of_one_beyond_a_limit_is_read() -> None:
    door, rest, asked = Door(HostingSettings(calls_at_once=1)), anyio.Event(), anyio.Event()
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(door.ask, "ann", PING, rest, asked)
            await asked.wait()
            assert (await door.ask("ann", PING[:20], anyio.Event(), anyio.Event()))[0] == 429
            assert (await door.ask("ben"))[0] == 200
            rest.set()
    assert (await door.ask("ann"))[0] == 200


async def test_nothing_is_kept_of_a_caller_who_has_been_idle() -> None:
    door = Door(HostingSettings())
    for number in range(1_000):
        await door.ask(f"caller {number}")
    assert len(door.limits) == 1_000
    door.now += 61
    await door.ask("ann")
    assert len(door.limits) == 1


async def test_a_caller_at_its_limit_is_told_to_wait_and_does_not_keep_another_waiting(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    greedy, quiet = (tokens.add(name, ("read",), None, None) for name in ("greedy", "quiet"))
    hosting = {"TOKENS": str(tokens.path), "CALLS_AT_ONCE": str(AT_ONCE), "AUDIT": "json"}
    environ = {f"KG_SEXTANT_HOSTING__{name}": value for name, value in hosting.items()}
    environ["KG_SEXTANT_SPARQL__TIMEOUT_S"] = str(PATIENCE_S)
    words = (str(write_graph(tmp_path)), "--cache-folder", str(tmp_path / "cache"))
    refused, answers = list[httpx2.Response](), list[httpx2.Response]()
    with started(environ, *words) as process:
        async with (
            httpx2.AsyncClient(base_url=address_of(process), timeout=PATIENCE_S) as http,
            anyio.create_task_group() as tasks,
        ):

            async def ask(token: str, number: int, tool: str, **arguments: object) -> httpx2.Response:
                params = {"name": tool, "arguments": arguments}
                message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
                accept = "application/json, text/event-stream"
                return await http.post("", json=message, headers={"authorization": f"Bearer {token}", "accept": accept})

            async def flood(number: int) -> None:
                answer = await ask(greedy, number, "Sparql", query=HEAVY, timeout_s=PATIENCE_S)
                assert answer.status_code == 429
                refused.append(answer)

            for number in range(GREEDY):
                tasks.start_soon(flood, number)
            with anyio.fail_after(PATIENCE_S):
                while len(refused) < GREEDY - AT_ONCE:
                    await anyio.lowlevel.checkpoint()
            answers += [await ask(quiet, number, "GetNeighbor", entity="Tokyo") for number in range(10)]
            answers += [await ask(quiet, number, "Sparql", query="ASK { ?x ?y ?z }") for number in range(3)]
            answers.append(await ask(quiet, 0, "memory-append", triples=[]))
            tasks.cancel_scope.cancel()
        process.terminate()
        logged = process.communicate()[1]
    lines = [json.loads(line) for line in logged.splitlines() if line.startswith("{")]
    audit = Counter((line["caller"], line["tool"], line["status"]) for line in lines)
    assert audit["token:greedy", "Sparql", "refused"] == GREEDY - AT_ONCE
    assert audit["token:quiet", "memory-append", "refused"] == 1
    assert [each.status_code for each in answers] == [200] * 13 + [403]
    assert not any('"isError":true' in each.text for each in answers)
    for answer in refused:
        assert int(answer.headers["retry-after"]) >= 1
        assert "2 calls at once (hosting.calls_at_once). Wait 1 second" in answer.json()["error"]["message"]
    assert len({answer.json()["id"] for answer in refused}) == GREEDY - AT_ONCE


def test_messages_that_are_refused_count_as_well(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    headers = {"authorization": f"Bearer {tokens.add('ann', ('read',), None, None)}"}
    environ = {"KG_SEXTANT_HOSTING__TOKENS": str(tokens.path), "KG_SEXTANT_HOSTING__CALLS_PER_MINUTE": "2"}
    call = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"memory-append"}}'
    with started(environ, str(write_graph(tmp_path)), "--cache-folder", str(tmp_path / "cache")) as process:
        url = address_of(process)
        answers = [
            httpx2.post(url, content=body, headers=headers, timeout=PATIENCE_S) for body in (b"no message", call, call)
        ]
    assert [each.status_code for each in answers] == [400, 403, 429]


async def test_a_server_that_lacks_what_it_needs_or_stops_is_not_ready_and_checks_once_a_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    checks: list[str] = []
    down, now = True, 0.0

    async def check() -> None:
        checks.append("memory store")
        if down:
            raise BackendUnavailable("The database at db.internal does not answer.")

    readiness = Readiness([("memory store", check)], clock=lambda: now)
    assert [await readiness.problem() for _ in range(3)] == ["cannot be reached: memory store"] * 3
    assert len(checks) == 1
    now = CHECKED_FOR_S
    assert await readiness.problem() == "cannot be reached: memory store"
    down, now = False, 2 * CHECKED_FOR_S
    assert await readiness.problem() == ""
    assert caplog.messages == ["Readiness: cannot be reached: memory store", "Readiness: ready"]
    readiness.is_stopping = True
    assert await readiness.problem() == "stopping"


def test_the_card_of_a_server_with_a_public_url_says_how_to_connect() -> None:
    url = "https://kg.example.org/mcp"
    card = json.loads(server_card(SextantServer("kg-sextant", version="1.2.3", timeout_s=1), url))
    (remote,) = card["remotes"]
    assert (card["version"], remote["type"], remote["url"]) == ("1.2.3", "streamable-http", url)
    assert {"2026-07-28", "2025-11-25"} <= set(remote["supportedProtocolVersions"])
