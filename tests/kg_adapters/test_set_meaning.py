"""What the expressions over sets mean, by a world that fits on a screen."""

from dataclasses import dataclass

import pytest

from kg_adapters.algebra import (
    ANY,
    Best,
    Compares,
    Has,
    Hop,
    HopPath,
    Instances,
    Intersect,
    Kept,
    Linked,
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
    Union,
    ValueOf,
    Values,
)
from kg_adapters.errors import InvalidRequest
from kg_adapters.index.sets.answers import sets_of
from kg_adapters.labels import Vocabulary
from kg_adapters.models import Count
from kg_adapters.profile import EDTF
from kg_adapters.set_requests import Aggregated, Grouped, Listed, SetQuestion, SetRequest, SharedBy
from kg_adapters.terms import Attribute, Fact, Literal
from kg_adapters.testing import edge, iri, typed
from kg_adapters.values import compares


def value(head: str, relation: str, text: str, datatype: str) -> Fact:
    return Attribute(iri(head), iri(relation), typed(text, datatype))


FACTS = (
    *(edge(text) for text in ("heat type film", "ran type film", "noir subClassOf film", "m type noir")),
    *(edge(text) for text in ("heat cast ann", "heat cast bob", "ran cast bob", "m cast cid", "ann spouse bob")),
    *(edge(text) for text in ("ann born rome", "cid born rome", "ann died rome", "rome in italy", "italy in europe")),
    *(value("heat", "length", "170", "integer"), value("ran", "length", "162.5", "decimal")),
    *(value("m", "length", "170", "integer"), value("m", "length", "99", "integer")),
    *(value("heat", "released", "1995-12-15", "date"), value("ran", "released", "1985", "gYear")),
    *(value("m", "length", "long", "string"), value("ann", "label", "Ann", "string")),
    *(value("heat", "minutes", "170.0", "decimal"), value("ran", "minutes", "161", "integer")),
)
SETS = sets_of(FACTS, Vocabulary())
FILMS = Instances(iri("film"))
PEOPLE = Members((iri("ann"), iri("bob"), iri("cid")))
TRUE_YEAR = typed("1985", "gYear")
MINUTES = HopPath((Hop((Step(iri("length")), Step(iri("minutes")))),))


def path(*steps: str, repeated: bool = False) -> HopPath:
    """Return a path of single relations, `-` before those that are walked backwards, `~` before those both ways."""
    return HopPath(tuple(Hop(_steps(step), repeated=repeated) for step in steps))


def _steps(step: str) -> tuple[Step, ...]:
    relation = iri(step.lstrip("-~"))
    back, forth = Step(relation, "in"), Step(relation)
    return {"-": (back,), "~": (forth, back)}.get(step[0], (forth,))


def names(expression: SetExpression) -> list[str]:
    found = SETS.compute(SetRequest(Listed(expression))).members
    return [term.value if isinstance(term, Literal) else term.local_part for term in found]


@dataclass(frozen=True)
class Case:
    expression: SetExpression
    members: str


