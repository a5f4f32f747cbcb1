import pytest

from kg_agents.evidence.values import IdLabels, Triple
from kg_agents.llm.dialogue import Unreadable
from kg_agents.papers.oda.replies import (
    Action,
    read_action,
    read_facts,
    read_selection,
)
from kg_agents.replies import read_answers

OFFERED: dict[str, str | None] = {"Q1490": "Tokyo", "Q17": "Japan", "e:x(1)": None}
CANDIDATES: list[Triple] = [("Q1490", "P36", "Q179645"), ("Q1490", "P1376", "Q17"), ("Q1490", "P1", '"a, b"')]
LABELS = IdLabels({"Q1490": "Tokyo", "Q179645": "Shinjuku", "Q17": "Japan"}, {"P36": "capital", "P1376": "capital of"})
THE_CAPITAL = CANDIDATES[0]


def refusal(read: object) -> str:
    """Return why a reply cannot be used."""
    assert isinstance(read, Unreadable)
    return read.reason


def selected(reply: str, most: int = 15) -> object:
    return read_selection(reply, CANDIDATES, LABELS, most)


@pytest.mark.parametrize(
    "reply",
    [
        "Thought: It may be near.\nAction: GetNeighbor\nEntity_id: Q1490",
        "**Thought**: It may be near.\n**Action**: getneighbor\n**Entity_id**: `Q1490`",
        "Thought: It may be near.\n\nAction: Neighbor Exploration\nEntity ID: 'Q1490' (Tokyo)",
        "Thought: It may be near.\nAction: GetNeighbor(entityID: Q1490)",
        "Thought: It may be near.\nAction: GetNeighbor\nEntity_id: Tokyo",
        "Sure!\n\nThought: It may be near.\n- Action: GetNeighbour[Q1490]\nThat is all.",
        "Thought 1: It may be near.\nAction 1: GetNeighbor[q1490]",
        "Thought: It may be near.\nAction: GetNeighbor, to find the answer\nEntity_id: Q1490",
    ],
)
def test_an_action_is_understood_however_it_is_dressed(reply: str) -> None:
    action = read_action(reply, OFFERED, [])
    assert isinstance(action, Action)
    assert (action.name, action.entities, action.thought) == ("GetNeighbor", ("Q1490",), "It may be near.")


@pytest.mark.parametrize(
    ("reply", "entities"),
    [
        ("Action: GetPath\nEntity_id: Q17, Q1490", ("Q17", "Q1490")),
        ("Action: Path Discovery between Japan and Tokyo", ("Q17", "Q1490")),
        ('Action: GetPath("Q1490", "e:x(1)")', ("Q1490", "e:x(1)")),
    ],
)
def test_a_path_is_between_two_in_their_order(reply: str, entities: tuple[str, ...]) -> None:
    assert read_action(reply, OFFERED, []) == Action("GetPath", entities)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Paris Hilton", "dbr:Paris_Hilton"),
        ("dbr:Paris,_Texas", "dbr:Paris,_Texas"),
        ("dbr:Paris.", "dbr:Paris"),
        ("dbr:Paris-Nice", "dbr:Paris-Nice"),
        ("paris", "dbr:Paris"),
    ],
)
def test_a_name_inside_a_longer_one_is_not_meant(written: str, meant: str) -> None:
    offered = {
        "dbr:Paris": "Paris",
        "dbr:Paris_Hilton": "Paris Hilton",
        "dbr:Paris,_Texas": None,
        "dbr:Paris-Nice": None,
    }
    assert read_action(f"Action: GetNeighbor\nEntity_id: {written}", offered, []) == Action("GetNeighbor", (meant,))


def test_a_label_that_two_candidates_share_names_neither() -> None:
    offered: dict[str, str | None] = {"Q90": "Paris", "Q830149": "Paris"}
    assert "it names Q830149, Q90" in refusal(read_action("Action: GetNeighbor\nEntity_id: Paris", offered, []))


@pytest.mark.parametrize("reply", ["Action: Answer", "Thought: Enough, Q1490 it is.\nAction: **answer**\nEntity_id: -"])
def test_the_wish_to_answer_needs_no_entity(reply: str) -> None:
    action = read_action(reply, OFFERED, ["Answer"])
    assert isinstance(action, Action)
    assert (action.name, action.entities) == ("Answer", ())


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "it does not name one action."),
        ("I do not know.", "it does not name one action."),
        ("Action: I cannot Answer yet, so GetNeighbor\nEntity_id: Q1490", "it does not name one action."),
        ("Action: DeleteEverything\nEntity_id: Q1490", "it does not name one action."),
        ("Action: GetNeighbor\nEntity_id: Tokyoites", "and it names none"),
        ("Action: GetNeighbor\nEntity_id: Q99", "GetNeighbor takes one of the candidate entities, and it names none"),
        ("Action: GetNeighbor\nEntity_id: Q1490, Q17", "and it names Q1490, Q17. They are Q1490, Q17, e:x(1)."),
        ("Action: GetPath\nEntity_id: Q1490, Q1490", "two different candidate entities, and it names Q1490"),
        ("Action: GetNeighbor\nEntity_id: Q17", "GetNeighbor[Q17] was taken already. Choose another action."),
    ],
)
def test_what_cannot_be_done_goes_back_with_the_reason(reply: str, reason: str) -> None:
    assert reason in refusal(read_action(reply, OFFERED, ["GetNeighbor[Q17]"]))


def test_a_path_from_one_candidate_is_none() -> None:
    read = read_action("Action: GetPath\nEntity_id: Q1490, Q17", {"Q1490": "Tokyo"}, [])
    assert refusal(read).startswith("GetPath needs two candidate entities and there is only Q1490.")


