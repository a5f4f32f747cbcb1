"""Working out an expression: every call asks the graph once for all nodes that it starts from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import anyio

from kg_adapters.errors import BackendTimeout, InvalidRequest, KGError, UnknownRelation
from kg_adapters.models import Count
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node
from kg_boundary.shown import in_quotes
from kg_server.compose.outcomes import Fact, Failure, Note, Outcome, Part, Step
from kg_server.compose.pointing import MisreadExpression
from kg_server.compose.relation_names import chosen
from kg_server.compose.sets import combine
from kg_server.compose.syntax import (
    Call,
    CountCall,
    DegreeCall,
    EntityRef,
    FeatureCall,
    Leg,
    NeighborCall,
    Operand,
    RetrieveCall,
    SetCall,
    Span,
    Words,
    entities_in,
    operands_of,
)
from kg_server.compose.walking import any_backwards, measure, read, walk
from kg_server.concurrency import all_of, together
from kg_server.entity_arguments import naming_refusal
from kg_server.identity import identify
from kg_server.lines import Over
from kg_server.names import MAX_LABEL
from kg_server.relation_resolution import Chosen, Sort
from kg_server.resolve import entity_of, unknown_entity

_ID_MARKS: Final = frozenset("<>:")
LISTED_TIES: Final = 5
_ONE_BY_ONE: Final = "This graph computes no sets, so only single relations can be walked, counted and intersected."
AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """What one expression may cost.

    Args:
        nodes: From how many nodes a step starts at most, and how many neighbours it fetches.
        calls: How many calls an expression may have.
        depth: How deep they may be nested.
        timeout_s: After how many seconds a part is given up; what is known by then is kept.
    """

    nodes: int = 1_000
    calls: int = 64
    depth: int = 8
    timeout_s: float = 9.0


async def evaluate(graph: KGAdapter, text: str, calls: Sequence[Call], limits: Limits) -> tuple[Part, ...]:
    """Work out calls side by side; one that fails keeps its reason and does not stop the others.

    Args:
        graph: The graph.
        text: The text of the expression, for errors that point into it.
        calls: The calls.
        limits: What they may cost.
    """
    parts = [_Evaluation(graph, text, limits, call) for call in calls]
    with anyio.move_on_after(limits.timeout_s):
        entities = await _entities(graph, calls)
        await together([partial(part.run, entities) for part in parts], at_once=AT_ONCE)
    return tuple(part.result() for part in parts)


async def _entities(graph: KGAdapter, calls: Sequence[Call]) -> Mapping[str, Node]:
    """Return the nodes of all ids that the graph mentions, asked for in one request."""
    expanded: dict[str, Node] = {}
    for ref in (each for call in calls for each in entities_in(call)):
        try:
            expanded[ref.text] = graph.prefixes.expand(ref.text)
        except InvalidRequest:
            continue
    if not expanded:
        return {}
    known = await graph.describe(list(expanded.values()))
    return {text: node for text, node in expanded.items() if node in known}


class _Evaluation:
    """Works out one of the calls that stand side by side, and remembers its steps."""

    def __init__(self, graph: KGAdapter, text: str, limits: Limits, call: Call) -> None:
        self._graph = graph
        self._text = text
        self._limits = limits
        self._call = call
        self._entities: Mapping[str, Node] = {}
        self._steps: list[Step] = []
        self._outcome: Outcome | None = None
        self._failure: KGError | None = None

    async def run(self, entities: Mapping[str, Node]) -> None:
        """Work the call out, from the nodes of its ids."""
        self._entities = entities
        try:
            self._outcome = await self._known(self._call)
        except KGError as error:
            self._failure = error

    def result(self) -> Part:
        """Return what is known by now."""
        steps = tuple(sorted(self._steps, key=lambda step: step.call.span.end))
        failure = self._failure
        if self._outcome is None and failure is None:
            failure = BackendTimeout(
                f"There was no time for it within {self._limits.timeout_s:g} seconds. Ask for less at once."
            )
        return Part(self._call, self._outcome, steps, failure)

    async def _known(self, operand: Operand) -> Outcome:
        """Return what an operand gives.

        Raises:
            KGError: It gives nothing, for a reason that points into the text where possible.
        """
        if isinstance(operand, EntityRef):
            return await self._entity(operand)
        given = await all_of([partial(self._known, each) for each in operands_of(operand)], at_once=AT_ONCE)
        self._require(operand, given)
        step = await self._worked_out(operand, given)
        self._steps.append(step)
        return step.outcome

    def _require(self, call: Call, given: Sequence[Outcome]) -> None:
        """Refuse to go on from operands of which nothing is known; a union goes on with the others."""
        unites = isinstance(call, SetCall) and call.function == "Union"
        if unites and any(outcome.facts for outcome in given):
            return
        for operand, outcome in zip(operands_of(call), given, strict=True):
            if outcome.failures and not outcome.facts:
                raise self._misread(operand.span, outcome.failures[0].reason)

    async def _worked_out(self, call: Call, given: Sequence[Outcome]) -> Step:
        match call:
            case RetrieveCall():
                return await self._retrieved(call)
            case FeatureCall():
                return await self._values(call, given[0])
            case NeighborCall():
                return await self._neighbors(call, given[0])
            case DegreeCall():
                return await self._degrees(call, given[0])
            case CountCall():
                return Step(call, _counted(given[0]))
            case SetCall():
                try:
                    return Step(call, await combine(self._graph, call.function, given))
                except InvalidRequest as error:
                    raise self._misread(call.span, str(error)) from error
            case _:
                raise self._misread(call.span, _ONE_BY_ONE)

    async def _entity(self, ref: EntityRef) -> Outcome:
        node = self._entities.get(ref.text)
        if node is not None:
            return Outcome("nodes", (Fact(None, node),), Count(1))
        try:
            node = await entity_of(self._graph, ref.text)
        except InvalidRequest as error:
            (found,) = await identify(self._graph, [ref.text])
            if found.match == "exact" and len(found.nodes) == 1:
                return Outcome("nodes", (Fact(None, found.nodes[0]),), Count(1))
            refusal = error if _ID_MARKS.intersection(ref.text) else await naming_refusal(self._graph, found)
            raise self._misread(ref.span, str(refusal)) from error
        except KGError as error:
            raise self._misread(ref.span, str(error)) from error
        reason = str(await unknown_entity(self._graph, node, ref.text))
        return Outcome("nodes", (), Count(0, exact=False), failures=(Failure(node, reason),))

    async def _retrieved(self, call: RetrieveCall) -> Step:
        (found,) = await identify(self._graph, [call.text.text])
        if not found.named:
            raise self._misread(call.text.span, str(await naming_refusal(self._graph, found)))
        best, *others = found.named
        note: list[str | Node | Over] = [f"by {best.matched_by} {in_quotes(best.matched_text, MAX_LABEL)}"]
        if found.match == "close":
            note.append(", which the text misspells")
        if others:
            note.append(f"; {len(found.named)} of that name take part:")
            for place, each in enumerate(found.named[:LISTED_TIES]):
                note.extend((" " if not place else ", ", each.entity))
        outcome = Outcome("nodes", tuple(Fact(None, each) for each in found.nodes), Count(len(found.nodes)))
        return Step(call, outcome, (tuple(note),), doubtful=bool(others) or found.match == "close")

    async def _values(self, call: FeatureCall, nodes: Outcome) -> Step:
        sources, notes = self._sources(nodes)
        found = await self._chosen(self._leg(call).name, "feature", sources)
        over = Over(found.relation)
        outcome = await read(self._graph, sources, over, most=self._limits.nodes, all_nodes=_all(nodes, sources))
        return Step(call, _with_failures(outcome, nodes), (*notes, *_choice(found, over)))

    async def _neighbors(self, call: NeighborCall, nodes: Outcome) -> Step:
        sources, notes = self._sources(nodes)
        leg = self._leg(call)
        found = await self._chosen(leg.name, "relation", sources, backwards=leg.mark == "-")
        over = Over(found.relation, leg.mark == "-")
        outcome = await walk(self._graph, sources, over, most=self._limits.nodes, all_nodes=_all(nodes, sources))
        if not outcome.facts and await any_backwards(self._graph, outcome):
            notes = (*notes, ("only the other way round: ", Over(over.relation, not over.backwards)))
        return Step(call, _with_failures(outcome, nodes), (*notes, *_choice(found, over)))

    async def _degrees(self, call: DegreeCall, nodes: Outcome) -> Step:
        sources, notes = self._sources(nodes)
        if call.route is None:
            outcome = await measure(self._graph, sources, None, in_all=nodes.total)
            return Step(call, _with_failures(outcome, nodes), (*notes, ("over all relations, both ways",)))
        leg = self._leg(call)
        found = await self._chosen(leg.name, "relation", sources, backwards=leg.mark == "-")
        over = Over(found.relation, leg.mark == "-")
        outcome = await measure(self._graph, sources, over, in_all=nodes.total)
        return Step(call, _with_failures(outcome, nodes), (*notes, *_choice(found, over)))

    def _leg(self, call: FeatureCall | NeighborCall | DegreeCall) -> Leg:
        """Return the only relation of a call, which is walked once, in one direction."""
        legs = () if call.route is None else call.route.legs
        if len(legs) != 1 or legs[0].repeated or legs[0].mark == "~":
            raise self._misread(call.span, _ONE_BY_ONE)
        return legs[0]

    def _sources(self, nodes: Outcome) -> tuple[tuple[Node, ...], tuple[Note, ...]]:
        """Return the nodes that a step starts from, and a note where they are not all."""
        sources = nodes.nodes[: self._limits.nodes]
        cut = len(sources) < nodes.total.value or not (nodes.total.exact or nodes.failures)
        if not cut:
            return sources, ()
        return sources, ((f"from {len(sources):,} of {nodes.total} nodes",),)

    async def _chosen(self, words: Words, sort: Sort, nodes: Sequence[Node], *, backwards: bool = False) -> Chosen:
        try:
            return await chosen(self._graph, words.text, sort, nodes, "in" if backwards else "out")
        except (InvalidRequest, UnknownRelation) as error:
            raise self._misread(words.span, str(error)) from error

    def _misread(self, span: Span, problem: str) -> MisreadExpression:
        return MisreadExpression(self._text, span.start, problem)


def _counted(outcome: Outcome) -> Outcome:
    """Return how many items there are; numbers stay numbers."""
    if outcome.kind == "numbers":
        return outcome
    return Outcome("numbers", (Fact(None, outcome.total),), Count(1))


def _all(nodes: Outcome, sources: Sequence[Node]) -> bool:
    return nodes.complete and len(sources) == len(nodes.nodes)


def _with_failures(outcome: Outcome, nodes: Outcome) -> Outcome:
    """Return an outcome that keeps the failures of the nodes it starts from."""
    return replace(outcome, failures=(*nodes.failures, *outcome.failures)) if nodes.failures else outcome


def _choice(found: Chosen, over: Over) -> tuple[Note, ...]:
    if not found.others:
        return ()
    pieces: list[str | Node | Over] = ["taken because only it occurs here: ", over, "; others of that name:"]
    for other in found.others[:LISTED_TIES]:
        pieces.extend((" " if other == found.others[0] else ", ", Over(other)))
    return (tuple(pieces),)
