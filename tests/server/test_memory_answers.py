import json
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from calls import UNHURRIED, Reply, unhurried
from kg_adapters.errors import BackendUnavailable
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.terms import Fact, Iri
from kg_server.answers.results import token_count
from kg_server.memory.sqlite_storage import SqliteStorage
from kg_server.memory.store import Contents, KeptFact, MemoryLimits, MemoryStore
from kg_server.memory.tool import RESOURCE_TOKENS
from memories import FILE, Memory, facts_of, memory_server, remembering, stored_in
from played_time import hang

WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
CAPITAL, LAND = ["Q1490", "P36", "Q179645"], ["Q1490", "P17", "Q17"]
CITY = ["Q1490", "P31", "Q515"]


class Stuck(MemoryStore):
    """A store that never answers."""

    async def read(self, handle: str, graph: str, *, others: Collection[str] = (), owner: str = "") -> Contents:
        await hang()
        raise AssertionError


class Gone(MemoryStore):
    """A store behind which there is nothing any more."""

    async def read(self, handle: str, graph: str, *, others: Collection[str] = (), owner: str = "") -> Contents:
        raise BackendUnavailable("The memory cannot be reached.")


class Holding(LocalAdapter):
    """A graph that states whatever is asked over one relation."""

    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:
        return await super().contains(facts) | {each for each in facts if each.relation.local_part == "P1"}


@pytest.fixture
def tokyo(tokyo: LocalAdapter) -> LocalAdapter:
    return Holding(tokyo.store)


def fact(head: int, tail: int) -> KeptFact:
    return KeptFact(Iri(f"{WD}Q{head}"), Iri(f"{WDT}P1"), Iri(f"{WD}Q{tail}"))


