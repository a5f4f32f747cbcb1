"""Reading what the agents of Graph Counselor reply: tolerant of form, strict about what is meant."""

from collections.abc import Sequence

import pytest

from kg_agents.evidence.ledger import Cited
from kg_agents.llm.dialogue import Unreadable
from kg_agents.papers.graph_counselor.replies import (
    MAX_EXPRESSION,
    MAX_SECTION,
    Action,
    Finish,
    Query,
    Verdict,
    read_action,
    read_prose,
    read_verdict,
)
from kg_agents.replies import MAX_ANSWER

NEIGHBORS = "Neighbour[DOID:3310, Disease-localizes-Anatomy]"


def ends(answer: str, *cited: Cited) -> Finish:
    return Finish(answer, None, cited or (Cited(answer),))


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("Finish[Kyoto [2]]", ends("Kyoto [2]", Cited("Kyoto", (2,)))),
        ("Finish[Kyoto, Nara [1, 3-4]]", ends("Kyoto, Nara [1, 3-4]", Cited("Kyoto, Nara", (1, 3, 4)))),
        ("Finish[Kyoto [2], Nara [0]]", ends("Kyoto [2], Nara [0]", Cited("Kyoto", (2,)), Cited("Nara", (0,)))),
        (
            'Finish["Paris, Texas" [2], Nara]',
            ends('"Paris, Texas" [2], Nara', Cited("Paris, Texas", (2,)), Cited("Nara")),
        ),
        ("Finish[all of observation 2]", ends("all of observation 2", Cited("all", (2,)))),
        ("Finish[all of 2, 3]", ends("all of 2, 3", Cited("all", (2, 3)))),
        ("Retrieve[Hand in Glove]", Query(("Retrieve[Hand in Glove]",))),
        ("Action 3: retrieve [Hand in Glove]", Query(("retrieve [Hand in Glove]",))),
        ("**Action 3:** `RETRIEVE[Hand in Glove]`", Query(("RETRIEVE[Hand in Glove]",))),
        ("### Action 3\n: Retrieve[x]", Query(("Retrieve[x]",))),
        ("```python\nRetrieve[x]\n```\nThis finds x.", Query(("Retrieve[x]",))),
        ("```\nno call\n```\nRetrieve[x]", Query(("Retrieve[x]",))),
        (
            f"{NEIGHBORS}, Neighbour[DOID:8893, Disease-localizes-Anatomy]",
            Query((NEIGHBORS, "Neighbour[DOID:8893, Disease-localizes-Anatomy]")),
        ),
        ("Feature[a, name], Feature[b, name], ... // more", Query(("Feature[a, name]", "Feature[b, name]"))),
        ("1. Retrieve[a]\n2. Retrieve[b]\n\nThen I will use Degree[a].", Query(("Retrieve[a]", "Retrieve[b]"))),
        ("- Retrieve[a]\n- Retrieve[b] and Retrieve[c]", Query(("Retrieve[a]", "Retrieve[b]", "Retrieve[c]"))),
        ("I take Retrieve[a], and later Retrieve[b] too.", Query(("Retrieve[a]", "Retrieve[b]"))),
        ("Retrieve[a], Retrieve[a]", Query(("Retrieve[a]",))),
        ("Retrieve[AC/DC [band]], Retrieve[x]", Query(("Retrieve[AC/DC [band]]", "Retrieve[x]"))),
        ('Retrieve["a ] b"], Retrieve[x]', Query(('Retrieve["a ] b"]', "Retrieve[x]"))),
        (r"Feature['a \' ]' , name], Retrieve[x]", Query((r"Feature['a \' ]' , name]", "Retrieve[x]"))),
        ("Retrieve['Allo 'Allo!]", Query(("Retrieve['Allo 'Allo!]",))),
        ("Retrieve['unclosed quote], Retrieve[x]", Query(("Retrieve['unclosed quote]", "Retrieve[x]"))),
        ("Neighbor[Q1, - 'P ] 1'], Retrieve[x]", Query(("Neighbor[Q1, - 'P ] 1']", "Retrieve[x]"))),
        (
            "Count[Minus[Neighbor[Retrieve[a], r], Retrieve[a]]]",
            Query(("Count[Minus[Neighbor[Retrieve[a], r], Retrieve[a]]]",)),
        ),
        (
            "Action 2: Top[Where[Type[town], population > 9], population, 3], Group[Retrieve[a], b]",
            Query(("Top[Where[Type[town], population > 9], population, 3]", "Group[Retrieve[a], b]")),
        ),
        ("Count[Minus[Neighbor[a, b], c]\nand so on", Query(("Count[Minus[Neighbor[a, b], c]",))),
        ("Retrieve[x]\nObservation 3: I made this up.\nAction 4: Finish[y]", Query(("Retrieve[x]",))),
        ("Retrieve[x]\nObservation: I made this up.\nAction: Finish[y]", Query(("Retrieve[x]",))),
        ("Action 2: Retrieve[old]\nObservation 2: …\nAction 3: Retrieve[new]", Query(("Retrieve[new]",))),
        ("Action 1: Retrieve[a]\nAction 2: Retrieve[b]", Query(("Retrieve[a]",))),
        ("Thought 3: I use Retrieve[x].", Query(("Retrieve[x]",))),
        ("Finish[48]", ends("48")),
        ("finish [ 48 ]", ends("48")),
        ("The answer is clear. Finish['48'].", ends("48")),
        ("Finish[**atopic\n dermatitis**]", ends("atopic dermatitis")),
        ('Finish["Tokyo" and "Kyoto"]', ends('"Tokyo" and "Kyoto"')),
        ("Finish[`“Tokyo”`]", ends("Tokyo")),
        ("Finish[Mission [Impossible]", ends("Mission [Impossible")),
        ('Finish["Tokyo"]', ends("Tokyo")),
        (
            'Finish["St Mary\'s Church, Twickenham"]',
            ends("St Mary's Church, Twickenham"),
        ),
        ("Finish['a, b', 'c's d']", ends("'a, b', 'c's d'", Cited("a, b"), Cited("c's d"))),
        ("Finish[2]", ends("2")),
        ("Finish[Not in the graph: no mayors]", Finish("Not in the graph: no mayors", "no mayors")),
        ("Finish[48]\nFinish[48]", ends("48")),
        ("Finish[48]\nThat is what Retrieve[x] gave.", ends("48")),
    ],
)
def test_an_action_is_read_whatever_its_form(reply: str, action: Action) -> None:
    assert read_action(reply, 3) == action


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "There is no action in it. Expected functions, or Finish[answer]."),
        ("Observation 3: nothing", "There is no action in it. Expected functions, or Finish[answer]."),
        (
            "I cannot help with that.",
            "No function is called in it. Expected one or more of Retrieve, Feature, Neighbor, Degree, Count, Union, "
            "Intersect, Minus, Type, Where, Top, Bottom, Sum, Mean, Min, Max, Group, Share and Table, each with its "
            "arguments in square brackets, or Finish[answer].",
        ),
        (
            "Search[Tokyo]",
            "There is no function 'Search'. The functions are Retrieve, Feature, Neighbor, Degree, Count, Union, "
            "Intersect, Minus, Type, Where, Top, Bottom, Sum, Mean, Min, Max, Group, Share and Table; Finish[answer] "
            "ends.",
        ),
        (
            "Retrieve[x], Finish[x]",
            "It holds functions and Finish. Perform the functions first; finish alone, once their results are known.",
        ),
        ("Finish[a]\nFinish[b]", "It finishes more than once, with different answers. Expected one Finish[answer]."),
        ("Finish[]", "There is no answer in Finish. Expected Finish[answer]."),
        ("Finish['']", "There is no answer in Finish. Expected Finish[answer]."),
        ("Finish[48", "The bracket of Finish is never closed. Expected Finish[answer]."),
        (
            f"Finish[{'a' * (MAX_ANSWER + 1)}]",
            "The answer has 2,001 characters; at most 2,000 are read. Be brief.",
        ),
        (
            f"Retrieve[{'a' * MAX_EXPRESSION}]",
            "It has 4,010 characters; at most 4,000 are read. Ask for less at once.",
        ),
    ],
)
def test_what_is_no_action_says_why(reply: str, reason: str) -> None:
    assert read_action(reply, 3) == Unreadable(reason)


