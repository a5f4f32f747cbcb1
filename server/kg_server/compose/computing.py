"""Working out one call over a graph: a question for the graph, and what is told of its answer."""

from dataclasses import dataclass, replace
from math import isfinite
from typing import Final

from kg_adapters.algebra import (
    Best,
    Has,
    Hop,
    Kept,
    Members,
    NumberOf,
    Path,
    Step,
    ValueOf,
    Values,
    holds_values,
)
from kg_adapters.errors import InvalidRequest
from kg_adapters.models import Count, EdgeDirection
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import (
    Aggregated,
    Column,
    Computed,
    Ends,
    Grouped,
    Listed,
    SetQuestion,
    SetRequest,
    SharedBy,
    Tabled,
)
from kg_adapters.set_walking import compute_sets
from kg_adapters.sparql.explaining import as_sparql
from kg_server.compose.around import look_around
from kg_server.compose.compared import with_compared
from kg_server.compose.emptied import Emptiness
from kg_server.compose.given import AGGREGATES, BEYOND
from kg_server.compose.left_out import left_out
from kg_server.compose.lines import Note
from kg_server.compose.operands import operands
from kg_server.compose.reading import Reader
from kg_server.compose.relations import ALL_WAYS
from kg_server.compose.syntax import (
    BestCall,
    Call,
    CountCall,
    DegreeCall,
    EntityRef,
    FeatureCall,
    GroupCall,
    NeighborCall,
    Operand,
    RetrieveCall,
    Route,
    ShareCall,
    TableCall,
    TotalCall,
)
from kg_server.compose.telling import Asked, Worked, chain, told, told_count
from kg_server.coverage import absence, thinness
from kg_server.inverses import inverses_in_use
from kg_server.lines import Over
from kg_server.results import Knowledge

MOST_IN_CELL: Final = 10
MOST_VALUES: Final = 200
"""The most values of one node."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much of an answer is wanted.

    Args:
        results: The most results.
        witnesses: For how many results the facts that show them.
        timeout_s: After how many seconds it is not wanted any more.
        query: Whether SPARQL that asks the same is.
    """

    results: int
    witnesses: int
    timeout_s: float
    query: bool = False


async def work_out(graph: KGAdapter, reader: Reader, number: int, call: Call, wanted: Wanted) -> Worked:
    """Return what a call gives.

    Raises:
        KGError: A name in it stands for nothing, or the graph does not answer.
    """
    if isinstance(call, FeatureCall | NeighborCall) and call.route is None:
        return await look_around(graph, reader, number, call, wanted.results)
    asked = await question_of(reader, call)
    if isinstance(asked.question, SharedBy):
        asked = replace(asked, question=replace(asked.question, inverses=await inverses_in_use(graph)))
    counting = isinstance(call, CountCall) and not isinstance(asked.question, Aggregated) and asked.kind != "numbers"
    if counting:
        asked = replace(asked, question=_of_members(asked.question))
    request = SetRequest(
        asked.question,
        limit=0 if counting else wanted.results,
        cell_limit=MOST_VALUES if asked.kind == "values" else MOST_IN_CELL,
        witnesses=wanted.witnesses if _has_steps(call) else 0,
        timeout_s=wanted.timeout_s,
    )
    computed = await compute_sets(graph, request)
    if isinstance(computed.value, float) and not isfinite(computed.value):
        raise reader.misread(call.span, BEYOND)
    if counting:
        worked = told_count(number, call, asked, computed, reader.heard)
    else:
        worked = told(number, call, asked, computed, reader.heard, graph.prefixes)
        worked = await with_compared(graph, number, asked, worked, request)
    if wanted.witnesses and worked.evidence:
        with_what = (line for witness in reader.heard.compared for line in chain(number, witness))
        worked = replace(worked, evidence=(*worked.evidence, *with_what))
    notes, knowledge = await _meant(graph, asked, computed)
    if counting or isinstance(asked.question, Aggregated):
        notes = (*await operands(graph, asked, computed, request), *notes)
    if not notes and computed.count == Count(0):
        whole = asked.question.of if isinstance(asked.question, Listed) else asked.of
        notes = await Emptiness(graph, wanted.timeout_s).said(whole)
    silent = await left_out(graph, asked.of, wanted.timeout_s)
    if isinstance(asked.question, Listed) and not computed.count.value and silent.denied:
        knowledge = "denied"
    query = as_sparql(asked.question, graph.vocabulary, graph.prefixes, only_count=counting) if wanted.query else None
    typing = frozenset(graph.vocabulary.unwalked)
    said = (*worked.notes, *notes, *silent.notes)
    known = knowledge or worked.knowledge
    return replace(worked, notes=said, knowledge=known, given=frozenset(reader.heard.given), typing=typing, query=query)


