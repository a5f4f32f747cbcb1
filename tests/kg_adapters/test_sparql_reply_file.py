"""Replies are remembered between sessions, for a while, and never at the cost of an answer."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest

from fault_endpoint import JSON_RESULTS, answering, results, serving, uri
from kg_adapters.errors import BackendError
from kg_adapters.http.messages import HttpReply, HttpRequest
from kg_adapters.http.options import EndpointOptions
from kg_adapters.http.reply_file import MAX_BODY_BYTES, ReplyFile
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.terms import Iri

ASKED = HttpRequest("POST", "http://example.org/sparql?x=1", ("application/json",), {"A": "b"}, b"query=ASK {}")
REPLY = HttpReply(ASKED.url, 200, {"content-type": "application/json", "date": "today"}, b'{"boolean": true}')
KEPT = replace(REPLY, headers={"content-type": "application/json"})


@dataclass
class Clock:
    now: float = 1_000.0
    opened: list[ReplyFile] = field(default_factory=list[ReplyFile])

    def open(self, path: Path, expiry_s: float = 60.0, max_bytes: int = 10_000_000) -> ReplyFile:
        self.opened.append(ReplyFile(path, expiry_s=expiry_s, max_bytes=max_bytes, clock=lambda: self.now))
        return self.opened[-1]


@pytest.fixture
async def clock() -> Clock:
    return Clock()


async def test_a_reply_is_known_to_the_next_session_until_it_is_too_old(tmp_path: Path, clock: Clock) -> None:
    file = clock.open(tmp_path / "new" / "replies.sqlite")
    assert await file.recall(ASKED) is None
    await file.keep(ASKED, REPLY)
    assert await file.recall(ASKED) == KEPT
    await file.aclose()
    await file.aclose()
    assert await file.recall(ASKED) is None
    other = clock.open(file.path)
    clock.now += 59
    assert await other.recall(ASKED) == KEPT
    clock.now += 2
    assert await other.recall(ASKED) is None
    await other.keep(ASKED, replace(REPLY, body=b"{}"))
    assert await other.recall(ASKED) == replace(KEPT, body=b"{}")
    clock.now -= 30
    assert await other.recall(ASKED) is None
    await other.aclose()


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, method="GET"),
        replace(ASKED, url="http://example.org/sparql?x=2"),
        replace(ASKED, accepted=("text/csv",)),
        replace(ASKED, body=b"query=ASK { }"),
        replace(ASKED, body=None),
    ],
)
async def test_another_request_has_another_reply(tmp_path: Path, clock: Clock, other: HttpRequest) -> None:
    file = clock.open(tmp_path / "replies.sqlite")
    await file.keep(ASKED, REPLY)
    assert await file.recall(other) is None
    await file.aclose()


async def test_the_older_half_goes_when_the_file_grows_too_large(tmp_path: Path, clock: Clock) -> None:
    file = clock.open(tmp_path / "replies.sqlite", max_bytes=400_000)
    requests = [replace(ASKED, url=f"http://example.org/{number}") for number in range(200)]
    for number, request in enumerate(requests):
        noise = b"".join(hash((number, place)).to_bytes(8, "big", signed=True) for place in range(1_000))
        await file.keep(request, replace(REPLY, body=noise))
    known = [await file.recall(request) is not None for request in requests]
    assert not known[0]
    assert known[-1]
    assert 10 < sum(known) < 60
    await file.keep(ASKED, replace(REPLY, body=b" " * (MAX_BODY_BYTES + 1)))
    assert await file.recall(ASKED) is None
    await file.aclose()
    assert file.path.stat().st_size < 1_000_000


async def test_a_file_that_is_none_or_cannot_be_made_is_no_memory(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "noise").write_bytes(b"no database at all, but long enough to look like one" * 100)
    (tmp_path / "file").write_text("no folder")
    for path in (tmp_path / "noise", tmp_path / "file" / "replies.sqlite", tmp_path):
        file = clock.open(path)
        await file.keep(ASKED, REPLY)
        assert await file.recall(ASKED) is None
        await file.aclose()


async def test_several_processes_worth_of_files_share_what_they_know(tmp_path: Path, clock: Clock) -> None:
    files = [clock.open(tmp_path / "replies.sqlite") for _ in range(4)]
    requests = [replace(ASKED, url=f"http://example.org/{number}") for number in range(40)]

    async def keep(file: ReplyFile, mine: list[HttpRequest]) -> None:
        for request in mine:
            await file.keep(request, REPLY)

    async with anyio.create_task_group() as tasks:
        for number, file in enumerate(files):
            tasks.start_soon(keep, file, requests[number::4])
    assert [await files[0].recall(request) for request in requests] == [KEPT] * 40
    for file in files:
        await file.aclose()


async def test_an_endpoint_is_not_asked_again_and_only_readable_answers_are_kept(tmp_path: Path, clock: Clock) -> None:
    good = results(["x"], {"x": uri("http://example.org/a")})
    cut = answering(json.dumps({"head": {"vars": ["x"]}})[:-3], media_type=JSON_RESULTS)
    async with serving(cut, answering(good)) as server:
        for _ in range(2):
            options = EndpointOptions(url=server.url, max_retries=0)
            endpoint = SparqlEndpoint(options, replies=clock.open(tmp_path / "replies.sqlite"))
            if not server.requests:
                with pytest.raises(BackendError):
                    await endpoint.query("SELECT ?x { ?x ?p ?o }")
            assert (await endpoint.query("SELECT ?x { ?x ?p ?o }")).rows == ((Iri("http://example.org/a"),),)
            await endpoint.aclose()
        assert len(server.requests) == 2


async def test_a_part_of_an_answer_is_not_remembered(tmp_path: Path, clock: Clock) -> None:
    cut = answering(results(["x"]), headers={"X-SQL-State": "S1TAT"})
    async with serving(cut, answering(results(["x"], {"x": uri("http://example.org/a")}))) as server:
        replies = clock.open(tmp_path / "replies.sqlite")
        endpoint = SparqlEndpoint(EndpointOptions(url=server.url), replies=replies)
        assert (await endpoint.query("SELECT ?x {}")).truncated
        for _ in range(2):
            assert (await endpoint.query("SELECT ?x {}")).rows == ((Iri("http://example.org/a"),),)
        await endpoint.aclose()
    assert len(server.requests) == 2