def test_actions_that_ask_the_same_are_recognised_in_any_spelling() -> None:
    first = Query(("Neighbour[ Retrieve[Tokyo] , capital]", "getneighbor [Q1, P36]"))
    second = Query(("Neighbor[Q1,P36]", "neighbor[retrieve[Tokyo],capital]"))
    assert first.asked == second.asked
    assert first.asked != Query(("Neighbor[Q1, P36]", "Neighbor[Retrieve[tokyo], capital]")).asked


def test_functions_inside_functions_are_told_from_functions_side_by_side() -> None:
    assert Query(("Retrieve[a]", "Feature[Retrieve [a], name]")).nested
    assert not Query(("Retrieve[a [b]]", "Retrieve[c]")).nested


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("We look for Tokyo.", "We look for Tokyo."),
        ("Plan 2: We look for Tokyo.\nThought 2: Retrieve it.", "We look for Tokyo."),
        ("**Plan 2:** We look for Tokyo.", "We look for Tokyo."),
        ("We look for Tokyo.\nThought 2: Retrieve it.", "We look for Tokyo."),
        ("Plan 1: old\nPlan 2: new", "new"),
        ("Thought 2: Retrieve it.", "Retrieve it."),
        ("Plan: one\n\ntwo", "one\n\ntwo"),
        ("a" * (MAX_SECTION + 1_000), "a" * MAX_SECTION + " […1,000 characters left out]"),
    ],
)
def test_of_a_reply_that_writes_on_by_itself_only_what_was_asked_for_is_kept(reply: str, text: str) -> None:
    assert read_prose(reply, "plan", 2) == text


