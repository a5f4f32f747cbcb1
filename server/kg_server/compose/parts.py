"""The calls of an expression that stand side by side, worked out; one that fails does not stop the others."""

from collections.abc import Sequence
from functools import partial

import anyio

from kg_adapters.errors import BackendTimeout, KGError
from kg_adapters.models import Count
from kg_adapters.protocol import KGAdapter, SupportsSets
from kg_server.compose.computing import Wanted, work_out
from kg_server.compose.evaluation import Limits, evaluate
from kg_server.compose.lines import evidence_lines, result_lines, size_of, step_lines
from kg_server.compose.outcomes import Part
from kg_server.compose.reading import Reader, identities_of
from kg_server.compose.syntax import Call, kind_of
from kg_server.compose.telling import Worked
from kg_server.concurrency import together

AT_ONCE = 8


async def work_out_all(
    graph: KGAdapter, text: str, calls: Sequence[Call], limits: Limits, wanted: Wanted
) -> list[Worked]:
    """Work out calls side by side.

    Args:
        graph: The graph.
        text: The text of the expression, for errors that point into it.
        calls: The calls.
        limits: What they may cost where the graph does not compute sets.
        wanted: How much of their answers is wanted.
    """
    if not isinstance(graph, SupportsSets):
        parts = await evaluate(graph, text, calls, limits)
        return [_walked(graph, number, part, text) for number, part in enumerate(parts, start=1)]
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


def _walked(graph: KGAdapter, number: int, part: Part, text: str) -> Worked:
    """Return what is told of a call that was worked out step by step."""
    outcome = part.outcome
    if outcome is None:
        return Worked(part.call, kind_of(part.call), failure=part.failure)
    results = tuple(result_lines(number, part, graph.prefixes))
    exact = all(fact.item.exact for fact in outcome.facts if isinstance(fact.item, Count))
    return Worked(
        part.call,
        outcome.kind,
        size_of(outcome),
        results,
        len(results),
        tuple(line for lines in evidence_lines(number, part) for line in lines),
        (),
        outcome.complete and not outcome.failures and exact,
        any(step.doubtful for step in part.steps),
        None if outcome.facts else "unknown",
        tuple(step_lines(number, part, text)),
    )
