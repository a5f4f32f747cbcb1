"""Compute an expression of Compose."""

from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import Final, TypeAlias

from kg_adapters.algebra import (
    Best,
    Members,
    NumberOf,
    Reached,
    SetExpression,
    Union,
    ValueOf,
    Values,
    holds_values,
)
from kg_adapters.errors import InvalidRequest
from kg_adapters.federated import FederatedGraph
from kg_adapters.models import Count, Direction
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.set_requests import (
    Aggregated,
    Column,
    Computed,
    Ends,
    Group,
    Grouped,
    Listed,
    SetQuestion,
    SetRequest,
    SharedBy,
    Tabled,
)
from kg_adapters.set_walking import compute_sets
from kg_adapters.sparql.sets import as_sparql
from kg_adapters.terms import Attribute, BlankNode, Fact, Iri, Literal, Node, Term, Triple, node_key
from kg_adapters.values import order_of
from kg_server.answers.coverage import inverses_in_use, one_way
from kg_server.answers.results import Note, Over
from kg_server.compose.filters import BEYOND
from kg_server.compose.lines import RemarkRequest, Told, Worked, chain, kind_of_term, one_source, told
from kg_server.compose.naming import count_of
from kg_server.compose.reading import Reader
from kg_server.compose.remarks import remarks_on, totals_of
from kg_server.compose.routes import AGGREGATES, ALL_WAYS, Way
from kg_server.compose.syntax import Call, EntityRef, Operand, Route
from kg_server.compose.totals import noun
from kg_server.concurrency import off_loop
from kg_server.naming.entities import is_nameless

MOST_COMPARED: Final = 5
"""Up to how many named entities are shown with the values by which they are compared."""


async def with_compared(
    graph: KGAdapter, number: int, asked: RemarkRequest, worked: Worked, request: SetRequest
) -> Worked:
    """Return a call with evidence of what each named entity is compared by, where it compares a few.

    Args:
        graph: The graph.
        number: Of which part, from 1.
        asked: What was asked.
        worked: What came of it.
        request: How it was asked.
    """
    best = _best(asked.question)
    if best is None or not request.witnesses or not 1 < len(_named(best.of)) <= MOST_COMPARED:
        return worked
    every = Tabled(replace(best, n=MOST_COMPARED), (Ends(best.by.path),))
    found = await compute_sets(graph, replace(request, question=every, limit=0, witnesses=MOST_COMPARED))
    known = {line.facts for line in worked.evidence}
    lines = [line for witness in found.witnesses for line in chain(number, witness) if line.facts not in known]
    if isinstance(asked.question, Aggregated):
        # Its remark names them with their values: rows are enough.
        lines = [replace(line, text=(), facts=()) for line in lines]
    return replace(worked, evidence=(*worked.evidence, *lines))


def _best(question: SetQuestion) -> Best | None:
    """Return what a question compares by a value: the best of a set, or its greatest or least value."""
    match question:
        case Tabled(Best(_, ValueOf()) as best):
            return best
        case Aggregated(of, ValueOf() as by, ("min" | "max") as function):
            return Best(of, by, lowest=function == "min")
        case _:
            return None


def _named(of: SetExpression) -> Collection[Node]:
    """Return the entities that a set is written out of; none where anything else is in it."""
    match of:
        case Members(nodes):
            return nodes
        case Union(sets):
            parts = [_named(each) for each in sets]
            return {node for part in parts for node in part} if all(parts) else ()
        case _:
            return ()


MOST_NODES: Final = 50
"""For how many nodes all neighbours or values are shown."""


_Statement: TypeAlias = tuple[Node, Over, Term]
"""What leads from a node to another one or to a value."""


async def look_around(graph: KGAdapter, reader: Reader, number: int, call: Call, most: int) -> Worked:
    """Return all neighbours or values of nodes.

    Raises:
        KGError: A name stands for nothing, or the graph does not answer.
    """
    of, values = await reader.set_of(call.node), call.function == "Feature"
    nodes, every = await _nodes(graph, of)
    stated, hidden = await (_features(graph, nodes, most) if values else _edges(graph, nodes, most))
    closed = {node for node in nodes if is_nameless(graph, node)} - {node for node, _, _ in stated}
    size = Count(len({end for _, _, end in stated}), exact=not hidden and every)
    if not size.exact and not graph.remote:
        # The number that Count[…] gives.
        size = await count_of(graph, Values(of, ALL_WAYS) if values else Reached(of, ALL_WAYS))
    every = every or (size.exact and size.value == len({end for _, _, end in stated}))
    first = f"Only what the first {MOST_NODES} nodes of the set have is listed."
    return Worked(
        call,
        "values" if values else "nodes",
        noun(size, "value" if values else "neighbour"),
        results=tuple(_lines(graph, number, stated)),
        total=len(stated) + hidden,
        notes=(
            *reader.heard.notes,
            *([] if every else [(first,)]),
            *([(_closed(len(closed), call.function),)] if closed else []),
        ),
        whole=every and size.exact and not closed,
        read=reader.heard.nodes,
    )


