"""The tools memory-append and memory-read."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import anyio
from mcp.server.mcpserver import ResourceSecurity
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult
from pydantic import Field

from kg_adapters.errors import InvalidRequest, KGError
from kg_adapters.terms import Literal
from kg_boundary.shown import visible_lines
from kg_server.answers.results import Answer, Result
from kg_server.callers import caller
from kg_server.concurrency import load, off_loop
from kg_server.graphs import GraphName, GraphSet
from kg_server.mcp_server import SextantServer, hints, reading
from kg_server.memory.store import KeptFact, MemoryLimits, MemoryStore
from kg_server.names import Names, names_of
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_server.memory.checking import Checked
    from kg_server.memory.lines import Written


class FactsResult(Result):
    """Facts as rows, in the order of their paths: `[path number, head, relation, tail, verified or unverified]`.

    Of several graphs, that of the fact stands at the end.
    """

    facts: list[list[str]]
    labels: dict[str, str]
    relations: dict[str, str]


class MemoryResult(FactsResult):
    """A page of a memory."""

    total: int
    cursor: str | None = None


class AppendedResult(FactsResult):
    """A memory after an append: whole, or what is new in it."""

    memory: str
    added: int
    refused: list[str]


RESOURCE_TOKENS: Final = 4_000

_MODULES: Final = ("kg_server.memory.answer", "kg_server.memory.several", "kg_server.memory.sqlite_storage")

WrittenTriples: TypeAlias = Annotated[
    list[list[str] | str],
    Field(
        description="[head, relation, tail] or lines, as results show them",
        # Shown where a call brings something else; the list of tools leaves it out.
        examples=[[["Tokyo (Q1490)", "capital (P36)", "Shinjuku (Q179645)"]], ["Tokyo | capital | Shinjuku"]],
    ),
]

# Without a length or pattern: an argument that breaks one is repeated in the error, which may be logged.
Handle: TypeAlias = Annotated[str, Field(description="Handle")]

Cursor: TypeAlias = Annotated[str, Field(min_length=1, max_length=2_000)]


class MemoryTools:
    """The tools that keep evidence beyond one call, and beyond one connection.

    Args:
        graphs: What triples are checked against.
        store: Opens what memories are kept in, when the first is asked for.
        limits: How many triples one call may bring, and how long they may be.
        settings: How long an answer may be.
    """

    def __init__(
        self, graphs: GraphSet, store: Callable[[], MemoryStore], limits: MemoryLimits, settings: Settings
    ) -> None:
        self._graphs = graphs
        self._open = store
        self._opened: MemoryStore | None = None
        self._limits = limits
        self._settings = settings

    @property
    def _store(self) -> MemoryStore:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    async def aclose(self) -> None:
        """Release what memories are kept in."""
        if self._opened is not None:
            await self._opened.aclose()

    def provide(self, server: SextantServer) -> None:
        """Add both tools, and the resource of each memory."""
        server.call_at_end(self.aclose)
        server.provide(
            self.append,
            "memory-append",
            hints("Keep evidence", reads=False, remote=self._graphs.remote),
            spans=True,
        )
        server.provide(self.read, "memory-read", reading(self._graphs, "Read evidence"), spans=True, drawn=True)
        if not {"memory-append", "memory-read"}.isdisjoint(server.tool_names):
            server.needs.append(("memory store", self.check))
        # Everything below the scheme comes here: the SDK logs the addresses, so the handles, that it refuses itself.
        server.resource(
            "kg-memory://{+memory}",
            name="memory",
            title="One memory",
            mime_type="text/plain",
            security=ResourceSecurity(exempt_params={"memory"}),
        )(self.resource)

    async def check(self) -> None:
        """Return if memories can be read now.

        Raises:
            KGError: They cannot.
        """
        await load(*_MODULES)
        await self._store.check()

    async def append(
        self,
        triples: WrittenTriples,
        memory: Handle | None = None,
        allow_unverified: bool = False,
        graph: GraphName = None,
    ) -> Annotated[CallToolResult, AppendedResult]:
        """Keep the triples that answer a question, as evidence.

        The first call gives a handle. Each triple stands on the path that leads to its head.
        One that is not in the graph is refused, or with allow_unverified marked.
        """
        await load(*_MODULES)
        from kg_server.memory.answer import append_answer, most_shown, shown_refusals
        from kg_server.memory.lines import triples_in
        from kg_server.memory.rechecking import recheck

        most = self._limits.triples_per_call
        # Some lines of answers state no triple, so a few more lines than triples may come.
        few = len(triples) <= 2 * most
        stated = await off_loop(partial(triples_in, triples, joins=not allow_unverified)) if few else triples
        if not 1 <= len(stated) <= most:
            raise InvalidRequest(
                f"One call takes 1 to {most} triples; these are {len(stated):,}. "
                "Keep only those that help to answer the question."
            )
        checked = await self._checked(stated, graph, allow_unverified=allow_unverified)
        if not checked.facts:
            reasons = shown_refusals(checked.refused, self._settings.max_tokens)
            raise InvalidRequest("\n".join(("No triple was kept, and no memory changed.", *reasons)))
        handle = None if memory is None else memory.strip()
        first, *others = self._graphs.names
        appended = await self._store.append(
            handle,
            first,
            checked.facts,
            others=others,
            owner=caller().subject,
            whole=most_shown(self._settings.max_tokens),
        )
        most_tokens = self._settings.max_tokens
        names = partial(self._names, max_tokens=most_tokens)
        again = partial(recheck, self._graphs)
        return (await append_answer(names, again, appended=appended, checked=checked, max_tokens=most_tokens)).to_mcp()

    async def _checked(self, stated: "Sequence[Written]", graph: str | None, *, allow_unverified: bool) -> "Checked":
        """Return triples as their graphs judge them."""
        from kg_server.memory.checking import check
        from kg_server.memory.several import CheckEach

        if self._graphs.several:
            checking = CheckEach(self._graphs, self._limits, stated, graph)
            return await checking.checked(allow_unverified=allow_unverified)
        adapter = (await self._graphs.opened()).adapter
        return await check(adapter, stated, limits=self._limits, allow_unverified=allow_unverified)

    async def _names(self, facts: Sequence[KeptFact], max_tokens: int) -> Mapping[str, Names]:
        """Return what the terms of facts are called, by the graphs of the facts."""
        from kg_server.memory.several import names_over

        ends = (end for fact in facts for end in (fact.head, fact.tail) if not isinstance(end, Literal))
        terms = dict.fromkeys((*ends, *(fact.relation for fact in facts)))
        if self._graphs.several:
            return await names_over(self._graphs, {fact.graph for fact in facts}, terms, max_tokens)
        return {"": await names_of((await self._graphs.opened()).adapter, terms, max_tokens=max_tokens)}

    async def read(self, memory: Handle, cursor: Cursor | None = None) -> Annotated[CallToolResult, MemoryResult]:
        """Show which triples were kept in a memory, as paths."""
        return (await self._page(memory.strip(), cursor, self._settings.max_tokens)).to_mcp()

    async def _page(self, handle: str, cursor: str | None, max_tokens: int) -> Answer:
        await load(*_MODULES)
        from kg_server.memory.answer import read_answer
        from kg_server.memory.rechecking import recheck

        first, *others = self._graphs.names
        contents = await self._store.read(handle, first, others=others, owner=caller().subject)
        names = partial(self._names, max_tokens=max_tokens)
        again = partial(recheck, self._graphs)
        return await read_answer(names, again, memory=handle, contents=contents, cursor=cursor, max_tokens=max_tokens)

    async def resource(self, memory: str) -> str:
        """What a memory holds: its first paths."""
        try:
            with anyio.fail_after(self._settings.timeout_s * 0.9):
                return (await self._page(memory, None, RESOURCE_TOKENS)).text
        except TimeoutError as error:
            raise MCPError(code=INTERNAL_ERROR, message="Reading the memory took too long. Read it again.") from error
        except KGError as error:
            code = INVALID_PARAMS if isinstance(error, InvalidRequest) else INTERNAL_ERROR
            raise MCPError(code=code, message=visible_lines(str(error))) from error
