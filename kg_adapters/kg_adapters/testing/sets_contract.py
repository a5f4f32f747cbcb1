# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""What the contract says about sets; skipped where a graph does not work them out by itself."""

from dataclasses import replace
from math import isclose
from typing import Final

import pytest

from kg_adapters.algebra import (
    ANY,
    Best,
    Compares,
    Has,
    Hop,
    Instances,
    Intersect,
    Kept,
    Linked,
    Meets,
    Members,
    Minus,
    NumberOf,
    Numbers,
    Path,
    Reached,
    Step,
    Union,
    ValueOf,
    Values,
)
from kg_adapters.labels import Vocabulary
from kg_adapters.protocol import SupportsSets
from kg_adapters.set_requests import (
    Aggregated,
    Computed,
    Ends,
    Grouped,
    Listed,
    SetQuestion,
    SetRequest,
    SharedBy,
    Tabled,
)
from kg_adapters.terms import Attribute, Fact, Literal
from kg_adapters.testing.graphs import edge, iri, typed
from kg_adapters.testing.opening import GraphOpening
from kg_adapters.testing.set_reference import SetReference


def _value(head: str, relation: str, text: str, datatype: str) -> Fact:
    return Attribute(iri(head), iri(relation), typed(text, datatype))


DOLLAR: Final = iri("dollar")
FACTS: Final[tuple[Fact, ...]] = (
    *(edge(text) for text in ("heat type film", "ran type film", "noir subClassOf film", "m type noir")),
    *(edge(text) for text in ("heat cast ann", "heat cast bob", "ran cast bob", "m cast cid", "ann spouse bob")),
    *(edge(text) for text in ("ann born rome", "cid born rome", "ann died rome", "rome in italy", "italy in europe")),
    *(_value("heat", "length", "170", "integer"), _value("ran", "length", "162.5", "decimal")),
    *(_value("m", "length", "170", "integer"), _value("m", "length", "99", "integer")),
    *(_value("heat", "released", "1995-12-15", "date"), _value("ran", "released", "1985", "gYear")),
    *(_value("m", "released", "1995-12-14T20:15:00", "dateTime"), _value("m", "note", "Long Night", "string")),
    *(Attribute(iri(film), iri("budget"), Literal(text, DOLLAR)) for film, text in (("heat", "12"), ("ran", "+9.5"))),
    *(Attribute(iri("m"), iri("budget"), Literal(text, iri(unit))) for text, unit in (("9", "yen"), ("low", "dollar"))),
    *(_value("ann", "label", "Ann", "string"), _value("ann", "note", "long", "string")),
)


def _path(*steps: str, repeated: bool = False) -> Path:
    """Return a path over relations, `-` before those that are walked backwards."""
    walked = (Step(iri(step.lstrip("-")), "in" if step.startswith("-") else "out") for step in steps)
    return Path(tuple(Hop((step,), repeated=repeated) for step in walked))


