"""The paths that the relations and features in an expression stand for, and what is known of where they lead."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg_adapters.algebra import (
    ANY,
    ComparedKind,
    Function,
    Has,
    Hop,
    HopPath,
    Kept,
    Measure,
    Members,
    NumberOf,
    Reached,
    SetExpression,
    Step,
    TotalOf,
    ValueOf,
    Values,
    owner_of,
)
from kg_adapters.errors import InvalidRequest, UnknownRelation
from kg_adapters.models import EdgeDirection, GraphSchema
from kg_adapters.profile import GraphProfile, ValueRange, compared_kind, unit_in
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import Listed, SetRequest
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import Iri, Literal, Node, Term
from kg_adapters.values import compared_as
from kg_server.answers.columns import not_of_class
from kg_server.answers.coverage import both_steps
from kg_server.answers.results import Over
from kg_server.compose.naming import Heard, count_of
from kg_server.compose.syntax import Function as ComposeFunction
from kg_server.compose.syntax import (
    Leg,
    Route,
    Span,
    TotalFunction,
    Words,
)
from kg_server.names import names_of
from kg_server.naming.having import leads_by_profile
from kg_server.naming.refusals import MisreadExpression
from kg_server.naming.relations import (
    MAX_SAMPLED,
    Chosen,
    Sort,
    relation_behind_label,
    relation_of,
    said_of_union,
)

ALL_WAYS: Final = HopPath((ANY,))

AGGREGATES: Final[dict[ComposeFunction, Function]] = {"Sum": "sum", "Mean": "mean", "Min": "min", "Max": "max"}
"""What the graph calls the functions that make one value of many."""
_LOOKED_AT: Final = 20
_DIRECTIONS: Final = frozenset({"in", "out", "both", "incoming", "outgoing"})


@dataclass(frozen=True, slots=True)
class Way:
    """A path, and what is known of its last relation.

    Args:
        path: The path.
        over: The relation, or the first of several of one name, where the path is a single step.
        name: What its last relation is called.
        to_nodes: Whether it leads to nodes.
        to_values: Whether it leads to values.
        values: What these are like, where that is known.
        unit: The unit of its values where they are quantities, as `units.in_one_unit` finds it; `values` has its name.
        span: Where it stands in the expression.
        relations: All relations of its last step.
        written: How it is written in the expression.
    """

    path: HopPath
    over: Over | None
    name: str
    to_nodes: bool
    to_values: bool
    values: ValueRange | None
    span: Span
    unit: Iri | None = None
    relations: tuple[Iri, ...] = ()
    written: str = ""

    @property
    def only(self) -> Over | None:
        """The relation, where the path is a single step over a single one."""
        return self.over if len(self.relations) < 2 else None

    @property
    def kind(self) -> ComparedKind | None:
        """As what its values compare: as numbers or dates; None where they are texts or are not known."""
        kind = None if self.values is None else compared_kind(self.values.datatypes)
        return None if kind is None else compared_as(kind)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Whether a relation leads to nodes and to values, and what these are like, where that is known."""

    nodes: bool = False
    values: bool = False
    range: ValueRange | None = None


