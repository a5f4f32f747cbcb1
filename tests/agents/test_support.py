"""What supports an answer, and how a scratchpad is shortened."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counselors import PlayedGraph, gives
from kg_agents.answers import Answer
from kg_agents.graph_counselor.actions import Query
from kg_agents.graph_counselor.observations import Observation, perform
from kg_agents.graph_counselor.scratchpad import (
    LAST_OBSERVATION,
    OLDER_OBSERVATION,
    Step,
    shortened,
    shortenings,
    written,
)
from kg_agents.graph_values import Labels
from kg_agents.grounding import BY_MODEL, MAX_FACTS
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.support import Read, Worked, is_worked_out, sources

LABELS = Labels({"Q1": "Goethe", "Q2": "Lili Schönemann", "Q3": "Offenbach am Main", "Q4": "Faust", "Q5": "Hesse"})
PARTNER, BORN = ("Q1", "P451", "Q2"), ("Q2", "P19", "Q3")
WORK, STATE = ("Q1", "P800", "Q4"), ("Q3", "P131", "Q5")


def source(question: str, text: str, *steps: Read, confirmed: bool = False) -> Answer:
    """Return where one answer comes from."""
    (answer,) = sources([text], question, steps, LABELS, confirmed=confirmed)
    return answer


def test_the_chain_from_what_the_question_names_to_the_answer_yields_it_and_nothing_else() -> None:
    read = [Read((WORK, PARTNER)), Read((BORN,)), Read((STATE,))]
    assert source("Where was Goethe's partner born?", "Offenbach am Main", *read) == Answer(
        "Offenbach am Main", "graph", (PARTNER, BORN)
    )
    assert source("Where was Goethe's partner born?", "in Offenbach am Main", *read).facts == (PARTNER, BORN)


def test_without_a_link_to_the_question_what_is_said_of_the_answer_yields_it() -> None:
    assert source("Where?", "Offenbach am Main", Read((WORK, PARTNER)), Read((BORN, STATE))).facts == (BORN, STATE)


@pytest.mark.parametrize("text", ["Hesse am Main", "Offenbach", "not Hesse", "Faustus", "Kassel"])
def test_a_name_that_only_resembles_what_was_read_is_the_models_own(text: str) -> None:
    assert source("Where?", text, Read((WORK, PARTNER, BORN, STATE))) == Answer(text, "model")


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
    assert source("What about Goethe?", text, Read((fact,))) == Answer(text, "graph", (fact,))


def test_what_an_expression_came_to_is_worked_out_from_what_it_read() -> None:
    steps = Read((PARTNER,), (Worked("Count[…]", "48", (PARTNER,)),)), Read((WORK,))
    assert source("How many?", "48", *steps) == Answer("48", "computed", (PARTNER,), ("Count[…] = 48",))
    best = Read((), (Worked("Top[…]", "Q3", (PARTNER, BORN, STATE)),))
    assert source("Goethe?", "Offenbach am Main", best) == Answer(
        "Offenbach am Main", "computed", (PARTNER, BORN), ("Top[…] = Offenbach am Main",)
    )


def test_the_value_that_a_condition_compares_is_behind_what_it_keeps() -> None:
    born = ("Q2", "P569", "1758-06-23")
    kept = Read((), (Worked("Where[…]", "Q2", (PARTNER, born, BORN)),))
    assert source("Goethe?", "Lili Schönemann", kept).facts == (PARTNER, born)


def test_a_number_that_nothing_gave_is_worked_out_from_the_last_facts_where_a_judge_confirms_it() -> None:
    steps = Read((WORK,)), Read((PARTNER, BORN)), Read()
    assert source("?", "49", *steps, confirmed=True) == Answer("49", "computed", (PARTNER, BORN), (f"49: {BY_MODEL}",))
    assert source("?", "49", *steps) == Answer("49", "model")
    assert source("?", "yes", Read(), confirmed=True) == Answer("yes", "model")


def test_facts_of_an_answer_are_bounded() -> None:
    read = tuple(("Q1", "P1", f"Q{number}") for number in range(2, 1_000))
    assert len(source("?", "Goethe", Read(read)).facts) == MAX_FACTS


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
    assert is_worked_out(expression) == worked_out


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
    assert await perform(graph, Query(("Neighbor[Q1490]",))) == Observation(
        "five lines",
        Read(
            (("Q17", "P36", "Q1490"), ("Q1490", "P1082", '"13960236"'), ("Q17", "P37", "Q5")),
            (
                Worked("Degree[Q1490, P36]", "7"),
                Worked("Neighbor[Q1490]", "48", (("Q17", "P36", "Q1490"), ("Q17", "P37", "Q5"))),
            ),
        ),
        Labels({"Q17": "Japan"}, {"P36": "capital"}),
        ("Q17", "13960236", "7", "48"),
    )


async def test_what_the_graph_denies_is_a_no_that_is_worked_out() -> None:
    expression = "Where[Q1, P19 = Q5]"
    denied = replace(gives("0 nodes."), data={**gives("0 nodes.").data, "knowledge": "denied"})
    found = await perform(KnowledgeGraph(PlayedGraph({expression: denied})), Query((expression,)))
    unknown = await perform(KnowledgeGraph(PlayedGraph({expression: gives("0 nodes.")})), Query((expression,)))
    assert source("Was Goethe born in Hesse?", "false", found.read) == Answer(
        "false", "computed", (), (f"{expression} = false",)
    )
    assert source("Was Goethe born in Hesse?", "false", unknown.read) == Answer("false", "model")


def fitted(whole: Sequence[Step], fits: Callable[[Sequence[Step]], bool]) -> Sequence[Step] | None:
    """Return the first of the shortenings that fits."""
    return next((shorter for shorter in shortenings(whole) if fits(shorter)), None)


def steps(*lengths: int) -> list[Step]:
    return [
        Step(number, "p" * 500, "t" * 500, "Degree[x]", "o" * length) for number, length in enumerate(lengths, start=1)
    ]


def lengths(shorter: Sequence[Step] | None) -> list[int]:
    assert shorter is not None
    return [(step.observation or "").count("o") for step in shorter]


def size_within(most: int) -> Sequence[Step] | None:
    return fitted(steps(2_000, 2_000, 4_000), lambda shorter: len(written(shorter)) <= most)


def test_steps_that_fit_stay_as_they_are() -> None:
    whole = steps(2_000, 2_000)
    assert fitted(whole, lambda _: True) is whole


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


def test_a_text_is_not_shortened_where_that_would_save_nothing() -> None:
    assert shortened("o" * 350, 300) == "o" * 350


def test_older_plans_and_thoughts_are_shortened_when_nothing_else_helps() -> None:
    shorter = fitted(steps(2_000, 2_000), lambda each: len(written(each)) <= 2_500)
    assert shorter is not None
    assert shorter[0].thought == f"{'t' * 120} [shortened to save room: 120 of 500 characters are here]"
    assert shorter[1].thought == "t" * 500
    assert fitted(steps(2_000, 2_000), lambda _: False) is None


def test_a_step_without_an_observation_yet_is_left_whole() -> None:
    begun = [*steps(5_000), Step(2, "p" * 500, "t" * 500)]
    shorter = fitted(begun, lambda each: len(written(each)) <= 3_000)
    assert shorter is not None
    assert shorter[1] == begun[1]
    assert shorter[0].observation == shortened("o" * 5_000, LAST_OBSERVATION[2])
    assert fitted([Step(1)], lambda _: False) is None


@given(st.lists(st.integers(0, 6_000), max_size=6), st.integers(0, 20_000))
def test_whatever_is_shortened_says_how_much_there_was(sizes: list[int], most: int) -> None:
    whole = steps(*sizes)
    shorter = fitted(whole, lambda each: len(written(each)) <= most)
    for before, after in zip(whole, shorter or whole, strict=True):
        cut = before.observation != after.observation
        assert cut == (f"of {len(before.observation or ''):,} characters are here]" in (after.observation or ""))
        assert replace(after, observation=None, plan=None, thought=None) == Step(before.number, action=before.action)