def _closed(number: int, function: str) -> str:
    has, them = ("1 of these nodes has", "it") if number == 1 else (f"{number:,} of these nodes have", "them")
    return (
        f"{has} no name by which this endpoint can be asked about {them}: "
        f"name the way, as in {function}[set, relation], and it is walked in one query."
    )


async def _nodes(graph: KGAdapter, of: SetExpression) -> tuple[tuple[Node, ...], bool]:
    """Return the first nodes of a set, and whether these are all."""
    if isinstance(of, Members):
        return of.nodes[:MOST_NODES], len(of.nodes) <= MOST_NODES
    if (around := _opening(graph, of)) is not None:
        pages = await graph.neighbors(around)
        ends = {end for page in pages.values() for each in page.triples for end in (each.head, each.tail)}
        if any(is_nameless(graph, end) for end in ends):
            opened = tuple(sorted(ends - set(around.entities), key=node_key))
            return opened[:MOST_NODES], len(opened) <= MOST_NODES and not any(each.truncated for each in pages.values())
    found = await compute_sets(graph, SetRequest(Listed(of), limit=MOST_NODES, witnesses=0))
    nodes = tuple(term for term in found.members if not isinstance(term, Literal))
    return nodes, found.count == Count(len(nodes))


def _opening(graph: KGAdapter, of: SetExpression) -> NeighborRequest | None:
    """Return the request whose answer opens the blank nodes of a set where the graph has no names for them."""
    if graph.prefixes.blank_nodes or not isinstance(of, Reached) or not isinstance(of.of, Members):
        return None
    (hop, *others) = of.path.hops
    steps = hop.steps or ()
    directions: set[Direction] = {each.direction for each in steps}
    if others or hop.repeated or len(directions) != 1:
        return None
    return NeighborRequest(
        of.of.nodes, direction=directions.pop(), relations=frozenset(each.relation for each in steps)
    )


async def _features(graph: KGAdapter, nodes: tuple[Node, ...], most: int) -> tuple[Sequence[_Statement], int]:
    """Return the values of nodes but for names and descriptions, and how many facts more there are."""
    pages = await graph.features(FeatureRequest(nodes, limit=most))
    texts = graph.vocabulary.texts
    stated = [
        (node, Over(each.relation), each.value)
        for node, page in pages.items()
        for each in page.features
        if each.relation not in texts
    ]
    return stated, _hidden((page.total, len(page.features)) for page in pages.values())


async def _edges(graph: KGAdapter, nodes: tuple[Node, ...], most: int) -> tuple[Sequence[_Statement], int]:
    """Return what links nodes, one of two facts that say the same, and how many facts more there are."""
    pages = await graph.neighbors(NeighborRequest(nodes, limit=most))
    inverse_of = (await graph.profile()).inverse_of
    stated: dict[object, _Statement] = {}
    for node, page in pages.items():
        for fact in page.triples:
            backwards = fact.head != node
            statement = node, Over(fact.relation, backwards), fact.head if backwards else fact.tail
            stated.setdefault((node, one_way(fact, inverse_of)), statement)
    return list(stated.values()), _hidden((page.total, len(page.triples)) for page in pages.values())


def _hidden(pages: Iterable[tuple[Count, int]]) -> int:
    """Return how many facts there are, at least, beside those that pages hold."""
    return sum(max(total.value - held, 0 if total.exact else 1) for total, held in pages)


def _lines(graph: KGAdapter, number: int, stated: Sequence[_Statement]) -> Iterator[Told]:
    for node, over, end in stated:
        row = (str(number), node, over, end, kind_of_term(end, graph.prefixes))
        yield Told((node, " | ", over, " | ", end), row, part=number)


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