async def question_of(reader: Reader, operand: Operand) -> Asked:
    """Return what the graph is asked for an operand.

    Raises:
        MisreadExpression: A name stands for nothing, or for something else.
    """
    match operand:
        case NeighborCall(node, Route() as route):
            of = await reader.set_of(node)
            way = await reader.way(route, of, "relation", strict=True)
            return Asked(Listed(await reader.set_of(operand)), "nodes", of, way)
        case FeatureCall(node, route):
            of = await reader.set_of(node)
            read = None if route is None else await reader.way(route, of, "feature", strict=True)
            await reader.naming.note_class(node, None if read is None else Kept(of, Has(read.path)))
            column: Column = Ends(ALL_WAYS if read is None else read.path)
            return Asked(Tabled(of, (column,)), "values", of, read)
        case DegreeCall(node, route):
            of = await reader.set_of(node)
            walked = None if route is None else await reader.way(route, of, "relation")
            await reader.naming.note_class(node, None if walked is None else Kept(of, Has(walked.path)))
            return Asked(Tabled(of, (NumberOf(ALL_WAYS if walked is None else walked.path),)), "numbers", of, walked)
        case BestCall():
            best, way = await reader.best(operand)
            column = Ends(way.path) if isinstance(best.by, ValueOf) else NumberOf(way.path)
            return Asked(Tabled(best, (column,)), "nodes", best.of, way)
        case TotalCall(function, node, route):
            of, way, by = await reader.measured(node, route, function)
            try:
                return Asked(Aggregated(of, by, AGGREGATES[function]), "numbers", of, way)
            except InvalidRequest as error:
                raise reader.misread(route.span, str(error)) from error
        case _:
            return await _other_question(reader, operand)


async def _other_question(reader: Reader, operand: Operand) -> Asked:
    match operand:
        case GroupCall(node, route):
            await reader.naming.refuse_class(node)
            of = await reader.set_of(node)
            way = await reader.way(route, of, "relation")
            return Asked(Grouped(of, way.path), "groups", of, way)
        case TableCall(node, routes):
            await reader.naming.refuse_class(node)
            of = await reader.set_of(node)
            ways = [await reader.way(route, of, "relation") for route in routes]
            return Asked(Tabled(of, tuple(Ends(way.path) for way in ways)), "rows", of, ways=tuple(ways))
        case ShareCall(operands):
            sets = await reader.sets_of(operands)
            return Asked(SharedBy(sets), "rows", sets[0])
        case CountCall(of):
            await reader.naming.refuse_class(of)
            return await question_of(reader, of)
        case _:
            found = await reader.set_of(operand)
            return Asked(Listed(found), "values" if holds_values(found) else "nodes", found)


def _of_members(question: SetQuestion) -> SetQuestion:
    """Return the question whose count is that of what another one gives."""
    match question:
        case Tabled(of, (Ends(path),)) if not isinstance(of, Best):
            return Listed(Values(of, path))
        case Tabled(of):
            return Listed(of)
        case _:
            return question


def _has_steps(call: Call) -> bool:
    """Say whether a call rests on more than its results say themselves."""
    inner = call.of if isinstance(call, CountCall) else call
    if isinstance(inner, RetrieveCall):
        return False
    if isinstance(inner, NeighborCall | FeatureCall | DegreeCall) and not isinstance(call, CountCall):
        return not isinstance(inner.node, EntityRef | RetrieveCall) or len(inner.route.legs if inner.route else ()) > 1
    return True


async def _meant(graph: KGAdapter, asked: Asked, computed: Computed) -> tuple[tuple[Note, ...], Knowledge | None]:
    """Return what it means that little or nothing was found."""
    way, of = asked.way, asked.of
    if way is None or way.over is None or not isinstance(of, Members):
        return (), None
    direction: EdgeDirection = "in" if way.over.backwards else "out"
    if asked.kind == "nodes" and isinstance(asked.question, Listed):
        if computed.count.value:
            thin = "" if way.over.backwards else await thinness(graph, of.nodes, way.over.relation)
            return ((thin.strip(),),) if thin else (), None
        turned = Over(way.over.relation, not way.over.backwards)
        back = Path((Hop((Step(turned.relation, "in" if turned.backwards else "out"),)),))
        found = await compute_sets(graph, SetRequest(Listed(Kept(of, Has(back))), limit=0, witnesses=0))
        if found.count.value:
            return (("Only the other way round: ", turned, "."),), None
    empty = not computed.count.value or (
        computed.rows and not any(cell.count.value for row in computed.rows for cell in row.cells)
    )
    if empty and len(of.nodes) == 1:
        absent = await absence(graph, of.nodes[0], way.over.relation, direction)
        return ((f"{absent.clause[0].upper()}{absent.clause[1:]}.",),), absent.knowledge
    return (), None
