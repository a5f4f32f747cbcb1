"""The worked cases of the ODA paper, through the real client of a model's service and a real server process."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from mcp import StdioServerParameters

from kg_agents.llm.openai_llm import OpenAiLlm
from kg_agents.papers.oda import ODA, OdaSettings
from kg_agents.tools.client import ToolCall
from kg_agents.tools.knowledge import connect
from scripted_model import serving_model
from story_graphs import GOETHE, NOVELS, PREFECTURE, write_story


@dataclass(frozen=True)
class Case:
    """What a model says, and what the loop makes of it.

    Args:
        turtle: The graph.
        question: The question.
        entities: What it names.
        replies: What the model says, in order.
        looked_at: The entities whose neighbours were asked for, in order.
        memory: The paths of the memory at the end.
        answers: The answers.
    """

    turtle: str
    question: str
    entities: tuple[str, ...]
    replies: tuple[str, ...]
    looked_at: tuple[str, ...]
    memory: tuple[str, ...]
    answers: tuple[str, ...]


TOKYO = Case(
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
        "Tokyo (Q1490) -[instance of (P31)]-> prefecture of Japan (Q50337)",
        "Tokyo (Q1490) -[capital (P36)]-> Shinjuku (Q179645)",
        # In print (Tokyo, capital, Japan): the tail of an incoming edge comes first there.
        "Japan (Q17) -[capital (P36)]-> Tokyo (Q1490)",
    ),
    ("Shinjuku",),
)
TWO_NOVELS = Case(
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
        "The Call of the Wild (Q476871) -[narrative location (P840)]-> Yukon (Q2009)",
        "The Call of the Wild (Q476871) -[narrative location (P840)]-> Canada (Q16)",
        "The Call of the Wild (Q476871) -[author (P50)]-> Jack London (Q45765)",
        "White Fang (Q465360) -[narrative location (P840)]-> Yukon (Q2009)",
        "White Fang (Q465360) -[narrative location (P840)]-> Canada (Q16)",
    ),
    ("Canada", "Yukon"),
)
PARTNER = Case(
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
    (
        "Johann Wolfgang von Goethe (Q5879) -[unmarried partner (P451)]-> Lili Schönemann (Q1) "
        "-[place of birth (P19)]-> Offenbach am Main (Q3042)",
    ),
    ("Offenbach am Main",),
)


@pytest.mark.parametrize("case", [TOKYO, TWO_NOVELS, PARTNER], ids=["table 6", "table 5", "figure 3"])
async def test_a_worked_case_makes_the_calls_the_memory_and_the_answer_of_the_paper(tmp_path: Path, case: Case) -> None:
    calls: list[ToolCall] = []
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kg_server", "serve", str(write_story(tmp_path, case.turtle))],
        env={"KG_SEXTANT_CACHE_FOLDER": str(tmp_path / "cache"), "KG_SEXTANT_DATA_FOLDER": str(tmp_path / "data")},
    )
    with serving_model(*case.replies) as service:
        llm = OpenAiLlm("m", base_url=service.url)
        async with connect(server, calls.append) as graph:
            answer = await ODA(llm, graph, settings=OdaSettings(manner="paper")).answer(case.question, case.entities)
        await llm.aclose()
    assert (answer.texts, answer.stop_reason) == (case.answers, "answered")
    assert tuple(call.arguments["entity"] for call in calls if call.tool == "GetNeighbor") == case.looked_at
    remembered = next(call for call in reversed(calls) if call.tool == "memory-read")
    assert tuple(remembered.text.splitlines()[1:]) == case.memory
    assert len(answer.facts) == sum(path.count("]->") for path in case.memory)
    assert {each.source for each in answer.answers} == {"graph"}
    assert set(answer.evidence) <= set(answer.facts)
    assert answer.usage.calls == len(service.asked) == len(case.replies)
