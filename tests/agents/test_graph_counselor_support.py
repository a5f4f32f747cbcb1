"""What supports an answer, and how a scratchpad is shortened."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from counselors import PlayedGraph, gives
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
from kg_agents.graph_counselor.support import MAX_SUPPORT, supporting
from kg_agents.graph_values import Labels
from kg_agents.knowledge import KnowledgeGraph

LABELS = Labels({"Q1": "Goethe", "Q2": "Lili Schönemann", "Q3": "Offenbach am Main", "Q4": "Faust", "Q5": "Hesse"})
PARTNER, BORN = ("Q1", "P451", "Q2"), ("Q2", "P19", "Q3")
WORK, STATE = ("Q1", "P800", "Q4"), ("Q3", "P131", "Q5")


def test_the_links_between_what_the_answer_and_what_the_question_name_support_an_answer() -> None:
    read = [(WORK, PARTNER), (BORN,), (STATE,)]
    assert supporting("Where was Goethe's partner born?", "in Offenbach am Main", read, LABELS) == (PARTNER, BORN)


def test_what_states_the_answer_itself_supports_it_too() -> None:
    name = ("Q3", "P1705", '"Offenbach am Main"')
    assert supporting("Goethe?", "Offenbach am Main", [(PARTNER,), (BORN, name)], LABELS) == (PARTNER, BORN, name)


def test_without_a_link_to_the_question_what_is_said_of_the_answer_supports_it() -> None:
    assert supporting("Where?", "Offenbach am Main", [(WORK, PARTNER), (BORN, STATE)], LABELS) == (BORN, STATE)


def test_names_count_as_whole_words_in_any_case() -> None:
    labels = Labels({"Q1": "ear", "Q2": "Heart", "Q3": "a"})
    read = [(("Q1", "P1", "Q4"), ("Q2", "P1", "Q4"), ("Q3", "P1", "Q4"))]
    assert supporting("?", "HEART!", read, labels) == (("Q2", "P1", "Q4"),)


def test_a_number_is_supported_by_what_the_step_that_gave_it_read() -> None:
    count = ("Count[…]", "gives", "48")
    assert supporting("How many?", "48", [(count, PARTNER), (WORK,)], LABELS) == (count, PARTNER)


def test_an_answer_that_names_nothing_is_supported_by_the_last_step_that_read_anything() -> None:
    assert supporting("?", "49", [(WORK,), (PARTNER, BORN, PARTNER), ()], LABELS) == (PARTNER, BORN)
    assert supporting("?", "49", [(), ()], LABELS) == ()


def test_support_is_bounded() -> None:
    read = [tuple(("Q1", "P1", f"Q{number}") for number in range(2, 1_000))]
    assert len(supporting("?", "Goethe", read, LABELS)) == MAX_SUPPORT


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
    graph = KnowledgeGraph(PlayedGraph({"Degree[Q1490, P36]": answer}))
    assert await perform(graph, Query(("Degree[Q1490, P36]",))) == Observation(
        "five lines",
        (
            ("Q17", "P36", "Q1490"),
            ("Q1490", "P1082", '"13960236"'),
            ("Degree[Q1490, P36]", "gives", "7"),
            ("the expression", "gives", "48"),
            ("Q17", "P37", "Q5"),
        ),
        Labels({"Q17": "Japan"}, {"P36": "capital"}),
    )


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
