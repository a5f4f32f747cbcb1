"""What supports an answer, and how a scratchpad is shortened."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_agents.evidence.answers import BY_JUDGE, BY_MODEL, GivenAnswer
from kg_agents.evidence.ledger import MAX_FACTS, Cited, Ledger
from kg_agents.evidence.values import ComputedResult, IdLabels, NameMatch, Shown
from kg_agents.papers.graph_counselor.manners import perform
from kg_agents.papers.graph_counselor.replies import Query
from kg_agents.papers.graph_counselor.run import (
    OLDER_OBSERVATION,
    AttemptStep,
    shortened,
    shortenings,
    written,
)
from kg_agents.tools.client import ToolCall
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_agents.tools.readings import is_computed, shown_by
from oda_runs import PlayedGraph, gives

LABELS = IdLabels({"Q1": "Goethe", "Q2": "Lili Schönemann", "Q3": "Offenbach am Main", "Q4": "Faust", "Q5": "Hesse"})
PARTNER, BORN = ("Q1", "P451", "Q2"), ("Q2", "P19", "Q3")
WORK, STATE = ("Q1", "P800", "Q4"), ("Q3", "P131", "Q5")


def ledger_of(*steps: Shown) -> Ledger:
    ledger = Ledger()
    ledger.learn(LABELS)
    for step in steps:
        ledger.add(step)
    return ledger


def source(question: str, text: str, *steps: Shown) -> GivenAnswer:
    """Return where one answer that cites nothing comes from."""
    (answer,) = ledger_of(*steps).as_shown([text], question)
    return replace(answer, entities=())


async def nobody(texts: Sequence[str]) -> Sequence[NameMatch]:
    """Know no name."""
    del texts
    return ()


async def concluded(text: str, numbers: Sequence[int], *steps: Shown, confirmed: bool | None = None) -> GivenAnswer:
    """Return where an answer that cites steps comes from."""
    given = [Cited(text, tuple(numbers))]
    (answer,) = await ledger_of(*steps).answers(given, "?", (), nobody, confirmed=confirmed)
    return answer


def test_the_chain_from_what_the_question_names_to_the_answer_yields_it_and_nothing_else() -> None:
    read = [Shown((WORK, PARTNER)), Shown((BORN,)), Shown((STATE,))]
    assert source("Where was Goethe's partner born?", "Offenbach am Main", *read) == GivenAnswer(
        "Offenbach am Main", "graph", (PARTNER, BORN)
    )
    assert source("Where was Goethe's partner born?", "in Offenbach am Main", *read).facts == (PARTNER, BORN)


def test_without_a_link_to_the_question_what_is_said_of_the_answer_yields_it() -> None:
    assert source("Where?", "Offenbach am Main", Shown((WORK, PARTNER)), Shown((BORN, STATE))).facts == (BORN, STATE)


@pytest.mark.parametrize("text", ["Hesse am Main", "Offenbach", "not Hesse", "Faustus", "Kassel"])
def test_a_name_that_only_resembles_what_was_read_is_the_models_own(text: str) -> None:
    assert source("Where?", text, Shown((WORK, PARTNER, BORN, STATE))) == GivenAnswer(text, "model")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('"1997-04-05"^^xsd:date', "1997-04-05"),
        ('"1997-04-05"^^xsd:date', "1997"),
        ('"126161"^^xsd:integer', "126,161"),
        ('"2544"', "2,544 m"),
        ('"Offenbach am Main"@de', "offenbach am main"),
    ],
)
def test_a_value_may_be_written_in_other_ways(value: str, text: str) -> None:
    fact = ("Q1", "P1", value)
    assert source("What about Goethe?", text, Shown((fact,))) == GivenAnswer(text, "graph", (fact,))


def test_what_an_expression_came_to_is_computed_from_what_it_read() -> None:
    steps = Shown((PARTNER,), (ComputedResult("Count[…]", "48", (PARTNER,)),)), Shown((WORK,))
    assert source("How many?", "48", *steps) == GivenAnswer("48", "computed", (PARTNER,), ("Count[…] = 48",))
    best = Shown((), (ComputedResult("Top[…]", "Q3", (PARTNER, BORN, STATE)),))
    assert source("Goethe?", "Offenbach am Main", best) == GivenAnswer(
        "Offenbach am Main", "computed", (PARTNER, BORN), ("Top[…] = Offenbach am Main",)
    )


def test_the_value_that_a_condition_compares_is_behind_what_it_keeps() -> None:
    born = ("Q2", "P569", "1758-06-23")
    kept = Shown((), (ComputedResult("Where[…]", "Q2", (PARTNER, born, BORN)),))
    assert source("Goethe?", "Lili Schönemann", kept).facts == (PARTNER, born)


@pytest.mark.parametrize("name", ["Lili", '"Lili"', '"Bride, the"', "Q2"])
def test_all_that_an_expression_names_is_behind_its_result_whatever_the_question_calls_it(name: str) -> None:
    seen = ("Q2", "P19", "Q4")
    met = ComputedResult(f"Intersect[Neighbor[Goethe, work], Neighbor[{name}, seen]]", "Q4", (WORK, seen))
    shown = Shown((), (met,), named={"Goethe": "Q1", "Lili": "Q2", "Bride, the": "Q2"})
    assert source("What of Goethe did she see?", "Faust", shown).facts == (WORK, seen)


async def test_what_nothing_states_is_concluded_from_what_it_cites_and_with_a_judge_only_on_its_yes() -> None:
    steps = Shown((WORK,)), Shown((PARTNER, BORN)), Shown(asked="Neighbor[Q1, P40]")
    for confirmed in (None, True):
        by = BY_JUDGE if confirmed else BY_MODEL
        found = await concluded("49", [2], *steps, confirmed=confirmed)
        assert found == GivenAnswer("49", "computed", (PARTNER, BORN), (f"49: {by}",))
        empty = await concluded("no", [3], *steps, confirmed=confirmed)
        assert empty == GivenAnswer("no", "computed", (), ("Neighbor[Q1, P40]: nothing found", f"no: {by}"))
        assert await concluded("49", [], *steps, confirmed=confirmed) == GivenAnswer("49", "model")
    assert await concluded("49", [2], *steps, confirmed=False) == GivenAnswer("49", "model")


def test_facts_of_an_answer_are_bounded() -> None:
    read = tuple(("Q1", "P1", f"Q{number}") for number in range(2, 1_000))
    assert len(source("?", "Goethe", Shown(read)).facts) == MAX_FACTS


@pytest.mark.parametrize(
    ("expression", "worked_out"),
    [
        ("Neighbor[Retrieve[Japan], capital]", False),
        ("Feature['Count[x]', name]", False),
        ("Count[Neighbor[Q1, P1]]", True),
        ("Neighbor[Where[Type[city], population, >, 5], mayor]", True),
    ],
)
def test_what_does_more_than_look_up_works_out(expression: str, worked_out: bool) -> None:
    assert is_computed(expression) == worked_out


async def test_an_expression_is_read_into_statements_in_their_true_direction() -> None:
    answer = gives(
        "five lines",
        ["1", "Q1490", "-P36", "Q17", "node"],
        ["1", "Q1490", "P1082", "13960236", "xsd:integer"],
        ["1", "Q1490", "P36", "7", "number"],
        ["1", "", "", "48", "number"],
        ["1", "Q1", "P36", "20", "at least"],
        ["1", "Q2", "P36", "This graph has no entity 'Q2'.", "error"],
        ["1", "Q3", "P36", "", "none"],
        ["1", "", "", "Q17", "node"],
        ["odd"],
        evidence=[["Q17", "P36", "Q1490"], ["Q17", "P37", "Q5"], ["odd"]],
        labels={"Q17": "Japan"},
    )
    graph = KnowledgeGraph(PlayedGraph({"Neighbor[Q1490]": answer}))
    shown = await perform(graph, Query(("Neighbor[Q1490]",)))
    evidence = (("Q17", "P36", "Q1490"), ("Q17", "P37", "Q5"))
    assert shown.facts == (evidence[0], ("Q1490", "P1082", '"13960236"'), evidence[1])
    assert shown.computed == (
        ComputedResult("Degree[Q1490, P36]", "7"),
        ComputedResult("Neighbor[Q1490]", "48", evidence),
    )
    assert (shown.text, shown.labels.nodes, shown.listed) == (
        "five lines",
        {"Q17": "Japan"},
        ("Q17", "13960236", "7", "48"),
    )


@pytest.mark.parametrize("exact", [True, False])
def test_a_count_that_is_a_lower_bound_is_no_evidence(exact: bool) -> None:
    data: dict[str, object] = {"status": "ok", "neighbors": 41, "total": 41, "exact": exact, "outgoing": {"P36": 41}}
    told = [["out", "P36", "41" if exact else "41+", "Q1490"]]
    named: dict[str, object] = {"candidates": [["Q17"]], "card": told}
    for tool, found in (("Degree", data), ("GetNeighbor", data), ("Retrieve", named)):
        arguments = {"entity": "Q17", "relation": "P36"} if tool != "Retrieve" else {"text": "Japan"}
        shown = shown_by(ToolCall(tool, arguments, "", {"status": "ok", **found}, failed=False))
        assert any(each.result == "41" for each in (*shown.computed, *shown.counts)) == exact


async def test_what_the_graph_denies_is_a_no_that_is_computed() -> None:
    expression = "Where[Q1, P19 = Q5]"
    denied = replace(gives("0 nodes."), data={**gives("0 nodes.").data, "knowledge": "denied"})
    found = await perform(KnowledgeGraph(PlayedGraph({expression: denied})), Query((expression,)))
    unknown = await perform(KnowledgeGraph(PlayedGraph({expression: gives("0 nodes.")})), Query((expression,)))
    for no in ("false", "No"):
        answer = await concluded(no, [1], found)
        assert answer == GivenAnswer(no, "computed", (), (f"{expression}: denied by the graph",))
        assert (await concluded(no, [1], unknown)).computed[-1] == f"{no}: {BY_MODEL}"


def fitted(whole: Sequence[AttemptStep], fits: Callable[[Sequence[AttemptStep]], bool]) -> Sequence[AttemptStep] | None:
    """Return the first of the shortenings that fits."""
    return next((shorter for shorter in shortenings(whole) if fits(shorter)), None)


def steps(*lengths: int) -> list[AttemptStep]:
    return [
        AttemptStep(number, "p" * 500, "t" * 500, "Degree[x]", "o" * length)
        for number, length in enumerate(lengths, start=1)
    ]


def lengths(shorter: Sequence[AttemptStep] | None) -> list[int]:
    assert shorter is not None
    return [(step.observation or "").count("o") for step in shorter]


def size_within(most: int) -> Sequence[AttemptStep] | None:
    return fitted(steps(2_000, 2_000, 4_000), lambda shorter: len(written(shorter)) <= most)


def test_the_oldest_observation_is_shortened_first_and_the_newest_last() -> None:
    short = shortened("o" * 2_000, OLDER_OBSERVATION).count("o")
    sizes = [size_within(most) for most in (11_500, 10_000, 8_000, 7_000, 5_000, 4_500)]
    assert [[length > 1_500 for length in lengths(each)] for each in sizes] == [
        [True, True, True],
        [False, True, True],
        [False, False, True],
        [False, False, True],
        [False, False, False],
        [False, False, False],
    ]
    assert lengths(sizes[2])[0] == short
    assert [(step.plan or "").count("p") for step in sizes[4] or ()] == [500, 500, 500]


def test_older_plans_and_thoughts_are_shortened_when_nothing_else_helps() -> None:
    shorter = fitted(steps(2_000, 2_000), lambda each: len(written(each)) <= 2_500)
    assert shorter is not None
    assert shorter[0].thought == f"{'t' * 120} [shortened to save room: 120 of 500 characters are here]"
    assert shorter[1].thought == "t" * 500
    assert fitted(steps(2_000, 2_000), lambda _: False) is None


@given(st.lists(st.integers(0, 6_000), max_size=6), st.integers(0, 20_000))
def test_whatever_is_shortened_says_how_much_there_was(sizes: list[int], most: int) -> None:
    whole = steps(*sizes)
    shorter = fitted(whole, lambda each: len(written(each)) <= most)
    for before, after in zip(whole, shorter or whole, strict=True):
        cut = before.observation != after.observation
        assert cut == (f"of {len(before.observation or ''):,} characters are here]" in (after.observation or ""))
        assert replace(after, observation=None, plan=None, thought=None) == AttemptStep(
            before.number, action=before.action
        )