@pytest.mark.parametrize(
    "case",
    [
        Case(FILMS, "heat m ran"),
        Case(Instances(iri("film"), subclasses=False), "heat ran"),
        Case(Reached(FILMS, path("cast")), "ann bob cid"),
        Case(Reached(Members((iri("bob"),)), path("-cast", "cast")), "ann bob"),
        Case(Reached(Members((iri("bob"),)), path("~spouse")), "ann"),
        Case(Reached(Members((iri("bob"),)), HopPath((ANY,))), "ann heat ran"),
        Case(
            Reached(Members((iri("ann"),)), HopPath((*path("born").hops, *path("in", repeated=True).hops))),
            "europe italy",
        ),
        Case(Values(FILMS, path("length")), "162.5 170 99 long"),
        Case(Values(Members((iri("ann"),)), HopPath((ANY,))), ""),
        Case(Union((PEOPLE, FILMS)), "ann bob cid heat m ran"),
        Case(Intersect((PEOPLE, Reached(Members((iri("heat"),)), path("cast")))), "ann bob"),
        Case(Minus((PEOPLE, Reached(Members((iri("heat"),)), path("cast")))), "cid"),
        Case(Kept(PEOPLE, Has(path("born"))), "ann cid"),
        Case(Kept(FILMS, Linked(path("cast", "born"), Members((iri("rome"),)))), "heat m"),
        Case(Kept(PEOPLE, Meets(path("born"), path("died"))), "ann"),
        Case(Kept(PEOPLE, Meets(path("-cast"), path("~spouse", "-cast"))), "ann bob"),
        Case(Kept(FILMS, Compares(path("length"), ">", typed("99.0", "decimal"))), "heat m ran"),
        Case(Kept(FILMS, Compares(path("length"), "~", typed("LON", "string"))), "m"),
        Case(Kept(FILMS, Compares(path("released"), ">", TRUE_YEAR)), "heat"),
        Case(Kept(FILMS, Outranks(ValueOf(path("length")), ValueOf(path("cast", "-cast", "length")), "<")), "m ran"),
        Case(Kept(FILMS, Outranks(ValueOf(path("length")), ValueOf(path("length")), "=")), "heat m ran"),
        Case(Kept(FILMS, Numbers(path("cast"), "<", 2)), "m ran"),
        Case(Kept(PEOPLE, Numbers(path("born"), "=", 0)), "bob"),
        Case(Best(FILMS, ValueOf(path("length"))), "heat m"),
        Case(Best(FILMS, ValueOf(path("length")), 2, lowest=True), "m ran"),
        Case(Best(FILMS, ValueOf(path("released"), "date"), 5, lowest=True), "ran heat"),
        Case(Best(PEOPLE, NumberOf(path("-cast"))), "bob"),
        Case(Best(PEOPLE, NumberOf(path("-cast")), 9, lowest=True), "ann cid bob"),
    ],
)
def test_an_expression_stands_for_one_set_in_one_order(case: Case) -> None:
    assert names(case.expression) == case.members.split()


@pytest.mark.parametrize(
    ("question", "count", "value", "members"),
    [
        (Aggregated(FILMS, ValueOf(path("length")), "sum"), 4, 170 + 170 + 162.5 + 99, (3, 0)),
        (Aggregated(FILMS, ValueOf(MINUTES), "sum"), 5, 170 + 170 + 162.5 + 99 + 161, (3, 0)),
        (Aggregated(FILMS, ValueOf(path("length")), "max"), 4, typed("170", "integer"), (3, 0)),
        (Aggregated(FILMS, ValueOf(path("released"), "date"), "min"), 2, TRUE_YEAR, (2, 1)),
        (Aggregated(PEOPLE, NumberOf(path("born")), "mean"), 2, 1.0, (2, 1)),
        (Aggregated(PEOPLE, ValueOf(path("length")), "sum"), 0, None, (0, 3)),
    ],
)
def test_different_pairs_of_a_node_and_its_value_are_taken_together(
    question: SetQuestion, count: int, value: float | Literal | None, members: tuple[int, int]
) -> None:
    found = SETS.compute(SetRequest(question))
    assert (found.count, found.value) == (Count(count), value)
    assert (found.measured.value, found.without.value) == members


def test_groups_count_members_and_shared_terms_are_led_to_from_each_set() -> None:
    grouped = SETS.compute(SetRequest(Grouped(PEOPLE, path("born"))))
    assert [(str(group.by), group.size) for group in grouped.groups] == [(str(iri("rome")), Count(2))]
    assert grouped.without == Count(1)
    shared = SETS.compute(SetRequest(SharedBy((Members((iri("ann"),)), Members((iri("cid"),)))))).shared
    assert [(each.step, each.term) for each in shared] == [(Step(iri("born")), iri("rome"))]


