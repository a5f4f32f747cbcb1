"""Questions about sets for every adapter and expressions for Compose: random ones, and trees built by hand."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kg_adapters.algebra import (
    ANY,
    Best,
    ComparedKind,
    Compares,
    Condition,
    DatePart,
    Has,
    Hop,
    HopPath,
    Instances,
    Intersect,
    Kept,
    Linked,
    Measure,
    Meets,
    Members,
    Minus,
    NumberOf,
    Numbers,
    Operator,
    Outranks,
    Reached,
    SetExpression,
    Step,
    Timed,
    TotalOf,
    Union,
    ValueOf,
    Values,
    Zone,
)
from kg_adapters.profile import EDTF
from kg_adapters.set_requests import Aggregated, Ends, Grouped, Listed, SetQuestion, SharedBy, Tabled
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Triple
from kg_adapters.testing import iri, typed
from kg_server.compose.parser import ALL, MAX_CALLS, MAX_DEPTH, parse_parts
from kg_server.compose.syntax import (
    Call,
    Clause,
    EntityRef,
    Function,
    Leg,
    Mark,
    Operand,
    RefusedPart,
    Route,
    SetFunction,
    Span,
    TotalFunction,
    Words,
)
from set_answers import walks_through_values

NODES = tuple(iri(name) for name in ("a", "b", "c", "d", "e"))
CLASSES = (iri("k"), iri("l"))
RELATIONS = (iri("p"), iri("q"))
FEATURES = (iri("f"), iri("label"), iri("p"))
VALUES = (
    *(typed(text, "integer") for text in ("1", "2", "12")),
    *(typed("2.5", "decimal"), typed("1977", "gYear"), typed("1977-05-01", "date"), typed("1977-05", "gYearMonth")),
    *(typed("1977-05-01T10:00:00Z", "dateTime"), typed("Ab", "string"), typed("true", "boolean")),
    Literal("ab", Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"), "en"),
    *(Literal("3", iri("km")), Literal("10", iri("km")), Literal("4.5", iri("mile")), Literal("far", iri("km"))),
    *(typed("12000-01-01", "date"), typed("-0044-03-15", "date")),
)
TIMES = (
    *(typed(f"1977-05-01T{time}", "dateTime") for time in ("11:30:00+02:00", "10:00:00.50", "00:00:00Z")),
    *(typed("1977-04-30T23:00:00-01:00", "dateTime"), Literal("1971/1980", EDTF)),
)
VALUED = (*VALUES, *TIMES)
GIVEN = (*VALUES[:10], *VALUES[11:13], *VALUES[-2:], *TIMES, typed("b", "string"))
ZONES: tuple[Zone, ...] = ("none", "utc", "other")
OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")

_triples = st.builds(Triple, st.sampled_from(NODES), st.sampled_from(RELATIONS), st.sampled_from(NODES))
_types = st.builds(Triple, st.sampled_from(NODES), st.just(iri("type")), st.sampled_from(CLASSES))
_narrower = st.builds(Triple, st.just(CLASSES[0]), st.just(iri("subClassOf")), st.just(CLASSES[1]))
_attributes = st.builds(Attribute, st.sampled_from(NODES), st.sampled_from(FEATURES), st.sampled_from(VALUED))


def graphs() -> st.SearchStrategy[list[Fact]]:
    """Return small graphs, which hold loops, several values and relations that lead to nodes and to values."""
    facts: st.SearchStrategy[Fact] = st.one_of(_triples, _attributes, _types, _narrower)
    return st.lists(facts, min_size=1, max_size=24, unique=True)


def questions() -> st.SearchStrategy[SetQuestion]:
    """Return questions of every sort."""
    functions = st.sampled_from(("sum", "mean", "min", "max"))
    sums = st.builds(Aggregated, _sets, _numbers, functions)
    ends = st.builds(Aggregated, _sets, _measures, st.sampled_from(("min", "max")))
    columns = st.lists(st.one_of(st.builds(Ends, _paths), st.builds(NumberOf, _paths), _totals), min_size=1, max_size=2)
    return st.one_of(
        st.builds(Listed, _sets),
        st.builds(Listed, _value_sets),
        sums,
        ends,
        st.builds(Grouped, _sets, _paths),
        st.builds(Grouped, _sets, _paths, st.booleans(), _parts, st.one_of(_totals, st.builds(NumberOf, _paths))),
        st.builds(Grouped, _sets, _paths, st.booleans(), _parts),
        st.builds(Tabled, _sets, columns.map(tuple)),
        st.builds(SharedBy, st.tuples(_sets, _sets), st.sampled_from(((), ((RELATIONS[0], RELATIONS[0]),)))),
    )


_Drawn = TypeVar("_Drawn")


def drawn_from(strategy: st.SearchStrategy[_Drawn], count: int) -> list[_Drawn]:
    """Return random things, the same every time."""
    found: list[_Drawn] = []
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=slow,
    )
    @given(strategy)
    def draw(thing: _Drawn) -> None:
        found.append(thing)

    draw()
    return found


def drawn(count: int, facts: Collection[Fact]) -> list[SetQuestion]:
    """Return random questions about facts, the same every time, but those that engines are known to read apart."""
    return [question for question in drawn_from(questions(), count) if not walks_through_values(question, facts)]


_steps = st.builds(Step, st.sampled_from((*RELATIONS, FEATURES[0])), st.sampled_from(("out", "in")))
_hops = st.one_of(
    st.just(ANY),
    st.builds(Hop, st.tuples(_steps), st.booleans()),
    st.builds(Hop, st.tuples(_steps, _steps), st.booleans()),
)
_paths: st.SearchStrategy[HopPath] = st.lists(_hops, min_size=1, max_size=2).map(lambda hops: HopPath(tuple(hops)))
_values: st.SearchStrategy[ValueOf] = st.builds(ValueOf, _paths)
_quantities: st.SearchStrategy[ValueOf] = st.builds(ValueOf, _paths, st.just("number"), st.just(iri("km")))
_numbers: st.SearchStrategy[Measure] = st.one_of(st.builds(ValueOf, _paths), _quantities, st.builds(NumberOf, _paths))
_measures: st.SearchStrategy[Measure] = st.one_of(_numbers, st.builds(ValueOf, _paths, st.just("date")))
_totals: st.SearchStrategy[TotalOf] = st.one_of(
    st.builds(TotalOf, _quantities, st.sampled_from(("sum", "mean", "min", "max", "count"))),
    st.builds(TotalOf, _values, st.sampled_from(("sum", "mean", "min", "max", "count"))),
    st.builds(TotalOf, st.builds(ValueOf, _paths, st.just("date")), st.sampled_from(("min", "max", "count"))),
)
_parts: st.SearchStrategy[DatePart | None] = st.sampled_from((None, "year", "month", "day"))
_leaves: st.SearchStrategy[SetExpression] = st.one_of(
    st.lists(st.sampled_from((*NODES, iri("nowhere"))), max_size=3, unique=True).map(
        lambda nodes: Members(tuple(nodes))
    ),
    st.builds(Instances, st.sampled_from(CLASSES), st.booleans()),
)


def _larger(smaller: st.SearchStrategy[SetExpression]) -> st.SearchStrategy[SetExpression]:
    several = st.lists(smaller, min_size=1, max_size=3).map(tuple)
    conditions: st.SearchStrategy[Condition] = st.one_of(
        st.builds(Has, _paths),
        st.builds(Linked, _paths, smaller),
        st.builds(Linked, _paths, st.builds(Values, smaller, _paths)),
        st.builds(Meets, _paths, _paths),
        st.builds(Compares, _paths, st.sampled_from(OPERATORS), st.sampled_from(GIVEN), st.booleans()),
        st.builds(Timed, _paths, st.lists(st.sampled_from(ZONES), min_size=1, max_size=2, unique=True).map(tuple)),
        st.builds(Compares, _paths, st.just("~"), st.just(GIVEN[-1])),
        st.builds(Outranks, _values, _values, st.sampled_from(OPERATORS)),
        st.builds(Numbers, _paths, st.sampled_from(OPERATORS), st.integers(0, 3)),
    )
    return st.one_of(
        st.builds(Reached, smaller, _paths),
        st.builds(Union, several),
        st.builds(Intersect, several),
        st.builds(Minus, several),
        st.builds(Kept, smaller, conditions),
        st.builds(Best, smaller, st.one_of(_measures, _totals), st.integers(1, 3), st.booleans()),
    )


_sets: st.SearchStrategy[SetExpression] = st.recursive(_leaves, _larger, max_leaves=4)
_simple_values = st.builds(Values, _sets, _paths)
_value_sets: st.SearchStrategy[SetExpression] = st.one_of(
    _simple_values,
    *(st.builds(kind, st.tuples(_simple_values, _simple_values)) for kind in (Union, Intersect, Minus)),
)


NOWHERE = Span(0, 0)


def parse(
    text: str, *, max_depth: int = MAX_DEPTH, max_calls: int = MAX_CALLS, functions: Collection[Function] = ALL
) -> tuple[Call, ...]:
    """Return the calls of an expression, or raise why one of them cannot be read."""
    calls: list[Call] = []
    for part in parse_parts(text, max_depth=max_depth, max_calls=max_calls, functions=functions):
        if isinstance(part, RefusedPart):
            raise part.reason
        calls.append(part)
    return tuple(calls)


def words(text: str) -> Words:
    return Words(text, NOWHERE)


def entity(text: str) -> EntityRef:
    return EntityRef(text, NOWHERE)


def retrieve(text: str) -> Call:
    return Call("Retrieve", NOWHERE, words=words(text))


def route(text: str, mark: Mark = "") -> Route:
    return Route((Leg(words(text), mark),), NOWHERE)


def call(function: Function, *operands: Operand | str, by: Route | str | None = None, n: int = 1) -> Call:
    """Return a call of operands, of which a text is an id, and of one relation."""
    nodes = tuple(entity(each) if isinstance(each, str) else each for each in operands)
    routes = () if by is None else (route(by) if isinstance(by, str) else by,)
    return Call(function, NOWHERE, nodes, routes, n=n)


@dataclass(frozen=True)
class SomeValues:
    """Some values of a feature as expressions write them, and as what they compare; None for texts."""

    written: tuple[str, ...]
    kind: ComparedKind | None

    @property
    def operators(self) -> tuple[Operator, ...]:
        return ("=", "!=", "~") if self.kind is None else OPERATORS


@dataclass(frozen=True)
class GraphWords:
    """What expressions about a graph name, as they write it.

    Args:
        entities: Entities.
        relations: Relations that lead to nodes; those that lead to nodes alone may be walked repeatedly both ways.
        mixed: Those of them that lead to values too.
        busy: Those of them that are used so often that they are walked one step at a time.
        classes: Classes.
        features: Relations that lead to values, and some of these.
    """

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    mixed: frozenset[str] = frozenset()
    busy: frozenset[str] = frozenset()
    classes: tuple[str, ...] = ()
    features: Mapping[str, SomeValues] = field(default_factory=dict[str, SomeValues])


def expressions(graph: GraphWords) -> st.SearchStrategy[str]:
    """Return expressions of every sort about a graph whose types fit."""
    return _Composed(graph).questions().map(spelled)


def neighbour_sets(graph: GraphWords) -> st.SearchStrategy[Operand]:
    """Return sets of nodes made of entities, of what one relation leads to, and of sets taken together."""
    composed = _Composed(graph)
    return st.recursive(composed.leaves(), composed.around, max_leaves=6)


class _Composed:
    """Makes expressions about one graph."""

    def __init__(self, graph: GraphWords) -> None:
        self._graph = graph
        self._nodes = st.recursive(self.leaves(), self._larger, max_leaves=4)
        self._values: st.SearchStrategy[Operand] = st.builds(call, st.just("Feature"), self._nodes, by=self._read())

    def leaves(self) -> st.SearchStrategy[Operand]:
        classes = st.sampled_from(self._graph.classes).map(_instances) if self._graph.classes else st.nothing()
        return st.sampled_from(self._graph.entities).map(entity) | classes

    def around(self, sets: st.SearchStrategy[Operand]) -> st.SearchStrategy[Operand]:
        """Return what one relation leads to from sets, or what comes of two."""
        marks: st.SearchStrategy[Mark] = st.sampled_from(("", "-"))
        routes = st.builds(route, st.sampled_from(self._graph.relations), marks)
        return st.builds(call, st.just("Neighbor"), sets, by=routes) | _combined(sets)

    def questions(self) -> st.SearchStrategy[Operand]:
        """Return expressions that are no part of others, and the number of them, which most are."""
        nodes, values, read, walked = self._nodes, self._values, self._read(), self._walked()
        some_values = values | st.builds(call, st.just("Feature"), nodes) | _combined(values)
        groups = st.builds(call, st.just("Group"), nodes, by=walked | read)
        best = st.builds(call, st.sampled_from(("Top", "Bottom")), groups, n=st.integers(1, 3))
        columns = st.lists(walked | read | self._totals(), min_size=1, max_size=2).map(tuple)
        rows = st.builds(_with_routes, st.just("Table"), nodes, columns)
        degrees = st.builds(call, st.just("Degree"), nodes, by=st.none() | walked)
        ends = st.builds(call, st.sampled_from(("Min", "Max")), nodes, by=self._read("number", "date"))
        sums = st.builds(call, st.sampled_from(("Sum", "Mean")), nodes, by=self._read("number"))
        totals = st.builds(_grouped, groups, self._totals())
        shared = st.builds(call, st.just("Share"), nodes, nodes)
        counted = st.builds(call, st.just("Count"), nodes | some_values | groups | rows)
        calls = nodes.filter(lambda each: isinstance(each, Call))
        others = calls | some_values | groups | best | rows | degrees | totals | shared
        return st.sampled_from((counted, counted, ends | sums, others)).flatmap(lambda each: each)

    def _larger(self, sets: st.SearchStrategy[Operand]) -> st.SearchStrategy[Operand]:
        clauses = st.lists(self._clauses(sets), min_size=1, max_size=2).map(tuple)
        measures = self._walked(self._only_nodes) | self._read("number", "date") | self._totals()
        return st.one_of(
            st.builds(call, st.just("Neighbor"), sets, by=self._walked()),
            st.builds(call, st.just("Neighbor"), self.leaves()),
            _combined(sets),
            st.builds(_where, sets, clauses),
            st.builds(_where, sets, clauses),
            st.builds(call, st.sampled_from(("Top", "Bottom")), sets, by=measures, n=st.integers(1, 3)),
        )

    @property
    def _only_nodes(self) -> list[str]:
        return [name for name in self._graph.relations if name not in self._graph.mixed]

    def _leg(self, names: Sequence[str] = ()) -> st.SearchStrategy[Leg]:
        marks: tuple[Mark, ...] = ("", "-", "~")

        def made(name: str, mark: Mark, *, repeated: bool) -> Leg:
            # From values that nodes share SPARQL walks back, and others do not.
            once = name in self._graph.busy or (mark == "~" and name in self._graph.mixed)
            return Leg(words(name), mark, repeated=repeated and not once)

        named = st.sampled_from(names or self._graph.relations)
        return st.builds(made, named, st.sampled_from(marks), repeated=st.booleans())

    def _walked(self, last: Sequence[str] = ()) -> st.SearchStrategy[Route]:
        """Return paths to nodes, with one of some relations as the last if any are given."""
        end, before = self._leg(last), self._leg()
        return st.builds(_path, end) | st.builds(_path, before, end)

    def _read(self, *kinds: ComparedKind) -> st.SearchStrategy[Route]:
        """Return paths to values, of some kinds if any are given."""
        named = [name for name, known in self._graph.features.items() if not kinds or known.kind in kinds]
        legs = st.sampled_from(named).map(lambda name: Leg(words(name))) if named else st.nothing()
        return st.builds(_path, legs) | st.builds(_path, self._leg(), legs)

    def _totals(self) -> st.SearchStrategy[Route]:
        ends: st.SearchStrategy[TotalFunction] = st.sampled_from(("Min", "Max"))
        sums: st.SearchStrategy[TotalFunction] = st.sampled_from(("Sum", "Mean"))
        return st.one_of(
            st.builds(_total, self._read(), st.just("Count")),
            st.builds(_total, self._read("number", "date"), ends),
            st.builds(_total, self._read("number"), sums),
        )

    def _clauses(self, sets: st.SearchStrategy[Operand]) -> st.SearchStrategy[Clause]:
        routes, walked = self._walked() | self._read(), self._walked(self._only_nodes)
        equal: st.SearchStrategy[Operator] = st.sampled_from(("=", "!="))
        ids = st.sampled_from(self._graph.entities).map(words)
        numbers = st.integers(0, 2).map(str).map(words)
        return st.one_of(
            st.builds(Clause, routes),
            st.builds(Clause, routes, equal, st.just(words("none"))),
            st.builds(Clause, walked, equal, ids | sets),
            st.builds(Clause, self._walked(), st.sampled_from(OPERATORS), numbers, st.just(True)),
            *(self._compared(*each) for each in self._graph.features.items()),
        )

    def _compared(self, feature: str, known: SomeValues) -> st.SearchStrategy[Clause]:
        end = st.just(Leg(words(feature)))
        path = st.builds(_path, end) | st.builds(_path, self._leg(), end)
        return st.builds(Clause, path, st.sampled_from(known.operators), st.sampled_from(known.written).map(words))


def _combined(sets: st.SearchStrategy[Operand]) -> st.SearchStrategy[Operand]:
    functions: st.SearchStrategy[SetFunction] = st.sampled_from(("Union", "Intersect", "Minus"))
    return st.builds(call, functions, sets, sets)


def _instances(owner: str) -> Operand:
    return Call("Type", NOWHERE, words=words(owner))


def _with_routes(function: Function, of: Operand, routes: tuple[Route, ...]) -> Operand:
    return Call(function, NOWHERE, (of,), routes)


def _grouped(groups: Call, total: Route) -> Operand:
    return replace(groups, routes=(*groups.routes, total))


def _where(of: Operand, clauses: tuple[Clause, ...]) -> Operand:
    return Call("Where", NOWHERE, (of,), clauses=clauses)


def _path(*legs: Leg) -> Route:
    return Route(legs, NOWHERE)


def _total(by: Route, function: TotalFunction) -> Route:
    return replace(by, total=function)


def spelled(operand: Operand | Words) -> str:
    """Return the text of an expression."""
    match operand:
        case EntityRef() | Words():
            return operand.text
        case Call("Type" | "Retrieve" as function, words=about):
            return f"{function}[{about.text}]"
        case Call(function):
            given = [*map(spelled, operand.operands), *map(_spelled_route, operand.routes)]
            given += map(_spelled_clause, operand.clauses)
            given += [str(operand.n)] if function in {"Top", "Bottom"} else []
            return f"{function}[{', '.join(given)}]"


def _spelled_route(by: Route) -> str:
    path = "/".join(f"{leg.mark}{leg.name.text}{'+' * leg.repeated}" for leg in by.legs)
    return path if by.total is None else f"{by.total}[{path}]"


def _spelled_clause(clause: Clause) -> str:
    path = _spelled_route(replace(clause.route, total="Count") if clause.counted else clause.route)
    return path if clause.value is None else f"{path} {clause.operator} {spelled(clause.value)}"
