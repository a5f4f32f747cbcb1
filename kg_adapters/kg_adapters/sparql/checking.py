"""The queries that people write, checked in a process that is killed when that takes too long."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kg_adapters.errors import BackendError, InvalidRequest
from kg_adapters.terms import Iri
from kg_adapters.worker_pool import WorkerPool, WorkerTimeout
from kg_adapters.worker_process import WorkerEnded

if TYPE_CHECKING:  # pydantic, which the process that checks does without
    from kg_adapters.sparql.solutions import Form

CHECK_S: Final = 10.0
_WORKERS: Final = 2


@dataclass(frozen=True, slots=True)
class ReadOnlyQuery:
    """A query that only reads the graph.

    Args:
        form: What kind of answer it has.
        text: What to send: the query with its prefixes declared, and with a LIMIT where it could be given one.
        named: The IRIs that its patterns name.
    """

    form: "Form"
    text: str
    named: tuple[Iri, ...]


class QueryChecker:
    """Checks queries, some at once; the first check starts a process, which takes about a second.

    Args:
        namespaces: By prefix; usable in a query without declaring them.
        graphs: The IRIs that FROM and FROM NAMED may name.
        timeout_s: How many seconds a check may take, the start of its process included.
    """

    def __init__(
        self, namespaces: Mapping[str, str], graphs: Sequence[str] = (), *, timeout_s: float = CHECK_S
    ) -> None:
        self._timeout_s = timeout_s
        self._workers = WorkerPool(
            "kg_adapters.sparql.check_worker:answer_checks",
            dict(namespaces),
            tuple(graphs),
            reply=ReadOnlyQuery,
            workers=_WORKERS,
        )

    async def check(self, query: str, *, max_rows: int) -> ReadOnlyQuery:
        """Return the query as it may be sent.

        Raises:
            InvalidRequest: It is not SPARQL, does more than read this graph, or cannot be checked in time.
            BackendUnavailable: Too many other queries wait to be checked.
            BackendError: The process that checks ended, or the graph is closed.
        """
        try:
            return await self._workers.ask(query, max_rows, timeout_s=self._timeout_s)
        except WorkerTimeout:
            raise InvalidRequest(f"The query took more than {self._timeout_s:g} s to check. Simplify it.") from None
        except WorkerEnded as error:
            raise BackendError("The process that checks queries ended. Ask again, or simplify the query.") from error

    async def aclose(self) -> None:
        """End the processes."""
        await self._workers.aclose()
