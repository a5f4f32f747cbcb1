"""Resolve the names in an expression of Compose."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from kg_adapters.algebra import (
    Best,
    Compares,
    Has,
    HopPath,
    Intersect,
    Kept,
    Linked,
    Measure,
    Members,
    Minus,
    NumberOf,
    Numbers,
    Operator,
    Reached,
    SetExpression,
    TotalOf,
    Union,
    Values,
    holds_values,
)
from kg_adapters.federated import FederatedGraph
from kg_adapters.profile import is_unit
from kg_adapters.profile import kind_of as datatype_kind
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import XSD, Iri, Literal, Node
from kg_adapters.values import unit_of, value_kind
from kg_boundary.shown import in_quotes
from kg_server.compose.filters import (
    ORDERING,
    Unfit,
    counted_as,
    kept_by_count,
    kept_by_literal,
    kept_by_meeting,
    kept_by_members,
    kept_by_name,
    kept_by_order,
    kept_by_value,
    number_in,
    total_of,
    value_in,
    written_number,
)
from kg_server.compose.naming import Heard, Naming, count_of
from kg_server.compose.parser import route_in
from kg_server.compose.routes import ALL_WAYS, Routes, Way
from kg_server.compose.syntax import (
    COMPARED_COUNT,
    CONDITION,
    Call,
    Clause,
    EntityRef,
    Operand,
    Route,
    SetFunction,
    Span,
    Words,
    calls_in,
    entities_in,
    is_number,
    kind_of,
)
from kg_server.compose.together import Conditions, about_one, behind_it, first_step, on_what_is_there
from kg_server.compose.totals import compared_with
from kg_server.names import MAX_LABEL, names_of
from kg_server.naming.close import POOL
from kg_server.naming.entities import Identity, identify, naming_refusal
from kg_server.naming.having import of_classes_with, with_any
from kg_server.naming.meaning import Meaning
from kg_server.naming.refusals import MisreadExpression, one_error
from kg_server.naming.relations import Sort

MOST_UNITS: Final = 20
"""How many units are looked for, the most frequent first."""
_BARE: Final = Iri(f"{XSD}double")
_LEAST: Final = "-1.7e308"


_COMBINED: Final[Mapping[SetFunction, type[Union] | type[Intersect] | type[Minus]]] = {
    "Union": Union,
    "Intersect": Intersect,
    "Minus": Minus,
}


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
        self.naming = Naming(graph, text, identities)
        self.routes = Routes(graph, text, self.naming.heard)

    @property
    def heard(self) -> Heard:
        """What should be known about how names were read."""
        return self.naming.heard

    async def set_of(self, operand: Operand) -> SetExpression:
        """Return the set that an operand stands for.

        Raises:
            MisreadExpression: A name in it stands for nothing, or for something else.
        """
        if isinstance(operand, EntityRef):
            return await self.naming.entities(operand)
        match operand.function:
            case "Retrieve" | "Type" as function:
                words, naming = operand.words, self.naming
                return await (naming.instances(words) if function == "Type" else naming.entities(words, is_id=False))
            case "Neighbor" | "Feature" as function:
                if operand.route is None:
                    of, path = await self.set_of(operand.node), ALL_WAYS
                else:
                    of, way = await self.walked(operand, operand.route)
                    path = way.path
                return Reached(of, path) if function == "Neighbor" else Values(of, path)
            case "Where":
                return await self._where(operand)
            case "Top" | "Bottom":
                return (await self.best(operand))[0]
            case "Union" | "Intersect" | "Minus" as function:
                return _COMBINED[function](await self.sets_of(operand.operands))
            case _:
                raise self.misread(operand.span, "A set is needed here: nodes or values.")

    async def sets_of(self, operands: Sequence[Operand]) -> tuple[SetExpression, ...]:
        """Return sets that are taken together."""
        sets = tuple([await self.set_of(each) for each in operands])
        for place, operand in enumerate(operands):
            others = Union((*sets[:place], *sets[place + 1 :]))
            await self.naming.note_class(operand, Intersect((sets[place], others)))
        return sets

    async def walked(self, call: Call, route: Route) -> tuple[SetExpression, Way]:
        """Return the set that `Neighbor`, `Feature` or `Degree` starts from, and its way.

        Of several things of one name those are meant from which it leads anywhere.
        """
        node = call.node
        several = self.naming.namesakes(node.text) if isinstance(node, EntityRef) else ()
        of = Members(several) if several else await self.set_of(node)
        sort: Sort = "feature" if call.function == "Feature" else "relation"
        way = await self.routes.way(route, of, sort, strict=call.function != "Degree")
        if several and isinstance(node, EntityRef):
            of = await self.naming.entities(node, having=await self._having(several, way.path))
        if call.function == "Degree":
            self._note_values(way)
        await self.naming.note_class(node, Kept(of, Has(way.path)))
        return of, way

    def _note_values(self, way: Way) -> None:
        """Remember that values are counted beside nodes, or in their place."""
        if way.to_values:
            beside = "to nodes and to values: both are" if way.to_nodes else "to values, which are"
            self.heard.note(f"{way.name} leads {beside} counted here.")

    async def _having(
        self, nodes: Sequence[Node], path: HopPath, to: SetExpression | None = None
    ) -> tuple[Collection[Node], Collection[Node]]:
        """Return those of some nodes from which a path leads to a member of a set, and those whose class has it."""
        return await with_any(self._graph, nodes, path, to), await of_classes_with(self._graph, nodes, path)

    async def _in_one_unit(self, way: Way, of: SetExpression) -> Way:
        """Return a way whose values are compared, with the unit of those that the members of a set have.

        Raises:
            MisreadExpression: They have several units.
        """
        datatypes = () if way.values is None else way.values.datatypes
        units = [each for each in datatypes if is_unit(each)][:MOST_UNITS]
        if way.values is None or not units or not way.to_values:
            return way
        bare = [_BARE] if "number" in {datatype_kind(each) for each in datatypes} else []
        found = [each for each in (*units, *bare) if await self._has(of, way, each)]
        if not found or found == bare:
            return way
        names = await names_of(self._graph, found)
        shown = ["no unit" if each == _BARE else names.unit(each) for each in found]
        if len(found) > 1:
            different = "has values in different units, which are not compared or added up"
            problem = f"{way.name} {different}: {', '.join(shown)}. Table[…] shows each value with its unit."
            raise self.misread(way.span, problem)
        others = tuple(each for each in datatypes if not is_unit(each))
        return replace(way, unit=found[0], values=replace(way.values, datatypes=(*others, _BARE), unit=shown[0]))

    async def _has(self, of: SetExpression, way: Way, datatype: Iri) -> bool:
        """Say whether a member of a set has a number of a datatype, which may be a unit."""
        return await self._any(Kept(of, Compares(way.path, ">=", Literal(_LEAST, datatype))))

    async def _any(self, of: SetExpression) -> bool:
        return (await count_of(self._graph, of)).value > 0

    async def _require_unit(self, way: Way, given: Literal) -> None:
        """Refuse to compare numbers at the end of a way with one in another unit."""
        unit = unit_of(given)
        if way.kind != "number" or value_kind(given) != "number" or unit == way.unit:
            return
        names = await names_of(self._graph, [each for each in (unit, way.unit) if each is not None])
        own, other = ("no unit" if each is None else f"the unit {names.unit(each)}" for each in (way.unit, unit))
        compared = f"what it is compared with has {other}; different units are not compared."
        raise self.misread(way.span, f"{way.name} has {own}, and {compared}")

    def misread(self, span: Span, problem: str) -> MisreadExpression:
        """Return an error that points at a place of the expression."""
        return MisreadExpression(self._text, span.start, problem)

    async def best(self, call: Call) -> tuple[Best, Way]:
        """Return the set of `Top` or `Bottom`, and what it is measured by."""
        of, way, by = await self.measured(call)
        return Best(of, by, call.n, lowest=call.function == "Bottom"), way

    async def measured(self, call: Call) -> tuple[SetExpression, Way, Measure]:
        """Return the set and the measure of a sum, mean, least or greatest."""
        await self.naming.refuse_class(call.node)
        of = await self.set_of(call.node)
        route = call.routes[0]
        way, by = await self.total(of, route) if route.total is not None else (await self._valued(of, route), None)
        if by is None and not way.to_values and call.function not in {"Top", "Bottom"}:
            self.heard.note(f"{way.name} leads to nodes: what counts is how many of them there are.")
        return of, way, by or await self.routes.measure(way, call.function)

    async def total(self, of: SetExpression, route: Route) -> tuple[Way, TotalOf | NumberOf]:
        """Return the way to what is taken together, as in `Sum[route]`, and as what."""
        way = await self._valued(of, route)
        return way, await self.routes.total(way, route.total or "Count")

    async def _valued(self, of: SetExpression, route: Route) -> Way:
        """Return a way to values of one unit; where all are counted the unit does not matter."""
        way = await self.routes.way(route, of, "relation" if route.total == "Count" else "feature")
        return way if route.total == "Count" else await self._in_one_unit(way, of)

    async def _where(self, call: Call) -> SetExpression:
        await self.naming.refuse_class(call.node)
        return await self._kept_by_all(await self.set_of(call.node), call.clauses)

    async def _kept_by_all(self, of: SetExpression, clauses: Sequence[Clause]) -> SetExpression:
        """Return the members that meet all conditions."""
        for each in about_one(clauses):
            if each.of_one:
                of = await self._kept_by_one(of, each)
                continue
            for clause in each.clauses:
                of = await self._kept(of, clause)
            if len(each.clauses) > 1:
                self.heard.note(each.said())
        return of

    async def _kept_by_one(self, of: SetExpression, conditions: Conditions) -> SetExpression:
        """Return the members from which one step leads to a thing that meets all of some conditions on it."""
        first = first_step(conditions.clauses[0])
        try:
            way = await self.routes.way(first, of, "relation", strict=True)
        except MisreadExpression as error:
            raise MisreadExpression(self._text, error.position, f"{error.problem} {CONDITION}") from error
        several = Kept(of, Numbers(way.path, ">", 1))
        if self._graph.remote or await self._any(several):
            self.heard.note(conditions.said())
        base = of
        while isinstance(base, Kept):
            base = base.of
        there: SetExpression = Reached(base, way.path)
        for clause in conditions.clauses:
            if len(clause.route.legs) == 1:
                kept = await self._kept(of, clause)
                met = on_what_is_there(kept.condition, way.path, there) if isinstance(kept, Kept) else None
                there, of = (there, kept) if met is None else (met, of)
        behind = [behind_it(each) for each in conditions.clauses if len(each.route.legs) > 1]
        return Kept(of, Linked(way.path, await self._kept_by_all(there, behind)))

    async def _kept(self, of: SetExpression, clause: Clause) -> SetExpression:
        value, operator = clause.value, clause.operator
        try:
            sort: Sort = "relation" if clause.counted else _sort_of(value)
            way = await self.routes.way(clause.route, of, sort, either=True)
        except MisreadExpression as error:
            raise MisreadExpression(self._text, error.position, f"{error.problem} {CONDITION}") from error
        having = Kept(of, Has(way.path))
        if operator is None or value is None:
            return having
        if isinstance(value, Words) and operator in {"=", "!="} and self._is_none(value):
            return Minus((of, having)) if operator == "=" else having
        try:
            if clause.counted:
                if way.to_nodes:
                    self._note_values(way)
                given = counted_as(value.text) if isinstance(value, Words) else await self._number(value)
                return kept_by_count(of, way, operator, given)
            way = await self._in_one_unit(way, of)
            if isinstance(value, Words):
                return await self._kept_by_words(of, way, operator, value)
            return await self._kept_by_call(of, way, operator, value)
        except Unfit as error:
            raise self.misread(value.span, str(error)) from error

    async def _kept_by_words(self, of: SetExpression, way: Way, operator: Operator, value: Words) -> SetExpression:
        """Return the members that compare with what is written: by their values, and by the nodes that they lead to."""
        if not way.to_nodes or (way.to_values and operator in ORDERING):
            return await self._kept_by_values(of, way, operator, value)
        if not way.to_values:
            return await self._kept_by_nodes(of, way, operator, value)
        if operator == "!=":
            return Minus((Kept(of, Has(way.path)), await self._kept_by_words(of, way, "=", value)))
        kept: list[SetExpression] = []
        refused: list[Unfit | MisreadExpression] = []
        for compared in (self._kept_by_values, self._kept_by_nodes):
            try:
                kept.append(await compared(of, way, operator, value))
            except (Unfit, MisreadExpression) as error:
                refused.append(error)
        if not kept:
            raise refused[0]
        return Union(tuple(kept))

    async def _kept_by_values(self, of: SetExpression, way: Way, operator: Operator, value: Words) -> SetExpression:
        """Return the members whose values compare with a written one, or with what another feature has."""
        if (other := await self._other_values(of, way, operator, value)) is not None:
            return kept_by_order(of, way, other, operator)
        return kept_by_value(of, way, operator, value.text)

    async def _kept_by_call(self, of: SetExpression, way: Way, operator: Operator, value: Operand) -> SetExpression:
        """Return the members that compare with what a call gives; several values are members of a set, like nodes."""
        if not is_number(value):
            to = await self.set_of(value)
            found = await value_in(self._graph, to, or_none=operator in {"=", "!="}) if holds_values(to) else None
            if found is None:
                return kept_by_members(of, way, operator, to)
            given, witnesses = found
            self.heard.compared += witnesses
        else:
            given = await self._number(value)
        await self._require_unit(way, given)
        return kept_by_literal(of, way, operator, given)

    async def _kept_by_nodes(self, of: SetExpression, way: Way, operator: Operator, value: Words) -> SetExpression:
        """Return the members that lead to something by its id or name, or to what another relation leads to."""
        if operator == "~":
            return kept_by_name(of, way, value.text, self._graph.vocabulary)
        if operator in ORDERING:
            raise Unfit(f"{way.name} leads to nodes, which {operator} cannot compare. {self._counted(way)}")
        if not await self.naming.names_entity(value.text):
            other = await self._other_way(of, value)
            if other is not None:
                return kept_by_meeting(of, way, other, operator)
            if written_number(value.text) is not None:
                raise Unfit(f"No entity matches {in_quotes(value.text, MAX_LABEL)}. {self._counted(way)}")
        several = self.naming.namesakes(value.text)
        led_to = await self._having(several, way.path.backwards(), of) if several else ()
        to = await self.naming.entities(value, having=led_to)
        kept = kept_by_members(of, way, operator, to)
        await self.naming.note_class(value, Kept(of, Linked(way.path, to)))
        return kept

    def _counted(self, way: Way) -> str:
        """Return how it is asked how many nodes a way leads to."""
        return f"How many there are is asked by Count[{self._text[way.span.start : way.span.end].strip()}]."

    def _is_none(self, value: Words) -> bool:
        """Return whether a value is the keyword `none`; in quotation marks it is a name."""
        if value.quoted or value.text.casefold() != "none":
            return False
        if (named := self.naming.exactly(value.text)) is not None:
            self.heard.note(f"{value.text} is read as having none; in quotation marks it names ", named.nodes[0], ".")
        return True

    async def _number(self, value: Operand) -> Literal:
        """Return the number that a call gives."""
        if not is_number(value):
            raise self.misread(value.span, COMPARED_COUNT)
        if value.function == "Count":
            await self.naming.refuse_class(value.node)
            return await number_in(self._graph, await self.set_of(value.node))
        among, measured, by = await self.measured(value)
        given, total = await total_of(self._graph, among, by, value.function)
        self.heard.note(*compared_with(total, by, measured))
        return given

    async def _other_values(self, of: SetExpression, way: Way, operator: Operator, value: Words) -> Way | None:
        """Return the way to other numbers or dates that a value without digits names; None where it names none."""
        if way.kind is None or operator == "~" or value.quoted or not value.text[:1].isalpha():
            return None
        other = await self._other_way(of, value, "feature")
        return None if other is None or not other.to_values else await self._in_one_unit(other, of)

    async def _other_way(self, of: SetExpression, value: Words, sort: Sort = "relation") -> Way | None:
        try:
            return await self.routes.way(route_in(value), of, sort)
        except MisreadExpression:
            return None


async def identities_of(
    graph: KGAdapter, calls: Iterable[Call], meaning: Meaning | None = None
) -> Mapping[str, Identity]:
    """Return what all names of entities in some calls stand for, asked for together.

    Args:
        graph: The graph.
        calls: The calls.
        meaning: What `Retrieve` finds the nearest node by; None where it goes by names.
    """
    texts: dict[str, None] = {}
    retrieved: dict[str, None] = {}
    compared: dict[str, None] = {}
    for call in calls:
        texts |= dict.fromkeys(ref.text for ref in entities_in(call))
        for each in calls_in(call):
            if each.function == "Retrieve":
                (texts if meaning is None else retrieved)[each.words.text] = None
            values = (clause.value for clause in each.clauses)
            compared |= dict.fromkeys(value.text for value in values if isinstance(value, Words))
    found = await identify(graph, list(texts | compared), compared=compared.keys() - texts.keys())
    several = [each for each in found if len(each.nodes) > 1 and _is_read_differently(graph, each.text)]
    if several:
        raise one_error([await naming_refusal(graph, each) for each in several])
    nearest = {} if meaning is None else {text: await _nearest(graph, meaning, text) for text in retrieved}
    return {each.text: each for each in found} | nearest


def _is_read_differently(graph: KGAdapter, text: str) -> bool:
    return isinstance(graph, FederatedGraph) and len(graph.prefixes.readings(text)) > 1


async def _nearest(graph: KGAdapter, meaning: Meaning, text: str) -> Identity:
    """Return the one node that is nearest to a text by embedding (the paper, section 2.2).

    Where a graph keeps no vectors it is the nearest of those that share words or letters with the text, and where no
    model runs the one that a search by name finds first.
    """
    near = (await meaning.candidates(text, limit=1, type=None)).candidates
    if not near:
        pool = await graph.search(text, limit=POOL)
        near = (await meaning.nearest(text, {each.entity: each.matched_text for each in pool}, limit=1)).candidates
        near = near or pool[:1]
    return Identity(text, "exact" if near else "none", tuple(near))


def _sort_of(value: Words | Operand | None) -> Sort:
    """Return what a condition's relation is rather: a feature where a number or date is written or computed."""
    match value:
        case None:
            return "relation"
        case Words(text, quoted=is_quoted):
            plain = text[:1].isdecimal() and not is_quoted
        case _:
            # How many there are is compared with nodes as well.
            plain = kind_of(value) == "values" or (is_number(value) and value.function != "Count")
    return "feature" if plain else "relation"