@pytest.mark.parametrize(
    ("date", "operator", "given", "expected"),
    [
        (("1977-05-01", "date"), "=", ("1977", "gYear"), True),
        (("1977-05-01", "date"), ">", ("1977", "gYear"), False),
        (("1978", "gYear"), ">", ("1977-05-01", "date"), True),
        (("1977", "gYear"), "=", ("1977-05-01", "date"), False),
        (("1977", "gYear"), "<=", ("1977-05-01", "date"), False),
        (("1977", "gYear"), "<=", ("1977-12-31", "date"), True),
        (("1977-05", "gYearMonth"), "<=", ("1977-05-31T23:59:59Z", "dateTime"), True),
        (("1977", "gYear"), ">=", ("1977-01-01", "date"), True),
        (("1977", "gYear"), "<", ("1977-01-01", "date"), False),
        (("1977-05-01", "date"), ">=", ("1977-05-01T00:00:00Z", "dateTime"), True),
        (("1977-05-01", "date"), "<", ("1977-06", "gYearMonth"), True),
        (("1977-05-01T10:00:00Z", "dateTime"), "<=", ("1977-05-01", "date"), True),
        (("-0044-03-15", "date"), "=", ("-0044", "gYear"), True),
        (("-0044-03-15", "date"), "<", ("0012", "gYear"), True),
        (("1977", "integer"), "=", ("1977", "gYear"), False),
        (("12000-01-01", "date"), "<", ("1977", "gYear"), False),
        (("12000-01-01", "date"), ">", ("1977-05-01", "date"), True),
        (("-4567000000-01-01T00:00:00Z", "dateTime"), "<", ("-4000000000", "gYear"), True),
        (("2024-05-01T10:00:00+05:30", "dateTime"), "<", ("2024-05-01T07:00:00Z", "dateTime"), True),
        (("2024-05-01T00:00:00Z", "dateTime"), "<", ("2024-05-01T07:00:00Z", "dateTime"), True),
        (("2024-05-01T07:00:00.5Z", "dateTime"), "=", ("2024-05-01T09:00:00.500+02:00", "dateTime"), True),
        (("2024-05-01T24:00:00Z", "dateTime"), "=", ("2024-05-02", "date"), True),
        (("2024-05-01T00:30:00+02:00", "dateTime"), "=", ("2024-04-30", "date"), True),
        (("2024-05-01T07:00:00", "dateTime"), "=", ("2024-05-01T09:00:00+02:00", "dateTime"), True),
        (("1801/1900", "edtf"), "<", ("1850", "gYear"), True),
        (("1850", "gYear"), "=", ("1801/1900", "edtf"), True),
        (("2024-13-01", "date"), ">", ("1977", "gYear"), False),
    ],
)
def test_dates_compare_as_instants_and_where_the_less_precise_is_certain(
    date: tuple[str, str], operator: Operator, given: tuple[str, str], expected: bool
) -> None:
    value, wanted = (Literal(text, EDTF) if kind == "edtf" else typed(text, kind) for text, kind in (date, given))
    assert compares(value, operator, wanted) is expected


@pytest.mark.parametrize(
    ("operator", "given", "expected"),
    [
        ("=", "1977-05-01", True),
        ("<=", "1977-05-01", True),
        ("!=", "1977-01-01", True),
        ("<", "1977-01-01", False),
        (">", "1977-12-31", False),
        ("=", "1978-05-01", False),
    ],
)
def test_a_year_possibly_meets_what_some_day_of_it_does(operator: Operator, given: str, expected: bool) -> None:
    assert compares(typed("1977", "gYear"), operator, typed(given, "date"), possibly=True) is expected


def test_what_cannot_mean_anything_is_refused_when_it_is_made() -> None:
    with pytest.raises(InvalidRequest, match="do not mix"):
        Union((PEOPLE, Values(FILMS, path("length"))))
    with pytest.raises(InvalidRequest, match="the set holds values"):
        Reached(Values(FILMS, path("length")), path("cast"))
    with pytest.raises(InvalidRequest, match="at least 1; it is 0"):
        Best(FILMS, NumberOf(path("cast")), 0)
    with pytest.raises(InvalidRequest, match="no sum and no mean"):
        Aggregated(FILMS, ValueOf(path("released"), "date"), "sum")
    with pytest.raises(InvalidRequest, match="two sets"):
        SharedBy((PEOPLE,))
    with pytest.raises(InvalidRequest, match="1977-x is not a date"):
        compares(TRUE_YEAR, "<", typed("1977-x", "date"))
    with pytest.raises(InvalidRequest, match="is a number"):
        compares(TRUE_YEAR, "~", typed("19", "integer"))