@pytest.mark.parametrize(
    "written",
    [
        "Q1490,P36,Q179645",
        "q1490, p36, q179645",
        "1. (Q1490, P36, Q179645).",
        "- Tokyo, capital, Shinjuku",
        "(Tokyo (Q1490), capital (P36), Shinjuku (Q179645))",
        "Tokyo (Q1490) | capital (P36) | Shinjuku (Q179645)",
        "`Q1490 (Tokyo)`,P36,`Shinjuku`",
        "| Q1490 | P36 | Q179645 |",
        '["Q1490", "P36", "Q179645"]',
        "Q1490 -> P36 -> Q179645",
    ],
)
def test_a_candidate_is_recognised_however_it_is_written(written: str) -> None:
    reply = f"Thought: That is it.\nTriples:\n{written}\n(Osaka, capital of, Japan)"
    assert selected(reply) == (THE_CAPITAL,)


def test_several_in_one_line_are_all_taken_up_to_the_limit() -> None:
    reply = "Triples: (Tokyo, capital, Shinjuku), (Tokyo, capital of, Japan)"
    assert selected(reply) == tuple(CANDIDATES[:2])
    assert selected(reply, 1) == (THE_CAPITAL,)


def test_a_literal_with_a_comma_is_one_part() -> None:
    assert selected('Q1490,P1,"a, b"') == (CANDIDATES[2],)


@pytest.mark.parametrize("reply", ["Triples:\nNone", "Thought: Nothing helps.", "Triples:", "", "Triples: []"])
def test_to_select_nothing_is_a_selection(reply: str) -> None:
    assert selected(reply) == ()


def test_only_strangers_go_back_with_the_first_of_them() -> None:
    read = selected("Triples:\nQ1,P2,Q3\nQ4,P5,Q6")
    assert refusal(read).startswith("'Q1,P2,Q3' is none of the candidate triples.")


@pytest.mark.parametrize(
    "reply",
    [
        "Answer:\nCanada\nYukon",
        "[Canada, Yukon]",
        "Answer: ['Canada', \"Yukon\"]",
        "1. Canada\n2. **Yukon**\n2. Yukon",
        "Final Answer: [Canada, Yukon]",
        "**The final answers (2):**\nCanada\nYukon",
        # As the paper prints them (tables 5 and 6).
        "Thought: The memory says so.\nAction: Answer\nAnswer [Canada,Yukon]",
        "Thought: The memory says so.\nAnswer\nCanada\nYukon",
        "Thought: The memory says so.\nCanada\nYukon",
    ],
)
def test_answers_are_a_list(reply: str) -> None:
    assert read_answers(reply) == ("Canada", "Yukon")


def test_an_answer_may_look_like_a_heading() -> None:
    assert read_answers("Thought: Films.\nAnswer:\nAction: The Movie") == ("Action: The Movie",)


def test_a_selection_may_stand_in_a_thought() -> None:
    assert selected("Thought: I see a, b, c.\nQ1490,P36,Q179645") == (THE_CAPITAL,)


def test_a_number_that_belongs_to_an_answer_stays() -> None:
    assert read_answers("Answer:\n3. Oktober") == ("3. Oktober",)
    assert read_answers("Answer:\n1. FC Köln\nArsenal") == ("1. FC Köln", "Arsenal")


def test_an_answer_that_is_none_goes_back_and_a_flood_is_cut() -> None:
    assert isinstance(read_answers(" \n "), Unreadable)
    flood = read_answers("\n".join(f"{number} {'x' * 9_000}" for number in range(1_000)))
    assert not isinstance(flood, Unreadable)
    assert (len(flood), max(map(len, flood))) == (500, 2_000)


def test_made_up_facts_are_sentences() -> None:
    reply = "Thought: I know.\nFacts:\n- Tokyo is the capital of Japan.\n\n- Tokyo is large.\n- Tokyo is large."
    assert read_facts(reply, 15) == ("Tokyo is the capital of Japan.", "Tokyo is large.")
    assert read_facts(reply, 1) == ("Tokyo is the capital of Japan.",)
    assert isinstance(read_facts("Facts:\n", 15), Unreadable)


def test_a_candidate_that_is_written_from_its_other_end_is_meant() -> None:
    assert selected("(Shinjuku, capital, Tokyo)") == (THE_CAPITAL,)
    both = [("a", "r", "b"), ("b", "r", "a")]
    assert read_selection("b,r,a", both, IdLabels(), 15) == (("b", "r", "a"),)


def test_an_id_is_not_taken_for_the_label_of_another() -> None:
    candidates = [("e:ada", "e:born", "e:evil"), ("e:ada", "e:born", "e:paris")]
    labels = IdLabels({"e:evil": "e:paris"})
    assert read_selection("e:ada,e:born,e:paris", candidates, labels, 15) == (candidates[1],)


def test_what_may_be_several_candidates_goes_back_with_them() -> None:
    candidates = [("Q1", "P1", "Q2"), ("Q1", "P1", "Q3")]
    labels = IdLabels({"Q1": "Ada", "Q2": "Springfield", "Q3": "Springfield"}, {"P1": "born in"})
    read = read_selection("Ada, born in, Springfield", candidates, labels, 15)
    assert "'Ada, born in, Springfield' may be any of Q1,P1,Q2 or Q1,P1,Q3." in refusal(read)
    assert read_selection("Ada, born in, Springfield\nQ1,P1,Q3", candidates, labels, 15) == (candidates[1],)
