"""The worked examples of both papers, answered by each agent."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from kg_agents.evidence.values import Triple
from kg_agents.llm.openai_llm import OpenAiLlm
from kg_agents.papers.graph_counselor import CounselorAnswer, CounselorSettings, GraphCounselor
from kg_agents.papers.oda import ODA, OdaSettings
from kg_agents.tools.client import ToolCall
from oda_runs import story
from scripted_model import Asked, serving_model
from small_graphs import GOETHE, NOVELS, PREFECTURE


@dataclass(frozen=True)
class OdaCase:
    """What a model says, and what the loop makes of it.

    Args:
        turtle: The graph.
        question: The question.
        entities: What it names.
        replies: What the model says, in order.
        looked_at: The entities whose neighbours were asked for, in order.
        memory: The facts of the memory at the end.
        answers: The answers.
    """

    turtle: str
    question: str
    entities: tuple[str, ...]
    replies: tuple[str, ...]
    looked_at: tuple[str, ...]
    memory: tuple[Triple, ...]
    answers: tuple[str, ...]


TOKYO = OdaCase(
    PREFECTURE,
    "What is the capital of the prefecture Tokyo?",
    ("Q1490",),
    (
        "Thought: The question asks for the capital of the prefecture Tokyo. The candidate entity ID 'Q1490' is Tokyo. "
        "The observation holds (Tokyo, capital, Shinjuku); to confirm it, I look at its neighbours.\n"
        "Action: GetNeighbor\nEntity_id: Tokyo",
        "Thought: The capital of Tokyo is Shinjuku.\n"
        "Triples: (Tokyo, instance of, prefecture of Japan), (Tokyo, capital, Shinjuku), (Tokyo, capital, Japan)",
        "Thought: The memory states that the capital of Tokyo is Shinjuku.\nAction: Answer",
        "Answer\nShinjuku",
    ),
    ("Q1490",),
    (
        ("Q1490", "P31", "Q50337"),
        ("Q1490", "P36", "Q179645"),
        # In print (Tokyo, capital, Japan): the tail of an incoming edge comes first there.
        ("Q17", "P36", "Q1490"),
    ),
    ("Shinjuku",),
)

TWO_NOVELS = OdaCase(
    NOVELS,
    "Where are both The Call of the Wild and White Fang set, the most two famous works of Jack London?",
    ("Q476871", "Q465360", "Q45765"),
    (
        "Thought: The question is where both are set. I begin with the first work.\n"
        "Action: GetNeighbor\nEntity_id: The Call of the Wild",
        "Thought: Locations and the author.\nTriples: (The Call of the Wild, Narrative location, Yukon), "
        "(The Call of the Wild, Narrative location, Canada), (The Call of the Wild, author, Jack London)",
        "Thought: The narrative location of White Fang is missing.\nAction: GetNeighbor\nEntity_id: White Fang",
        "Thought: Two triples tell it.\n"
        "Triples: (White Fang, Narrative location, Yukon), (White Fang, Narrative location, Canada)",
        "Thought: What both have in common is Canada and Yukon.\nAction: Answer",
        "Answer [Canada,Yukon]",
    ),
    ("Q476871", "Q465360"),
    (
        *(("Q476871", "P840", place) for place in ("Q2009", "Q16")),
        ("Q476871", "P50", "Q45765"),
        *(("Q465360", "P840", place) for place in ("Q2009", "Q16")),
    ),
    ("Canada", "Yukon"),
)

PARTNER = OdaCase(
    GOETHE,
    "Where was the unmarried partner of Johann Wolfgang von Goethe born?",
    ("Q5879",),
    (
        "Thought: Who was the partner?\nAction: GetNeighbor\nEntity_id: Johann Wolfgang von Goethe",
        "Thought: The partner.\nTriples: (Johann Wolfgang von Goethe, unmarried partner, Lili Schönemann)",
        "Thought: Where was she born?\nAction: GetNeighbor\nEntity_id: Lili Schönemann",
        "Thought: There.\nTriples: (Lili Schönemann, place of birth, Offenbach am Main)",
        "Thought: The memory holds it.\nAction: Answer",
        "Answer: Offenbach am Main",
    ),
    ("Q5879", "Q1"),
    (("Q5879", "P451", "Q1"), ("Q1", "P19", "Q3042")),
    ("Offenbach am Main",),
)


@pytest.mark.parametrize("case", [TOKYO, TWO_NOVELS, PARTNER], ids=["table 6", "table 5", "figure 3"])
async def test_a_worked_case_makes_the_calls_the_memory_and_the_answer_of_the_paper(
    tmp_path: Path, case: OdaCase
) -> None:
    calls: list[ToolCall] = []
    with serving_model(*case.replies) as service:
        async with (
            OpenAiLlm("m", base_url=service.url) as llm,
            story(tmp_path, case.turtle, on_call=calls.append) as graph,
        ):
            answer = await ODA(llm, graph, settings=OdaSettings(manner="paper")).answer(case.question, case.entities)
    assert (answer.texts, answer.stop_reason) == (case.answers, "answered")
    assert tuple(call.arguments["entity"] for call in calls if call.tool == "GetNeighbor") == case.looked_at
    assert answer.facts == case.memory
    assert {each.source for each in answer.answers} == {"graph"}
    assert set(answer.evidence) <= set(answer.facts)
    assert answer.usage.calls == len(service.asked) == len(case.replies)


SHELL = "Nokia CC-3068 Shell for Lumia 520 - Retail Packaging - White"

SHOP = "\n".join(
    (
        "@prefix amazon: <http://shop.example/> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        f'amazon:B00BRPTT9K rdfs:label "{SHELL}" ; amazon:title "{SHELL}" ;',
        "    amazon:bought_together_item amazon:B00E45043A .",
        'amazon:B00E45043A rdfs:label "Screen protector" ; amazon:bought_together_item amazon:B00BRPTT9K .',
        *(f"amazon:B00E45043A amazon:bought_together_item amazon:B{number:02} ." for number in range(48)),
    )
)

HOW_MANY = (
    f"What is the quantity of items sharing the same purchased-together items as item {SHELL}? "
    "Please answer by providing node main feature (e.g., names) rather than node IDs."
)

SITES = {"0001690": "ear", "0001691": "external ear", "0002097": "skin"}


def localized(disease: str, *sites: str, others: range) -> list[str]:
    places = [*sites, *(f"1{number:06}" for number in others)]
    return [f"DOID:{disease} hetionet:Disease-localizes-Anatomy UBERON:{place} ." for place in places]


CLINIC = "\n".join(
    (
        "@prefix drug: <http://clinic.example/drug/> .",
        "@prefix DOID: <http://clinic.example/disease/> .",
        "@prefix UBERON: <http://clinic.example/anatomy/> .",
        "@prefix hetionet: <http://clinic.example/relation/> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        'drug:DB00591 rdfs:label "Fluocinolone Acetonide" ;',
        "    hetionet:Compound-treats-Disease DOID:3310, DOID:8893 .",
        'DOID:3310 rdfs:label "atopic dermatitis" ; hetionet:name "atopic dermatitis" .',
        'DOID:8893 rdfs:label "psoriasis" ; hetionet:name "psoriasis" .',
        *(f'UBERON:{site} rdfs:label "{name}" ; hetionet:name "{name}" .' for site, name in SITES.items()),
        *localized("3310", "0001690", "0001691", others=range(15)),
        *localized("8893", "0001691", "0002097", others=range(100, 122)),
        "DOID:1909 hetionet:Disease-localizes-Anatomy UBERON:0001690 .",
    )
)

WHICH_ILLNESS = (
    "What illness situated in ear can be treated by Fluocinolone Acetonide? "
    "Please answer by providing node main feature (e.g., names) rather than node IDs."
)

LOCATE = (
    "Plan 1: The question asks for the count of items that share the bought_together_item neighbors of the item.",
    "Thought 1: We need to find the node in the graph that represents the specified item.",
    f"Action 1: Retrieve[{SHELL}]",
    "Plan 2: We have the node representing the specified item. Next, we need its bought_together_item neighbors.",
    "Thought 2: We need to retrieve the bought_together_item neighbors of the specified item.",
    "Action 2: Neighbour[amazon:B00BRPTT9K, bought_together_item]",
    "Plan 3: We have the neighbors. Next, we need to find other items that share these neighbors.",
    "Thought 3: We need to find items that share the same bought_together_item neighbors.",
    "Action 3: Neighbour[amazon:B00E45043A, bought_together_item]",
    "Plan 4: Next, we need to filter out the original item and count the remaining items.",
    "Thought 4: We need to filter out the original item (B00BRPTT9K) from the list and count the remaining items.",
)

MISCOUNT = (
    *LOCATE,
    "Action 4: Feature[Retrieve[B00BRPTT9K], title]",
    "Plan 5: It seems there was an error in retrieving the title. We will directly filter out the original item.",
    "Thought 5: We need to filter out the original item (B00BRPTT9K) from the list and count the remaining items.",
    "Action 5: Finish[49]",
)

UNCOUNTED = (
    "- Recap of the Trial\n- Outcome: The question was not answered: the original item was counted.\n"
    "- Improved Strategy\n- Ensure the original item is filtered out before counting.\n(END OF REFLECTION)"
)

TREATED = (
    "Plan 1: The question is asking for a disease localized in the ear that Fluocinolone Acetonide can treat.",
    "Thought 1: We need to find the node representing Fluocinolone Acetonide in the graph.",
    "Action 1: Retrieve[Fluocinolone Acetonide]",
    "Plan 2: We have the node representing the compound. Next, we need the diseases that this compound treats.",
    "Thought 2: We need to find the diseases that Fluocinolone Acetonide treats.",
    "Action 2: Neighbour[drug:DB00591, Compound-treats-Disease]",
    "Plan 3: Next, we need to check which of these diseases are localized in the ear.",
    "Thought 3: We need to check the anatomical locations of the diseases 'DOID:3310' and 'DOID:8893'.",
    "Action 3: Neighbour[DOID:3310, Disease-localizes-Anatomy], Neighbour[DOID:8893, Disease-localizes-Anatomy]",
    "Plan 4: Next, we need to identify which of these locations correspond to the ear.",
    "Thought 4: We need to get the names of the anatomical locations.",
    "Action 4: Feature[UBERON:0001690, name], Feature[UBERON:0001691, name], ...",
)

BOTH_NAMES = "Feature[DOID:3310, name], Feature[DOID:8893, name]"

WANDER = (
    *TREATED,
    *("Plan 5: Get the names of the diseases.", "Thought 5: …", f"Action 5: {BOTH_NAMES}"),
    *("Plan 6: Verify which are localized in the ear.", "Thought 6: …", f"Action 6: {BOTH_NAMES}"),
    *("Plan 7: Verify the locations again.", "Thought 7: …", TREATED[8].replace("Action 3", "Action 7")),
    *("Plan 8: Identify the ear.", "Thought 8: …", "Action 8: Feature[UBERON:0001690, name]"),
    *("Plan 9: Verify the diseases.", "Thought 9: …", f"Action 9: {BOTH_NAMES}"),
    *("Plan 10: Identify the disease.", "Thought 10: …", "Action 10: Feature[DOID:3310, name]"),
)

STREAMLINE = (
    "- Recap of the Trial\n- Outcome: Ten steps were exceeded; some of them verified the same name again.\n"
    "- Improved Strategy\n- Ensure that each step is necessary and avoid redundant checks.\n(End of Reflection)"
)

SETTLE = (
    *TREATED,
    *("Plan 5: Get the name of the disease.", "Thought 5: …", "Action 5: Feature[DOID:3310, name]"),
    "Plan 6: We have the answer.",
    "Thought 6: We have the answer: atopic dermatitis.",
    "Action 6: Finish[atopic dermatitis]",
)

PAPER = CounselorSettings(manner="paper")

WITH_SETS = CounselorSettings(manner="paper", functions="all")


@dataclass(frozen=True)
class Case:
    """How a case went: the answer, the expressions that the server was asked for, and what the model was asked."""

    answer: CounselorAnswer
    performed: list[str]
    asked: list[Asked]

    def observed(self, attempt: int) -> list[str]:
        """Return the observations of an attempt."""
        return [step.observation or "" for step in self.answer.attempts[attempt].steps]


async def worked(folder: Path, turtle: str, question: str, *replies: str, settings: CounselorSettings = PAPER) -> Case:
    calls: list[ToolCall] = []
    with serving_model(*replies) as service:
        async with OpenAiLlm("m", base_url=service.url) as llm, story(folder, turtle, on_call=calls.append) as graph:
            answer = await GraphCounselor(llm, graph, settings=settings).answer(question)
    assert len(service.asked) == len(replies) == answer.usage.calls
    performed = [str(call.arguments["expression"]) for call in calls if call.tool == "Compose"]
    return Case(answer, performed, service.asked)


async def test_the_items_beside_the_nokia_shell_are_counted_right_after_a_reflection(tmp_path: Path) -> None:
    case = await worked(
        tmp_path,
        SHOP,
        HOW_MANY,
        *(*MISCOUNT, "The original item is among the 49.\n[no]", UNCOUNTED),
        *(*LOCATE, "Action 4: Finish[48]", "49 items without the original one.\n[yes]"),
    )
    path = [
        f"Retrieve[{SHELL}]",
        "Neighbour[amazon:B00BRPTT9K, bought_together_item]",
        "Neighbour[amazon:B00E45043A, bought_together_item]",
    ]
    assert case.performed == [*path, "Feature[Retrieve[B00BRPTT9K], title]", *path]
    seen = ["amazon:B00BRPTT9K", "amazon:B00E45043A", "49 nodes."]
    for attempt, ends in ((1, ["Answer is 48"]), (0, [SHELL, "Answer is 49"])):
        observed = zip([*seen, *ends], case.observed(attempt), strict=True)
        assert [part for part, text in observed if part not in text] == []
    assert (case.answer.texts, case.answer.stop_reason, case.answer.accepted) == (("48",), "answered", True)
    assert [(attempt.answer, attempt.accepted) for attempt in case.answer.attempts] == [("49", False), ("48", True)]
    assert "Ensure the original item is filtered out before counting." in case.asked[17].prompt
    assert [(asked.temperature, asked.top_p) for asked in case.asked] == [(0.7, 0.9)] * len(case.asked)
    assert (case.answer.answers[0].source, case.answer.evidence) == ("model", ())


async def test_the_illness_of_the_ear_is_found_after_an_attempt_that_ran_out_of_steps(tmp_path: Path) -> None:
    case = await worked(tmp_path, CLINIC, WHICH_ILLNESS, *WANDER, STREAMLINE, *SETTLE, "It is treated.\n[yes]")
    path = [
        "Retrieve[Fluocinolone Acetonide]",
        "Neighbour[drug:DB00591, Compound-treats-Disease]",
        "Neighbour[DOID:3310, Disease-localizes-Anatomy], Neighbour[DOID:8893, Disease-localizes-Anatomy]",
        "Feature[UBERON:0001690, name], Feature[UBERON:0001691, name]",
    ]
    repeated = [BOTH_NAMES, path[2], "Feature[UBERON:0001690, name]", BOTH_NAMES, "Feature[DOID:3310, name]"]
    assert case.performed == [*path, BOTH_NAMES, *repeated, *path, "Feature[DOID:3310, name]"]
    wandered, settled = case.answer.attempts
    assert (wandered.end, wandered.answer, len(wandered.steps)) == ("steps", None, 10)
    assert case.observed(0)[5] == case.observed(0)[8] == case.observed(0)[4]
    assert ("drug:DB00591" in case.observed(1)[0], case.observed(1)[1].startswith("2 nodes.")) == (True, True)
    locations = settled.steps[2].observation or ""
    assert "Neighbour[DOID:3310, Disease-localizes-Anatomy] | 17 nodes" in locations
    assert "Neighbour[DOID:8893, Disease-localizes-Anatomy] | 24 nodes" in locations
    assert '| hetionet:name | "ear"' in (settled.steps[3].observation or "")
    assert (case.answer.texts, case.answer.stop_reason) == (("atopic dermatitis",), "answered")
    assert set(case.answer.evidence) == {
        ("drug:DB00591", "hetionet:Compound-treats-Disease", "DOID:3310"),
        ("DOID:3310", "hetionet:Disease-localizes-Anatomy", "UBERON:0001690"),
        ("UBERON:0001690", "hetionet:name", '"ear"'),
    }


async def test_the_count_is_one_compound_expression(tmp_path: Path) -> None:
    together = f"Neighbour[Neighbour[Retrieve[{SHELL}], bought_together_item], bought_together_item]"
    expression = f"Count[Minus[{together}, Retrieve[{SHELL}]]]"
    case = await worked(
        tmp_path,
        SHOP,
        HOW_MANY,
        "Count them.",
        "All at once.",
        expression,
        "Done.",
        "48.",
        "Finish[48]",
        "[yes]",
        settings=WITH_SETS,
    )
    assert case.performed == [expression]
    assert case.observed(0)[0].startswith("48.")
    assert case.answer.texts == ("48",)
    (answer,) = case.answer.answers
    assert (answer.source, answer.computed) == ("computed", (f"{expression} = 48",))
    assert {relation for _, relation, _ in answer.facts} == {"amazon:bought_together_item"}


async def test_the_illness_is_one_compound_expression(tmp_path: Path) -> None:
    expression = (
        "Intersect[Neighbour[Retrieve[Fluocinolone Acetonide], Compound-treats-Disease], "
        "Neighbour[Retrieve[ear], -Disease-localizes-Anatomy]]"
    )
    replies = ("Intersect them.", "All at once.", expression, "Done.", "It.", "Finish[atopic dermatitis]", "[yes]")
    case = await worked(tmp_path, CLINIC, WHICH_ILLNESS, *replies, settings=WITH_SETS)
    assert case.performed == [expression]
    assert "DOID:3310" in case.observed(0)[0].partition("\n")[0]
    assert case.answer.texts == ("atopic dermatitis",)
    assert set(case.answer.evidence) == {
        ("drug:DB00591", "hetionet:Compound-treats-Disease", "DOID:3310"),
        ("DOID:3310", "hetionet:Disease-localizes-Anatomy", "UBERON:0001690"),
    }