async def work_out(graph: KGAdapter, reader: Reader, number: int, call: Call, wanted: Wanted) -> AsyncGenerator[Worked]:
    """Yield what a call gives as soon as it is known, then again with what it means and rests on.

    Raises:
        KGError: A name in it stands for nothing, or the graph does not answer.
    """
    if call.function in {"Feature", "Neighbor"} and call.route is None:
        yield await look_around(graph, reader, number, call, wanted.results)
        return
    asked = await question_of(reader, call)
    best_groups = isinstance(asked.question, Grouped) and call.function in {"Top", "Bottom"}
    if isinstance(asked.question, SharedBy):
        asked = replace(asked, question=replace(asked.question, inverses=await inverses_in_use(graph)))
    if call.function == "Count" and asked.kind != "numbers":
        asked = replace(asked, question=_of_members(asked.question), kind="numbers", counting=True)
    request = _request(asked, call, wanted, best_groups=best_groups)
    computed = await compute_sets(graph, request)
    if not all(map(isfinite, _totals(computed))):
        raise reader.misread(call.span, BEYOND)
    every = computed.count.value
    if best_groups:
        computed = _best_groups(reader, call, computed)
    asked = replace(asked, stated=await _stated(graph, asked, computed))
    size = len(computed.members) + len(computed.groups) + len(computed.rows) + len(computed.shared)
    worked = await off_loop(partial(told, number, call, asked, computed, reader.heard, graph.prefixes), size)
    query, unwritten = _query(graph, asked) if wanted.query and not best_groups else (None, ())
    given, typing = frozenset(reader.heard.given), frozenset(graph.vocabulary.unwalked)
    best = "smallest" if call.function == "Bottom" else "largest"
    of_groups = [(f"The {best} of {every:,}.",)] if computed.count.value < every else []
    notes = (*worked.notes, *of_groups, *unwritten)
    worked = replace(worked, notes=notes, given=given, typing=typing, query=query)
    yield worked
    worked = await with_compared(graph, number, asked, worked, request)
    if wanted.witnesses and worked.evidence:
        with_what = (line for witness in reader.heard.compared for line in chain(number, witness))
        worked = replace(worked, evidence=(*worked.evidence, *with_what))
    worked = replace(worked, totals=await totals_of(graph, number, asked, computed, request))
    notes, knowledge = await remarks_on(graph, asked, computed, request, reader.heard.absent)
    yield replace(worked, notes=(*worked.notes, *notes), knowledge=knowledge or worked.knowledge)


def _query(graph: KGAdapter, asked: RemarkRequest) -> tuple[str | None, Sequence[Note]]:
    """Return the SPARQL that asks the same, or None, and why there is none where that needs a reason."""
    if isinstance(graph, FederatedGraph):
        return None, ()
    try:
        return as_sparql(asked.question, graph.vocabulary, graph.prefixes, only_count=asked.counting), ()
    except InvalidRequest as error:
        return None, ((f"No query asks the same: {error}",),)


def _totals(computed: Computed) -> Iterator[float]:
    cells = (cell.total for row in computed.rows for cell in row.cells)
    every = (computed.value, *(group.total for group in computed.groups), *cells)
    return (value for value in every if isinstance(value, float))


def _request(asked: RemarkRequest, call: Call, wanted: Wanted, *, best_groups: bool) -> SetRequest:
    return SetRequest(
        asked.question,
        limit=0 if asked.counting else _MOST_GROUPS if best_groups else wanted.results,
        cell_limit=MOST_VALUES if asked.kind == "values" else MOST_IN_CELL,
        witnesses=wanted.witnesses if _has_steps(call) else 0,
        timeout_s=wanted.timeout_s,
    )


_MOST_GROUPS: Final = 10_000
"""Among how many groups the largest or smallest are found."""


def _best_groups(reader: Reader, call: Call, computed: Computed) -> Computed:
    """Return the `n` largest or smallest groups, and all that equal the last of them.

    Raises:
        MisreadExpression: There are more than are compared.
    """
    if computed.count != Count(len(computed.groups)):
        raise reader.misread(
            call.span, f"These are {noun(computed.count, 'group')}, and {_MOST_GROUPS:,} are compared."
        )
    last = [_number_of(each) for each in computed.groups[: call.n]][-1:]
    kept = tuple(each for place, each in enumerate(computed.groups) if place < call.n or _number_of(each) in last)
    ends = {each.by for each in kept}
    witnesses = tuple(each for each in computed.witnesses if each.result in ends)
    return replace(computed, groups=kept, count=Count(len(kept)), witnesses=witnesses)


def _number_of(group: Group) -> object:
    """Return what groups are ordered by: of values that are equal, such as 2 and 2.0, one number."""
    if isinstance(group.total, Literal):
        return order_of(group.total)
    return group.size if group.total is None else group.total


async def _stated(graph: KGAdapter, asked: RemarkRequest, computed: Computed) -> Mapping[tuple[int, Term, Term], Over]:
    """Return over which relation the first results are stated where several of one name are walked."""
    ways = enumerate(asked.ways or filter(None, [asked.way]))
    several = {place: way for place, way in ways if way.over is not None and way.only is None}
    if graph.remote or asked.counting or not several:
        return {}
    source = one_source(asked)
    pairs = [(0, source, each) for each in computed.members if source is not None]
    pairs += [(place, row.node, term) for row in computed.rows for place in several for term in row.cells[place].terms]
    facts: dict[Fact, tuple[tuple[int, Term, Term], Over]] = {}
    for place, node, term in pairs[:MOST_VALUES]:
        for step in several[place].path.hops[0].steps or ():
            over = Over(step.relation, step.direction == "in")
            if (fact := _fact(node, over, term)) is not None:
                facts[fact] = (place, node, term), over
    held = await graph.contains(facts.keys())
    stated: dict[tuple[int, Term, Term], Over] = {}
    for fact, (pair, over) in facts.items():
        if fact in held:
            stated.setdefault(pair, over)
    return stated


