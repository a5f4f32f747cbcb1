"""The worked cases of the ODA paper, through the real client of a model's service and a real server process."""

import sys
from pathlib import Path

import pytest
from mcp import StdioServerParameters

from kg_agents.knowledge import ToolCall, connect
from kg_agents.oda import ODA
from kg_agents.openai_llm import OpenAiLlm
from scripted_model import serving_model
from story_graphs import GOETHE, NOVELS, TOKYO, write_story

TOKYO_CASE = [
    "Thought: The question asks for the capital of the prefecture Tokyo. The candidate entity ID 'Q1490' is Tokyo. "
    "The observation holds (Tokyo, capital, Shinjuku); to confirm it, I look at its neighbours.\n"
    "Action: GetNeighbor\nEntity_id: Tokyo",
    "Thought: The capital of Tokyo is Shinjuku.\n"
    "Triples: (Tokyo, instance of, prefecture of Japan), (Tokyo, capital, Shinjuku), (Tokyo, capital of, Japan)",
    "Thought: The memory states that the capital of Tokyo is Shinjuku.\nAction: Answer",
    "Answer\nShinjuku",
]
NOVELS_CASE = [
    "Thought: I begin with the first work.\nAction: GetNeighbor\nEntity_id: The Call of the Wild",
    "Thought: Locations and the author.\nTriples: (The Call of the Wild, narrative location, Yukon), "
    "(The Call of the Wild, narrative location, Canada), (The Call of the Wild, author, Jack London)",
    "Thought: White Fang is a work of the author too.\nAction: GetNeighbor\nEntity_id: Jack London",
    "Thought: That leads to the other work.\nTriples: (White Fang, author, Jack London)",
    "Thought: Its locations are missing.\nAction: GetNeighbor\nEntity_id: White Fang",
    "Thought: These are the locations.\n"
    "Triples: (White Fang, narrative location, Yukon), (White Fang, narrative location, Canada)",
    "Thought: Both are set in Canada and Yukon.\nAction: Answer",
    "[Canada,Yukon]",
]
GOETHE_CASE = [
    "Thought: Who was the partner?\nAction: GetNeighbor\nEntity_id: Johann Wolfgang von Goethe",
    "Thought: The partner.\nTriples: (Johann Wolfgang von Goethe, unmarried partner, Lili Schönemann)",
    "Thought: Where was she born?\nAction: GetNeighbor\nEntity_id: Lili Schönemann",
    "Thought: There.\nTriples: (Lili Schönemann, place of birth, Offenbach am Main)",
    "Thought: The memory holds it.\nAction: Answer",
    "Answer: Offenbach am Main",
]


@pytest.mark.parametrize(
    ("turtle", "question", "entities", "replies", "actions", "answers", "memory"),
    [
        (
            TOKYO,
            "What is the capital of the prefecture Tokyo?",
            ["Q1490"],
            TOKYO_CASE,
            ["GetNeighbor Q1490"],
            ("Shinjuku",),
            {("Q1490", "P31", "Q50337"), ("Q1490", "P36", "Q179645"), ("Q1490", "P1376", "Q17")},
        ),
        (
            NOVELS,
            "Where are both The Call of the Wild and White Fang set, the most two famous works of Jack London?",
            ["Q476871", "Q45765"],
            NOVELS_CASE,
            ["GetNeighbor Q476871", "GetNeighbor Q45765", "GetNeighbor Q465360"],
            ("Canada", "Yukon"),
            {
                ("Q476871", "P840", "Q2009"),
                ("Q476871", "P840", "Q16"),
                ("Q476871", "P50", "Q45765"),
                ("Q465360", "P50", "Q45765"),
                ("Q465360", "P840", "Q2009"),
                ("Q465360", "P840", "Q16"),
            },
        ),
        (
            GOETHE,
            "Where was the unmarried partner of Johann Wolfgang von Goethe born?",
            ["Q5879"],
            GOETHE_CASE,
            ["GetNeighbor Q5879", "GetNeighbor Q1"],
            ("Offenbach am Main",),
            {("Q5879", "P451", "Q1"), ("Q1", "P19", "Q3042")},
        ),
    ],
    ids=["Tokyo", "The Call of the Wild and White Fang", "Goethe"],
)
async def test_a_worked_case_makes_the_calls_the_memory_and_the_answer_of_the_paper(
    tmp_path: Path,
    turtle: str,
    question: str,
    entities: list[str],
    replies: list[str],
    actions: list[str],
    answers: tuple[str, ...],
    memory: set[tuple[str, str, str]],
) -> None:
    calls: list[ToolCall] = []
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kg_server.cli", "serve", str(write_story(tmp_path, turtle))],
        env={"KG_SEXTANT_CACHE_FOLDER": str(tmp_path / "cache"), "KG_SEXTANT_DATA_FOLDER": str(tmp_path / "data")},
    )
    with serving_model(*replies) as service:
        llm = OpenAiLlm("m", base_url=service.url)
        async with connect(server, calls.append) as graph:
            answer = await ODA(llm, graph).answer(question, entities)
        await llm.aclose()
    assert (answer.answers, answer.stop_reason) == (answers, "answered")
    performed = [f"{call.tool} {call.arguments['entity']}" for call in calls if call.tool == "GetNeighbor"]
    assert (performed, set(answer.evidence)) == (actions, memory)
    assert answer.usage.calls == len(service.asked) == len(replies)