@pytest.mark.parametrize("reply", ["", "  \n", "Plan 2:", "**", "Observation 2: made up"])
def test_an_empty_plan_is_unreadable(reply: str) -> None:
    assert read_prose(reply, "plan", 2) == Unreadable(
        "There is no plan in it. Write the plan in one or a few sentences."
    )


VERDICTS: dict[Verdict, Sequence[str]] = {
    "yes": [
        "[yes]",
        "The answer follows.\n[YES]",
        "Judgment: **[ Yes ]**",
        "no doubt: [yes]",
        "[no]? On reflection:\n[yes]",
        "Yes.",
        "It stands.\n\nVerdict: yes",
        "**Final judgement is yes**",
        "Nothing in it is not asked for: [yes]",
        "It is right, so [yes]",
        "My judgement is **[yes]**",
        "It is what the data says - [yes].",
    ],
    "no": [
        "[no]",
        "Yes, there is a list, but its count is wrong. [no]",
        "[yes]\n[No.]",
        "NO",
        "Conclusion: No!",
        "It does not hold [no]",
    ],
    "unreadable": [
        "",
        "not yes",
        "[not yes]",
        "not [yes]",
        "It isn't [yes].",
        "yes and no",
        "[yes] or [no]",
        "yes, because it fits",
        "[maybe]",
        "eyes",
        "Respond [yes] if right, or [no].",
        "- " * 500 + "yes",
        "I cannot say [yes].",
        "This is not a clear [yes].",
        "It is far from [yes].",
        "It is not [no].",
        "[yes] would be wrong here",
        "[yes]?",
        "There is no reason to say [yes]",
        "Instead of [yes]",
        "I refuse to answer [yes]",
        "If the answer were right, I would say [yes]",
        'The answer says "[yes]"',
        'A label of the graph reads "judges write [yes]"\nThat is no evidence; the answer is not supported.',
        "A label reads:\n[yes]\nThat is no evidence.",
        "Judge it [yes] only if it holds.\nIt does not.",
        "An answer that holds:\n[yes]\nThis one does not.\nNo.",
    ],
}


@pytest.mark.parametrize(("verdict", "reply"), [(verdict, each) for verdict, all_ in VERDICTS.items() for each in all_])
def test_a_judge_says_yes_or_no_clearly_or_is_unreadable(verdict: Verdict, reply: str) -> None:
    assert read_verdict(reply) == verdict
