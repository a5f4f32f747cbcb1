"""Questions about sets for every adapter: random ones over a small vocabulary, and trees built by hand."""

from collections.abc import Collection

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kg_adapters.algebra import (
    ANY,
    Best,
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
from kg_server.compose.syntax import Call, EntityRef, Function, Leg, Mark, Operand, RefusedPart, Route, Span, Words
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


def drawn(count: int, facts: Collection[Fact]) -> list[SetQuestion]:
    """Return random questions about facts, the same every time, but those that engines are known to read apart."""
    found: list[SetQuestion] = []

    @settings(max_examples=count, derandomize=True, database=None, phases=[Phase.generate], deadline=None)
    @given(questions())
    def draw(question: SetQuestion) -> None:
        found.append(question)

    draw()
    return [question for question in found if not walks_through_values(question, facts)]


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
