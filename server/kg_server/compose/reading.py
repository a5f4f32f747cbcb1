"""From the tree of an expression to sets of the graph: names become ids, relations become paths."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kg_adapters.algebra import (
    Best,
    Has,
    Instances,
    Intersect,
    Kept,
    Measure,
    Members,
    Minus,
    Operator,
    Path,
    Reached,
    SetExpression,
    Union,
    Values,
    holds_values,
)
from kg_adapters.errors import InvalidRequest, KGError
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node
from kg_boundary.shown import in_quotes
from kg_server.compose.filters import (
    Unfit,
    kept_by_literal,
    kept_by_meeting,
    kept_by_members,
    kept_by_name,
    kept_by_number,
    kept_by_value,
)
from kg_server.compose.given import number_in, total_of, value_in
from kg_server.compose.lines import Note
from kg_server.compose.relations import ALL_WAYS, Routes, Way
from kg_server.compose.routes import route_in
from kg_server.compose.syntax import (
    BestCall,
    Call,
    Clause,
    CountCall,
    EntityRef,
    FeatureCall,
    NeighborCall,
    Operand,
    RetrieveCall,
    Route,
    SetCall,
    SetFunction,
    Span,
    TotalCall,
    TypeCall,
    WhereCall,
    Words,
    calls_in,
    entities_in,
)
from kg_server.entity_arguments import class_of, naming_refusal
from kg_server.identity import Identity, identify
from kg_server.names import MAX_LABEL
from kg_server.pointing import MisreadExpression
from kg_server.relation_resolution import Sort
from kg_server.resolve import entity_of, unknown_entity

LISTED_NAMESAKES: Final = 5
_COMBINED: Final[Mapping[SetFunction, type[Union] | type[Intersect] | type[Minus]]] = {
    "Union": Union,
    "Intersect": Intersect,
    "Minus": Minus,
}
_ID_MARKS: Final = frozenset("<>:")


@dataclass(slots=True)
class Heard:
    """What should be known about how names were read: remarks, and the ids of names that are no ids."""

    notes: dict[Note, None] = field(default_factory=dict[Note, None])
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])


class Reader:
    """Reads one call of an expression.

    Args:
        graph: The graph.
        text: The expression, which errors point into.
        identities: What the names of entities in it stand for.
    """

    def __init__(self, graph: KGAdapter, text: str, identities: Mapping[str, Identity]) -> None:
        self._graph = graph
        self._text = text
        self._identities = identities
        self._routes = Routes(graph, text)
        self.heard = Heard()

    async def set_of(self, operand: Operand) -> SetExpression:
        """Return the set that an operand stands for.

        Raises:
            MisreadExpression: A name in it stands for nothing, or for something else.
        """
        match operand:
            case EntityRef(text, span) | RetrieveCall(Words(text, span)):
                return await self._named(text, span, is_id=isinstance(operand, EntityRef))
            case TypeCall(owner):
                return await self._class(owner)
            case NeighborCall(node, route):
                of = await self.set_of(node)
                return Reached(of, await self._path(route, of, "relation"))
            case FeatureCall(node, route):
                of = await self.set_of(node)
                return Values(of, await self._path(route, of, "feature"))
            case SetCall(function, operands):
                return _COMBINED[function](tuple([await self.set_of(each) for each in operands]))
            case _:
                return await self._chosen_from(operand)

    async def _chosen_from(self, operand: Call) -> SetExpression:
        match operand:
            case WhereCall():
                return await self._where(operand)
            case BestCall():
                return (await self.best(operand))[0]
            case _:
                raise self.misread(operand.span, "A set is needed here: nodes or values.")

    async def _path(self, route: Route | None, of: SetExpression, sort: Sort) -> Path:
        return ALL_WAYS if route is None else (await self.way(route, of, sort, strict=True)).path

    async def instances_meant(self, operand: Operand) -> None:
        """Refuse a class where its instances must be meant.

        Raises:
            MisreadExpression: The operand names a class.
        """
        if not isinstance(operand, EntityRef | RetrieveCall):
            return
        found = await self.set_of(operand)
        profile = await self._graph.profile()
        nodes = found.nodes if isinstance(found, Members) else ()
        known = [profile.profile_of(node) for node in nodes]
        if any(each is not None for each in known):
            text = operand.text if isinstance(operand, EntityRef) else operand.text.text
            raise MisreadExpression(
                self._text,
                operand.span.start,
                f"{in_quotes(text, MAX_LABEL)} is a class here, one node. Type[{text}] stands for its instances.",
            )

    async def way(self, route: Route, of: SetExpression, sort: Sort, *, strict: bool = False) -> Way:
        """Return the path that a route stands for; `Routes.way` says more."""
        way = await self._routes.way(route, of, sort, strict=strict)
        self.heard.notes |= {(note,): None for note in self._routes.notes}
        return way

    def misread(self, span: Span, problem: str) -> MisreadExpression:
        """Return an error that points at a place of the expression."""
        return MisreadExpression(self._text, span.start, problem)

    async def best(self, call: BestCall) -> tuple[Best, Way]:
        """Return the set of `Top` or `Bottom`, and what it is measured by."""
        await self.instances_meant(call.node)
        of = await self.set_of(call.node)
        way = await self.way(call.route, of, "feature")
        by = await self._routes.measure(way, call.function)
        return Best(of, by, call.n, lowest=call.function == "Bottom"), way

    async def measured(self, node: Operand, route: Route, function: str) -> tuple[SetExpression, Way, Measure]:
        """Return the set and the measure of a sum, mean, least or greatest."""
        await self.instances_meant(node)
        of = await self.set_of(node)
        way = await self.way(route, of, "feature")
        return of, way, await self._routes.measure(way, function)

    async def _named(self, text: str, span: Span, *, is_id: bool) -> SetExpression:
        found = self._identities[text]
        if not found.named:
            raise MisreadExpression(self._text, span.start, str(await self._refusal(found, is_id=is_id)))
        if found.match == "close" or found.named[0].matched_by != "id":
            self._say(found)
        return Members(found.nodes)

    async def _refusal(self, found: Identity, *, is_id: bool) -> KGError:
        if is_id and not found.named:
            try:
                node = await entity_of(self._graph, found.text)
            except InvalidRequest as error:
                return error if _ID_MARKS.intersection(found.text) else await naming_refusal(self._graph, found)
            except KGError as error:
                return error
            return await unknown_entity(self._graph, node, found.text)
        return await naming_refusal(self._graph, found)

    def _say(self, found: Identity) -> None:
        """Remember how a name was read where it was misspelt, or where several bear it."""
        if len(found.nodes) == 1:
            self.heard.nodes[found.text] = found.nodes[0]
        quoted = in_quotes(found.text, MAX_LABEL)
        if found.match == "close":
            self.heard.notes[f"Read {quoted} as ", found.nodes[0], "."] = None
        if len(found.nodes) > 1:
            listed = [piece for node in found.nodes[:LISTED_NAMESAKES] for piece in (", ", node)][1:]
            self.heard.notes[f"{quoted} names {len(found.nodes)}, and all take part: ", *listed, "."] = None

    async def _class(self, owner: Words) -> SetExpression:
        try:
            node = await class_of(self._graph, owner.text)
        except KGError as error:
            raise MisreadExpression(self._text, owner.span.start, str(error)) from error
        profile = await self._graph.profile()
        if profile.complete and profile.profile_of(node) is None:
            problem = (
                f"{in_quotes(owner.text, MAX_LABEL)} is no class here: nothing is an instance of it. Schema lists all."
            )
            raise MisreadExpression(self._text, owner.span.start, problem)
        return Instances(node)

    async def _where(self, call: WhereCall) -> SetExpression:
        await self.instances_meant(call.node)
        kept = await self.set_of(call.node)
        for clause in call.clauses:
            kept = await self._kept(kept, clause)
        return kept

    async def _kept(self, of: SetExpression, clause: Clause) -> SetExpression:
        value = clause.value
        way = await self.way(clause.route, of, _sort_of(value))
        if clause.operator is None or value is None:
            return Kept(of, Has(way.path))
        try:
            if not isinstance(value, Words):
                return await self._kept_by_call(of, way, clause.operator, value)
            if way.to_values and not (way.to_nodes and _sort_of(value) == "relation"):
                return kept_by_value(of, way, clause.operator, value.text)
            return await self._kept_by_nodes(of, way, clause, value)
        except Unfit as error:
            at = value.span.start
            raise MisreadExpression(self._text, at, str(error)) from error

    async def _kept_by_call(self, of: SetExpression, way: Way, operator: Operator, value: Operand) -> SetExpression:
        match value:
            case TotalCall(function, node, route):
                among, _, by = await self.measured(node, route, function)
                given = await total_of(self._graph, among, by, function)
            case CountCall(counted):
                given = await number_in(self._graph, await self.set_of(counted))
            case _:
                to = await self.set_of(value)
                if operator in {"=", "!="} or not holds_values(to):
                    return kept_by_members(of, way, operator, to)
                given = await value_in(self._graph, to)
        return kept_by_literal(of, way, operator, given)

    async def _kept_by_nodes(self, of: SetExpression, way: Way, clause: Clause, value: Words) -> SetExpression:
        operator = clause.operator or "="
        if operator == "~":
            return kept_by_name(of, way, value.text, self._graph.vocabulary)
        counted = kept_by_number(of, way, operator, value.text)
        if counted is not None:
            return counted
        found = self._identities[value.text]
        described = await self._graph.describe(found.nodes)
        if found.named and not all("relation" in each.roles for each in described.values()):
            return kept_by_members(of, way, operator, await self._named(value.text, value.span, is_id=True))
        try:
            return kept_by_meeting(of, way, await self.way(route_in(value), of, "relation"), operator)
        except MisreadExpression:
            refusal = await self._refusal(found, is_id=True)
        raise MisreadExpression(self._text, value.span.start, str(refusal))


async def identities_of(graph: KGAdapter, calls: Iterable[Call]) -> Mapping[str, Identity]:
    """Return what all names of entities in some calls stand for, asked for together."""
    texts: dict[str, None] = {}
    for call in calls:
        texts |= dict.fromkeys(ref.text for ref in entities_in(call))
        for each in calls_in(call):
            if isinstance(each, RetrieveCall):
                texts[each.text.text] = None
            if isinstance(each, WhereCall):
                values = (clause.value for clause in each.clauses)
                texts |= dict.fromkeys(value.text for value in values if isinstance(value, Words))
    found = await identify(graph, list(texts))
    return {each.text: each for each in found}


def _sort_of(value: object) -> Sort:
    """Return what a condition's relation is rather: a feature where a number or date is written or computed."""
    plain = value.text[:1].isdecimal() if isinstance(value, Words) else isinstance(value, FeatureCall | TotalCall)
    return "feature" if plain else "relation"
