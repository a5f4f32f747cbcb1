"""The calls of an expression that stand side by side, worked out; one that fails does not stop the others."""

from collections.abc import Sequence
from functools import partial

import anyio

from kg_adapters.errors import BackendTimeout, KGError
from kg_adapters.protocol import KGAdapter
from kg_server.compose.computing import Wanted, work_out
from kg_server.compose.naming import identities_of
from kg_server.compose.reading import Reader
from kg_server.compose.syntax import Call, kind_of
from kg_server.compose.telling import Worked
from kg_server.concurrency import together

AT_ONCE = 8


async def work_out_all(graph: KGAdapter, text: str, calls: Sequence[Call], wanted: Wanted) -> list[Worked]:
    """Work out calls side by side.

    Args:
        graph: The graph.
        text: The text of the expression, for errors that point into it.
        calls: The calls.
        wanted: How much of their answers is wanted.
    """
    found: dict[int, Worked] = {}
    with anyio.move_on_after(wanted.timeout_s):
        identities = await identities_of(graph, calls)

        async def run(number: int, call: Call) -> None:
            try:
                found[number] = await work_out(graph, Reader(graph, text, identities), number, call, wanted)
            except KGError as error:
                found[number] = Worked(call, kind_of(call), failure=error)

        await together([partial(run, number, call) for number, call in enumerate(calls, start=1)], at_once=AT_ONCE)
    late = BackendTimeout(f"There was no time for it within {wanted.timeout_s:g} seconds. Ask for less at once.")
    return [
        found.get(number) or Worked(call, kind_of(call), failure=late) for number, call in enumerate(calls, start=1)
    ]