class Routes:
    """Reads the routes of one expression.

    Args:
        graph: The graph.
        text: The expression, which errors point into.
        heard: What should be known about how names were read.
    """

    def __init__(self, graph: KGAdapter, text: str, heard: Heard) -> None:
        self._graph = graph
        self._text = text
        self._heard = heard
        self._profile: GraphProfile | None = None
        self._schema: GraphSchema | None = None

    async def way(
        self, route: Route, of: SetExpression, sort: Sort, *, strict: bool = False, either: bool = False
    ) -> Way:
        """Return the path that a route stands for.

        Args:
            route: The route.
            of: What it starts from.
            sort: Whether its last name is rather a relation or a feature.
            strict: Whether it must be one.
            either: Whether both are taken where several have the name.

        Raises:
            MisreadExpression: A name stands for no relation, or for several.
        """
        route = await _as_one_relation(self._graph, self._text, route)
        hops: list[Hop] = []
        chosen = Chosen(())
        for place, leg in enumerate(route.legs):
            last = place == len(route.legs) - 1
            around = of if place == 0 else None
            chosen = await self._relation(leg, sort if last else "relation", around, strict=strict or not last)
            before = Reached(of, HopPath(tuple(hops))) if hops else of
            only = None if last and either else sort if last else "relation"
            chosen = await self._leading(chosen, leg, before, only, only_ends=strict and sort == "relation")
            if around is not None and leg.mark != "~" and (owner := owner_of(around)) is not None:
                side: EdgeDirection = "in" if leg.mark else "out"
                if absent := await not_of_class(self._graph, owner, chosen.relations, side):
                    self._heard.note(*absent)
                    self._heard.absent.update(chosen.relations)
            if not last:
                await self._require(leg, chosen, "relation", await self._listed(chosen.relations))
            hops.append(Hop(await self._steps(chosen.relations, leg, chosen.behind), repeated=leg.repeated))
        path = HopPath(tuple(hops))
        ends = await self._ends(route.legs[-1], chosen.relations, of, path, sort)
        if strict:
            await self._require(route.legs[-1], chosen, sort, ends)
        is_single = len(hops) == 1 and not hops[0].repeated
        return Way(
            path,
            Over(chosen.relation, route.legs[-1].mark == "-") if is_single else None,
            chosen.shown(await names_of(self._graph, chosen.terms)),
            ends.nodes,
            ends.values,
            ends.range,
            route.span,
            relations=chosen.relations,
            written=self._text[route.span.start : route.span.end].strip(),
        )

    async def measure(self, way: Way, function: str) -> Measure:
        """Return what a way measures nodes by: its numbers or dates, or how many nodes it leads to.

        Raises:
            MisreadExpression: Its values are texts.
        """
        if not way.to_values:
            return NumberOf(way.path)
        if way.values is None or not way.values.datatypes:
            return ValueOf(way.path)
        if way.kind is None:
            raise MisreadExpression(
                self._text,
                way.span.start,
                f"{way.name} has {' and '.join(f'{kind}s' for kind in way.values.kinds)}, and {function} needs numbers "
                "or dates: a feature such as population, or a relation, whose neighbours are counted.",
            )
        return ValueOf(way.path, way.kind, way.unit)

    async def total(self, way: Way, total: TotalFunction) -> TotalOf | NumberOf:
        """Return as what the ends of a way are taken together.

        Raises:
            MisreadExpression: They cannot be added up or compared.
        """
        if total == "Count":
            return TotalOf(ValueOf(way.path), "count") if way.to_values else NumberOf(way.path)
        by, problem = await self.measure(way, total), ""
        if isinstance(by, ValueOf):
            try:
                return TotalOf(by, AGGREGATES[total])
            except InvalidRequest as error:
                problem = str(error)
        else:
            problem = f"{way.name} leads to nodes, which have no {total}: Count[{way.written}] counts them."
        raise MisreadExpression(self._text, way.span.start, problem)

    async def dated(self, route: Route) -> Route:
        """Return a route up to a part of its dates; as it is written where a relation is called so, `paid by month`."""
        if route.part is None or any(leg.mark for leg in route.legs) or len(route.legs) > 1:
            return route
        span = route.span
        name = Words(self._text[span.start : span.end].strip(), span)
        try:
            found = await relation_of(self._graph, name.text)
        except (InvalidRequest, UnknownRelation):
            return route
        return route if found.why else Route((Leg(name),), span)

    async def _known(self) -> tuple[GraphSchema, GraphProfile]:
        if self._schema is None or self._profile is None:
            self._schema, self._profile = await self._graph.schema(), await self._graph.profile()
        return self._schema, self._profile

    async def _listed(self, relations: tuple[Iri, ...]) -> _Ends:
        """Return where relations lead by the definition of the graph."""
        schema, _ = await self._known()
        return _Ends(
            any(each.iri in relations for each in schema.relations),
            any(each.iri in relations for each in schema.features),
        )

    async def _ends(self, leg: Leg, relations: tuple[Iri, ...], of: SetExpression, path: HopPath, sort: Sort) -> _Ends:
        """Return where a path leads, by the definition of the graph; where that leaves it open, by what is there."""
        if leg.mark == "-":
            return _Ends(nodes=True)
        listed = await self._listed(relations)
        schema, profile = await self._known()
        if listed.nodes == listed.values and (listed.nodes or not schema.complete):
            # A column may be a link in one table and hold texts in another.
            here = _Ends(bool(await self._some(Reached(of, path), 1)), bool(await self._some(Values(of, path), 1)))
            listed = here if here.nodes or here.values else listed
        if not (listed.nodes or listed.values):
            listed = _Ends(sort == "relation", sort == "feature")
        if not listed.values:
            return listed
        known = self._range(profile, relations, of, path)
        if known is not None:
            return replace(listed, range=known)
        seen = Counter(
            each.datatype for each in await self._some(Values(of, path), _LOOKED_AT) if isinstance(each, Literal)
        )
        label = (await self._graph.labels(relations)).get(relations[0])
        datatypes = tuple(datatype for datatype, _ in seen.most_common())
        return replace(listed, range=ValueRange(datatypes, unit=unit_in(label)))

    def _range(
        self, profile: GraphProfile, relations: tuple[Iri, ...], of: SetExpression, path: HopPath
    ) -> ValueRange | None:
        """Return what the values of a relation are like: of the instances of a class where these have it."""
        relation, *others = relations
        if others:
            return None
        owner = owner_of(of) if len(path.hops) == 1 else None
        of_class = None if owner is None else profile.profile_of(owner)
        for each in (of_class, profile.everything):
            known = None if each is None else each.property(relation)
            if known is not None and known.values is not None:
                return known.values
        return None

    async def _some(self, of: SetExpression, limit: int) -> Sequence[Term]:
        return (await compute_sets(self._graph, SetRequest(Listed(of), limit=limit, witnesses=0))).members

    async def _require(self, leg: Leg, chosen: Chosen, sort: Sort, ends: _Ends) -> None:
        names = await names_of(self._graph, chosen.terms)
        shown, short = chosen.shown(names), names.relation_id(chosen.relation)
        problem = ""
        listed = await self._listed(chosen.relations)
        if leg.mark == "-" and listed.values and not listed.nodes:
            problem = f"{shown} has values, and none leads back: Where[…, {short} = value] finds what has one."
        elif sort == "relation" and ends.values and not ends.nodes:
            problem = f"{shown} has values, not nodes: use Feature[node, {short}]."
        elif sort == "feature" and ends.nodes and not ends.values:
            problem = f"{shown} leads to nodes, not values: use Neighbor[node, {short}]."
        if problem:
            raise MisreadExpression(self._text, leg.name.span.start, problem)

    async def _steps(self, relations: tuple[Iri, ...], leg: Leg, behind: tuple[Iri, ...] = ()) -> tuple[Step, ...]:
        """Return relations and their inverses, in the direction that is asked for or both, and others turned round."""
        directions: dict[str, Sequence[EdgeDirection]] = {"": ("out",), "-": ("in",), "~": ("out", "in")}
        steps = [Step(relation, direction) for relation in relations for direction in directions[leg.mark]]
        turned = {"": "-", "-": ""}.get(leg.mark, leg.mark)
        steps += [Step(relation, direction) for relation in behind for direction in directions[turned]]
        return both_steps(steps, (await self._known())[1].inverse_of)

    async def _relation(self, leg: Leg, sort: Sort, around: SetExpression | None, *, strict: bool) -> Chosen:
        nodes = around.nodes[:MAX_SAMPLED] if isinstance(around, Members) else ()
        try:
            return await self._called(leg, sort, nodes)
        except (InvalidRequest, UnknownRelation) as error:
            problem = error
        if around is not None and not nodes:
            sample = tuple(term for term in await self._some(around, MAX_SAMPLED) if not isinstance(term, Literal))
            try:
                return await self._called(leg, sort, sample)
            except (InvalidRequest, UnknownRelation) as error:
                problem = error
        advice = _advice(leg.name.text, sort) if strict else ""
        raise MisreadExpression(self._text, leg.name.span.start, f"{problem}{advice}", leg.name.text) from problem

    async def _called(self, leg: Leg, sort: Sort, nodes: tuple[Node, ...]) -> Chosen:
        found = await relation_of(self._graph, leg.name.text, sort, around=nodes)
        if found.why or ((to := found.relation) in self._graph.vocabulary.labels and found.name != to.local_part):
            self._heard.note(found.said(await names_of(self._graph, found.relations)).strip())
        return found

    async def _leading(
        self, chosen: Chosen, leg: Leg, of: SetExpression, sort: Sort | None, *, only_ends: bool
    ) -> Chosen:
        """Return those of several relations of one name that lead anywhere from a set, and remember several.

        Of these, those of a sort are taken where one is given. Where only the ends count and one leads to all of them,
        there is nothing to remember. All are taken where none leads anywhere, where they are walked repeatedly, and
        where the graph is remote, which is not asked.
        """
        is_told = True
        relations = chosen.relations
        if len(relations) > 1 and not (leg.repeated or self._graph.remote):
            paths = {each: HopPath((Hop(await self._steps((each,), leg)),)) for each in relations}
            leading = [each for each in relations if await self._leads(of, paths[each])]
            relations = await self._of_sort(tuple(leading) or relations, sort)
            if only_ends and len(relations) > 1 and leading:
                every = await count_of(self._graph, Reached(of, HopPath((Hop(await self._steps(relations, leg)),))))
                counts = [await count_of(self._graph, Reached(of, paths[each])) for each in relations]
                is_told = every not in counts or not every.exact
        else:
            relations = await self._of_sort(relations, sort)
        passed, chosen = len(chosen.relations) - len(relations), replace(chosen, relations=relations)
        if chosen.wider:
            self._heard.note(chosen.said(await names_of(self._graph, chosen.terms)).strip())
        elif len(relations) > 1 and is_told:
            self._heard.note(await said_of_union(self._graph, relations, leg.name.text, passed=passed))
        return chosen

    async def _leads(self, of: SetExpression, path: HopPath) -> bool:
        known = leads_by_profile((await self._known())[1], of, path)
        return (await count_of(self._graph, Kept(of, Has(path)))).value > 0 if known is None else known

    async def _of_sort(self, relations: tuple[Iri, ...], sort: Sort | None) -> tuple[Iri, ...]:
        """Return those relations of one name that are of a sort, or may be; all where none is, or any may be meant."""
        if sort is None or len(relations) < 2:
            return relations
        schema, _ = await self._known()
        nodes, values = {each.iri for each in schema.relations}, {each.iri for each in schema.features}
        wanted, others = (nodes, values) if sort == "relation" else (values, nodes)
        return tuple(each for each in relations if each in wanted or each not in others) or relations


async def _as_one_relation(graph: KGAdapter, text: str, route: Route) -> Route:
    """Return a route that is one relation as answers print it, `and/or (P5)`, as that relation; others as they are.

    Args:
        graph: The graph.
        text: The expression that the route stands in.
        route: The route.
    """
    first = route.legs[0]
    start = first.name.span.start
    part = "" if route.part is None else f" by {route.part}"
    whole = text[start : route.span.end].strip().removesuffix(part).strip()
    if len(route.legs) < 2 or not whole.endswith(")"):
        return route
    behind = await relation_behind_label(graph, whole)
    if behind is None or not behind.is_called_so:
        return route
    return Route((Leg(Words(whole, Span(start, route.span.end)), first.mark),), route.span)


def _advice(text: str, sort: Sort) -> str:
    """Return what to write instead of several relations in one call, or of a relation and a direction."""
    name, comma, last = (part.strip() for part in text.rpartition(","))
    if comma and last.casefold() in _DIRECTIONS:
        return f" A direction is a mark: {name} leads away, -{name} leads to it, ~{name} both ways."
    return f" One call takes one {sort}: write several calls, side by side or inside Union[…, …]." if comma else ""