FILMS: Final = Instances(iri("film"))
PEOPLE: Final = Reached(FILMS, _path("cast"))
LENGTH: Final = ValueOf(_path("length"))
RELEASED: Final = ValueOf(_path("released"), "date")
BUDGET: Final = ValueOf(_path("budget"), "number", DOLLAR)
BOTH_WAYS: Final = Path((Hop((Step(iri("spouse")), Step(iri("spouse"), "in"))),))
QUESTIONS: Final[tuple[SetQuestion, ...]] = (
    Listed(Union((FILMS, PEOPLE))),
    Listed(Instances(iri("film"), subclasses=False)),
    Listed(Intersect((Reached(Members((iri("ann"),)), _path("-cast")), Reached(PEOPLE, _path("-cast"))))),
    Listed(Minus((PEOPLE, Reached(Members((iri("heat"),)), _path("cast"))))),
    Listed(Reached(Members((iri("bob"),)), BOTH_WAYS)),
    Listed(Reached(Members((iri("bob"), iri("nowhere"))), Path((ANY,)))),
    Listed(Reached(PEOPLE, Path((*_path("born").hops, *_path("in", repeated=True).hops)))),
    Listed(Values(FILMS, _path("length"))),
    Listed(Kept(PEOPLE, Has(_path("born")))),
    Listed(Kept(FILMS, Linked(_path("cast", "born"), Members((iri("rome"),))))),
    Listed(Kept(PEOPLE, Meets(_path("born"), _path("died")))),
    Listed(Kept(FILMS, Compares(_path("length"), ">=", typed("162.5", "decimal")))),
    Listed(Kept(FILMS, Compares(_path("released"), "<=", typed("1995", "gYear")))),
    Listed(Kept(FILMS, Compares(_path("released"), "<", typed("1995-12-15", "date")))),
    Listed(Kept(FILMS, Compares(_path("released"), ">", typed("1995-12-14T20:00:00", "dateTime")))),
    Listed(Kept(Union((FILMS, PEOPLE)), Compares(_path("note"), "~", typed("LONG", "string")))),
    Listed(Kept(FILMS, Numbers(_path("cast"), "<", 2))),
    Listed(Kept(PEOPLE, Numbers(_path("born"), "=", 0))),
    Listed(Best(FILMS, LENGTH)),
    Listed(Best(Union((FILMS, PEOPLE)), RELEASED, 2, lowest=True)),
    Listed(Best(PEOPLE, NumberOf(_path("-cast")), 1)),
    Aggregated(FILMS, LENGTH, "sum"),
    Aggregated(Union((FILMS, PEOPLE)), LENGTH, "mean"),
    Aggregated(FILMS, RELEASED, "max"),
    Aggregated(FILMS, BUDGET, "sum"),
    Aggregated(FILMS, BUDGET, "min"),
    Aggregated(FILMS, ValueOf(BUDGET.path), "max"),
    Listed(Best(FILMS, BUDGET)),
    Listed(Kept(FILMS, Compares(BUDGET.path, "<", Literal("10", DOLLAR)))),
    Listed(Kept(FILMS, Compares(BUDGET.path, "!=", Literal("12.0", DOLLAR)))),
    Listed(Kept(FILMS, Compares(BUDGET.path, "=", Literal("LOW", DOLLAR)))),
    Aggregated(FILMS, NumberOf(_path("cast")), "min"),
    Aggregated(PEOPLE, LENGTH, "max"),
    Grouped(PEOPLE, _path("born")),
    Grouped(FILMS, _path("released")),
    Tabled(FILMS, (Ends(_path("cast")), NumberOf(_path("cast")), Ends(_path("length")))),
    Tabled(FILMS, (NumberOf(Path((ANY,))),)),
    Listed(Best(PEOPLE, NumberOf(Path((ANY,))))),
    SharedBy((Members((iri("heat"),)), Members((iri("ran"), iri("m"))))),
    SharedBy((Members((iri("rome"),)), Members((iri("cid"),))), ((iri("born"), iri("in")),)),
    SharedBy((Members((iri("ann"),)), Members((iri("bob"),))), ((iri("cast"), iri("spouse")),)),
)


class SetsContract(GraphOpening):
    """Sets: what is in them, how many, in which order, and why."""

    async def test_questions_about_sets_have_the_answers_of_the_plain_reference(self) -> None:
        async with self.opened(map(_statement, FACTS)) as graph:
            if not isinstance(graph, SupportsSets):
                pytest.skip("this adapter does not work out sets")
            for question in QUESTIONS:
                request = SetRequest(question, limit=3, cell_limit=1)
                found = await graph.compute(request)
                wanted = SetReference(FACTS, Vocabulary()).compute(request)
                assert _bare(found, wanted.value) == wanted, question
                assert {fact for witness in found.witnesses for fact in witness.facts} <= set(FACTS), question

    async def test_no_more_is_listed_than_is_wanted_and_the_first_results_are_shown(self) -> None:
        async with self.opened(map(_statement, FACTS)) as graph:
            if not isinstance(graph, SupportsSets):
                pytest.skip("this adapter does not work out sets")
            found = await graph.compute(SetRequest(Listed(PEOPLE), limit=0, witnesses=2))
        assert (found.count.value, found.members) == (3, ())
        assert [witness.result for witness in found.witnesses] == [iri("ann"), iri("bob")]


def _statement(fact: Fact) -> str:
    tail = f'"{fact.tail}"^^<{fact.tail.datatype}>' if isinstance(fact, Attribute) else f"<{fact.tail}>"
    return f"<{fact.head}> <{fact.relation}> {tail}"


def _bare(found: Computed, value: float | Literal | None) -> Computed:
    """Return an answer without what shows it, its value as wanted where rounding alone differs."""
    is_near = isinstance(found.value, float) and isinstance(value, float) and isclose(found.value, value)
    return replace(found, witnesses=(), value=value if is_near else found.value)