def chains(facts: int, length: int) -> list[KeptFact]:
    """Paths of `length` facts each, and whatever is left over."""
    return [fact(10_000 + each + each // length, 10_001 + each + each // length) for each in range(facts)]


def row(path: int, each: KeptFact) -> list[str]:
    return [
        str(path),
        each.head.local_part,
        each.relation.local_part,
        Iri(str(each.tail)).local_part,
        "verified",
    ]


async def pages_of(memory: Memory, handle: str) -> AsyncIterator[Reply]:
    arguments: dict[str, object] = {}
    while True:
        reply = await memory.read(handle, **arguments)
        assert not reply.is_error, reply.text
        yield reply
        if "cursor" not in reply.data:
            return
        arguments = {"cursor": reply.data["cursor"]}


def sizes(reply: Reply) -> Iterator[int]:
    """The tokens of both forms."""
    yield token_count(reply.text)
    yield token_count(json.dumps(reply.data, ensure_ascii=False, separators=(",", ":")))


async def keep(folder: Path, graph: LocalAdapter, facts: list[KeptFact]) -> str:
    return (await stored_in(folder).append(None, graph.name, facts)).handle


@pytest.mark.parametrize(("count", "length", "budget"), [(1_000, 7, 5_000), (300, 1_000, 500), (300, 1, 500)])
async def test_a_large_memory_is_paged_through_without_loss_or_repeat_within_the_budget(
    tokyo: LocalAdapter, tmp_path: Path, count: int, length: int, budget: int
) -> None:
    facts = chains(count, length)
    handle = await keep(tmp_path, tokyo, facts)
    async with remembering(tokyo, tmp_path, settings=unhurried(max_tokens=budget)) as memory:
        pages = [page async for page in pages_of(memory, handle)]
    assert [each for page in pages for each in facts_of(page)] == [
        row(1 + number // length, each) for number, each in enumerate(facts)
    ]
    assert {page.data["total"] for page in pages} == {count}
    assert max(size for page in pages for size in sizes(page)) <= budget
    assert {page.data["status"] for page in pages[:-1]} == {"truncated"}
    assert pages[-1].data["status"] == "ok"


async def test_a_page_says_how_to_go_on_and_a_path_that_was_broken_off_begins_with_dots(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    handle = await keep(tmp_path, tokyo, chains(50, 50))
    async with remembering(tokyo, tmp_path, settings=unhurried(max_tokens=500)) as memory:
        first, second, *_ = [page async for page in pages_of(memory, handle)]
    shown = len(facts_of(first))
    assert first.summary == (
        f'The memory holds 50 facts in 1 path; {shown} here. Next page: cursor="{first.data["cursor"]}".'
    )
    assert first.lines[0].startswith("Q10000 -[P1]-> Q10001 -[P1]-> Q10002")
    assert second.lines[0].startswith(f"… Q{10_000 + shown} -[P1]-> Q{10_001 + shown}")


async def test_what_is_appended_between_two_pages_is_neither_lost_nor_shown_twice(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    facts = [*chains(60, 1), fact(1, 1490)]
    handle = await keep(tmp_path, tokyo, facts)
    seen: list[list[str]] = []
    async with remembering(tokyo, tmp_path, settings=unhurried(max_tokens=500)) as memory:
        pages = 0
        async for page in pages_of(memory, handle):
            seen.extend(facts_of(page))
            pages += 1
            if pages == 1:
                await memory.append(LAND, CAPITAL, memory=handle)
    expected = [row(number, each) for number, each in enumerate(facts, 1)]
    assert pages > 2
    assert seen == [*expected, ["61", *LAND, "verified"], ["62", *CAPITAL, "verified"]]


async def test_a_memory_without_facts_is_empty(tokyo: LocalAdapter, tmp_path: Path) -> None:
    handle = await keep(tmp_path, tokyo, [])
    async with remembering(tokyo, tmp_path) as memory:
        reply = await memory.read(handle)
    assert (reply.data["status"], reply.data["knowledge"], reply.data["total"]) == ("empty", "unknown", 0)
    assert reply.summary == "The memory holds 0 facts in 0 paths, all here."


async def test_a_cursor_is_refused_where_it_is_damaged_or_of_another_memory(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    handle = await keep(tmp_path, tokyo, chains(100, 1))
    async with remembering(tokyo, tmp_path, settings=unhurried(max_tokens=500)) as memory:
        other = await memory.begin(CAPITAL)
        cursor = str((await memory.read(handle)).data["cursor"])
        stem = cursor.partition(".")[0]
        for damaged in ("x", cursor[1:], f"{stem}.7", f"{stem}.1-2-3", f"{stem}.-1-0", f"{stem}.9999999999999-0"):
            reply = await memory.read(handle, cursor=damaged)
            assert reply.is_error
            assert reply.text.startswith("This cursor is damaged. Copy it unchanged from the answer")
        foreign = await memory.read(other, cursor=cursor)
        beyond = await memory.read(handle, cursor=f"{stem}.999999999-999999999")
    assert foreign.is_error
    assert foreign.text.startswith("This cursor belongs to another question.")
    assert (beyond.data["status"], beyond.summary) == (
        "empty",
        "The memory holds 100 facts in 100 paths; the last 0 here.",
    )


@pytest.mark.parametrize("budget", [500, 2_000])
async def test_an_append_keeps_to_the_budget_in_both_forms_whatever_it_has_to_say(
    sample: LocalAdapter, tmp_path: Path, budget: int
) -> None:
    async with remembering(sample, tmp_path, settings=unhurried(max_tokens=budget)) as memory:
        handle = await keep(tmp_path, sample, chains(200, 3))
        good = ["Q937", "P106", "Q169470"]
        wrong = [[f"Q{number}{'9' * 70}", "P106", '"' + "x" * 100 + '"'] for number in range(1, 14)]
        reply = await memory.append(good, *wrong, f"{'Not Einstein' * 20} (Q937) | P19 | Q3012", memory=handle)
        none = await memory.append(*wrong)
    assert (reply.data["added"], len(facts_of(reply)), reply.data["status"]) == (2, 2, "truncated")
    assert reply.summary.endswith(" The new facts are here; memory-read shows all.")
    assert max(sizes(reply)) <= budget
    assert none.is_error
    assert token_count(none.text) <= budget
    assert " 13, 14, for reasons that they give when sent alone" in reply.text
    assert none.text.startswith("No triple was kept, and no memory changed.\ntriple 1 (Q1999")


async def test_an_append_to_a_large_memory_shows_what_is_new_or_says_that_nothing_is(
    tokyo: LocalAdapter, tmp_path: Path
) -> None:
    handle = await keep(tmp_path, tokyo, chains(300, 300))
    async with remembering(tokyo, tmp_path) as memory:
        new = await memory.append(CAPITAL, LAND, memory=handle)
        old = await memory.append(CAPITAL, memory=handle)
    holds = f"memory {handle} holds 302 facts in 3 paths."
    assert new.plain.text == "\n".join(
        [
            f"Kept 2 new facts; {holds} The new facts are here; memory-read shows all.",
            "Tokyo -[capital]-> Shinjuku",
            "Tokyo -[country]-> Japan",
        ]
    )
    assert new.data["facts"] == [["2", *CAPITAL, "verified"], ["3", *LAND, "verified"]]
    assert old.text == (
        f"Kept 0 new facts; {holds} 1 of the triples was there already. They are not repeated here; memory-read shows "
        "all."
    )
    assert (old.data["facts"], old.data["status"]) == ([], "truncated")


async def test_new_facts_that_do_not_fit_are_counted(tokyo: LocalAdapter, tmp_path: Path) -> None:
    async with remembering(tokyo, tmp_path, settings=unhurried(max_tokens=150)) as memory:
        reply = await memory.append(CAPITAL, LAND, CITY, ["Q179645", "P17", "Q17"])
        pages = [page async for page in pages_of(memory, str(reply.data["memory"]))]
    assert len(facts_of(reply)) == 2
    assert reply.summary.endswith("2 of the new facts are here; memory-read shows all.")
    assert sum(len(facts_of(page)) for page in pages) == 4


async def test_the_resource_shows_what_memory_read_shows_first(tokyo: LocalAdapter, tmp_path: Path) -> None:
    async with remembering(tokyo, tmp_path, settings=unhurried(max_tokens=RESOURCE_TOKENS)) as memory:
        small = await memory.begin(CAPITAL)
        large = await keep(tmp_path, tokyo, chains(1_000, 10))
        for handle in (small, large):
            assert await memory.resource(handle) == (await memory.read(handle)).text
        assert token_count(await memory.resource(large)) <= RESOURCE_TOKENS
        (template,) = (await memory.client.list_resource_templates()).resource_templates
    assert template.uri_template == "kg-memory://{+memory}"


@pytest.mark.parametrize("guess", ["mem_000000000000000000000000", "../../etc/passwd", quote("\x00' --"), "m" * 3_000])
async def test_the_resource_of_a_guess_is_refused_like_the_tool(
    tokyo: LocalAdapter, tmp_path: Path, guess: str
) -> None:
    async with remembering(tokyo, tmp_path) as memory:
        await memory.begin(CAPITAL)
        refused = await memory.read(guess)
        with pytest.raises(MCPError) as raised:
            await memory.resource(guess)
    assert (raised.value.code, raised.value.message) == (-32602, refused.text)
    assert guess not in str(raised.value.data)


@pytest.mark.parametrize(
    ("store", "message"),
    [(Stuck, "Reading the memory took too long. Read it again."), (Gone, "The memory cannot be reached.")],
)
async def test_the_resource_of_a_store_that_fails_says_so(
    tokyo: LocalAdapter, tmp_path: Path, store: type[MemoryStore], message: str
) -> None:
    server = memory_server(tokyo, store(SqliteStorage(tmp_path / FILE), MemoryLimits()), settings=UNHURRIED)
    async with Client(server) as client:
        with pytest.raises(MCPError) as raised:
            await client.read_resource("kg-memory://mem_1")
    assert (raised.value.code, raised.value.message, raised.value.data) == (-32603, message, None)