def _fact(node: Term, over: Over, term: Term) -> Fact | None:
    match node, term:
        case Iri() | BlankNode(), Literal():
            return None if over.backwards else Attribute(node, over.relation, term)
        case Iri() | BlankNode(), Iri() | BlankNode():
            return Triple(term, over.relation, node) if over.backwards else Triple(node, over.relation, term)
        case _:
            return None


async def question_of(reader: Reader, operand: Operand) -> RemarkRequest:
    """Return what the graph is asked for an operand.

    Raises:
        MisreadExpression: A name stands for nothing, or for something else.
    """
    match operand:
        case Call(function="Neighbor", routes=(route,)):
            of, way = await reader.walked(operand, route)
            return RemarkRequest(Listed(Reached(of, way.path)), "nodes", of, way)
        case Call(function="Feature" | "Degree" as function, operands=(node,)):
            values, read, path = function == "Feature", None, ALL_WAYS
            if operand.route is None:
                of = await reader.set_of(node)
                await reader.naming.note_class(node)
            else:
                of, read = await reader.walked(operand, operand.route)
                path = read.path
            column: Column = Ends(path) if values else NumberOf(path)
            return RemarkRequest(Tabled(of, (column,)), "values" if values else "numbers", of, read)
        case Call(function="Top" | "Bottom", operands=(Call(function="Group") as groups,)):
            return await _grouping(reader, groups, lowest=operand.function == "Bottom")
        case Call(function="Top" | "Bottom"):
            best, way = await reader.best(operand)
            column = Ends(way.path) if isinstance(best.by, ValueOf) else best.by
            return RemarkRequest(Tabled(best, (column,)), "nodes", best.of, way)
        case Call(function="Sum" | "Mean" | "Min" | "Max" as function, routes=(route,)):
            of, way, by = await reader.measured(operand)
            try:
                return RemarkRequest(Aggregated(of, by, AGGREGATES[function]), "numbers", of, way)
            except InvalidRequest as error:
                raise reader.misread(route.span, str(error)) from error
        case _:
            return await _other_question(reader, operand)


async def _other_question(reader: Reader, operand: Operand) -> RemarkRequest:
    match operand:
        case Call(function="Group"):
            return await _grouping(reader, operand)
        case Call(function="Table", operands=(node,), routes=routes):
            await reader.naming.refuse_class(node)
            of = await reader.set_of(node)
            shown = [await _column(reader, of, route) for route in routes]
            ways, columns = zip(*shown, strict=True)
            return RemarkRequest(Tabled(of, columns), "rows", of, ways=ways)
        case Call(function="Share", operands=operands):
            sets = await reader.sets_of(operands)
            return RemarkRequest(SharedBy(sets), "rows", sets[0])
        case Call(function="Count", operands=(of,)):
            await reader.naming.refuse_class(of)
            return await question_of(reader, of)
        case _:
            found = await reader.set_of(operand)
            return RemarkRequest(Listed(found), "values" if holds_values(found) else "nodes", found)


async def _grouping(reader: Reader, groups: Call, *, lowest: bool = False) -> RemarkRequest:
    await reader.naming.refuse_class(groups.node)
    of = await reader.set_of(groups.node)
    by, *totals = groups.routes
    by = await reader.routes.dated(by)
    way = await reader.routes.way(by, of, "relation" if by.part is None else "feature", either=by.part is None)
    if by.part is not None and way.kind not in {None, "date"}:
        raise reader.misread(by.span, f"{way.name} has {way.kind}s, and only dates are grouped by {by.part}.")
    total_way, total = await reader.total(of, totals[0]) if totals else (None, None)
    return RemarkRequest(Grouped(of, way.path, lowest, by.part, total), "groups", of, way, total=total_way)


async def _column(reader: Reader, of: SetExpression, route: Route) -> tuple[Way, Column]:
    if route.total is not None:
        return await reader.total(of, route)
    way = await reader.routes.way(route, of, "relation", either=True)
    return way, Ends(way.path)


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
    inner = call.node if call.function == "Count" else call
    if not isinstance(inner, Call):
        return True
    if inner.function == "Retrieve":
        return False
    if inner is call and call.function in {"Neighbor", "Feature", "Degree"}:
        plain = isinstance(call.node, EntityRef) or call.node.function == "Retrieve"
        return not plain or any(len(route.legs) > 1 for route in call.routes)
    return True
