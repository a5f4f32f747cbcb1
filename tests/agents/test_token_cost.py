"""What the usual manner costs beside that of the papers: the same questions, played to the same answers."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from embedders import LEXICAL
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_agents.evidence.answers import AgentAnswer
from kg_agents.llm import Scripted, ScriptedLlm
from kg_agents.llm.texts import tokens_in
from kg_agents.papers.graph_counselor import CounselorSettings, GraphCounselor
from kg_agents.papers.oda import ODA, OdaSettings
from kg_agents.parameters import Manner
from kg_agents.tools.knowledge import KnowledgeGraph, connect
from kg_server.app import build_server
from kg_server.settings import Settings
from oda_runs import ENOUGH, NEIGHBORS, selecting

Hop = tuple[str, str, str]
"""Head, relation and tail of a fact: each as `label (id)`."""

GOETHE, EINSTEIN = "Johann Wolfgang von Goethe (Q5879)", "Albert Einstein (Q937)"
QUESTIONS: Final[Sequence[tuple[str, Sequence[Hop]]]] = (
    ("Where was Goethe born?", [(GOETHE, "place of birth (P19)", "Frankfurt (Q1794)")]),
    ("Where did Goethe die?", [(GOETHE, "place of death (P20)", "Weimar (Q3955)")]),
    ("Where did Albert Einstein die?", [(EINSTEIN, "place of death (P20)", "Princeton (Q138518)")]),
    (
        "In which country was the city where Goethe was born?",
        [
            (GOETHE, "place of birth (P19)", "Frankfurt (Q1794)"),
            ("Frankfurt (Q1794)", "country (P17)", "Holy Roman Empire (Q12548)"),
        ],
    ),
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the sample is."""
    folder = tmp_path_factory.mktemp("costs")
    open_sample(folder)
    return folder


@asynccontextmanager
async def sample(cache: Path) -> AsyncGenerator[KnowledgeGraph]:
    """Serve the sample in this process."""
    settings = Settings(cache_folder=cache, data_folder=cache, embedding=LEXICAL)
    async with (
        aclosing(LocalAdapter(open_sample(cache))) as adapter,
        connect(build_server(adapter, settings)) as graph,
    ):
        yield graph


@dataclass
class Turning:
    """Plays turns: keeps the facts that it is after as they come, looks for the next, and answers with all."""

    hops: Sequence[Hop]

    def __post_init__(self) -> None:
        self._numbers: list[str] = []

    def reply(self, prompt: str) -> str:
        """Return the reply to one turn."""
        found = len(self._numbers)
        for head, relation, tail in self.hops[found:]:
            number = number_of(prompt, *map(label_of, (head, relation, tail)))
            if number is None:
                keep = ", ".join(self._numbers[found:]) or "none"
                look = f"GetNeighbor[{label_of(head)}, {label_of(relation)}]"
                return f"Thought: The next fact is missing.\nKeep: {keep}\nAction: {look}"
            self._numbers.append(number)
        answer = f"{label_of(self.hops[-1][2])} [{', '.join(self._numbers)}]"
        return f"Thought: All is there.\nKeep: none\nAction: Answer\nAnswer:\n{answer}"


def number_of(prompt: str, head: str, relation: str, tail: str) -> str | None:
    """Return the number of a fact that a prompt shows, also among others that share an end with it."""
    for line in re.finditer(
        r"^\[(\d+)(?:-\d+)?\] ([^|\n]+) \| ([^|\n]+) \| ([^|\n]+?)(?: \([^()]* shown\))?$", prompt, re.MULTILINE
    ):
        heads, tails = line[2].split("; "), line[4].split("; ")
        if line[3] == relation and head in heads and tail in tails:
            return str(int(line[1]) + heads.index(head) + tails.index(tail))
    return None


def label_of(named: str) -> str:
    return named.rpartition(" (")[0]


def id_of(named: str) -> str:
    return named.rpartition(" (")[2].rstrip(")")


def oda_script(manner: Manner, hops: Sequence[Hop]) -> list[Scripted]:
    if manner == "sextant":
        return [Turning(hops).reply] * 6
    steps: list[Scripted] = []
    for hop in hops:
        steps += [NEIGHBORS.format(id_of(hop[0])), selecting(",".join(map(id_of, hop)))]
    return [*steps, ENOUGH, f"Answer:\n{label_of(hops[-1][2])}"]


def counselor_script(manner: Manner, hops: Sequence[Hop]) -> list[Scripted]:
    actions = [f"Neighbor[{id_of(head)}, {label_of(relation)}]" for head, relation, _ in hops]
    actions.append(f"Finish[{label_of(hops[-1][2])}]")
    plan, thought = "Find what the question names, and follow its relations.", "The next of them is needed."
    if manner == "sextant":
        return [*(f"Plan: {plan}\nThought: {thought}\nAction: {action}" for action in actions), "It is.\n[yes]"]
    return [*(each for action in actions for each in (plan, thought, action)), "It is.\n[yes]"]


async def played(graph: KnowledgeGraph, agent: str, manner: Manner) -> int:
    """Return how many tokens the prompts of all questions have, which are all answered right."""
    tokens = 0
    for question, hops in QUESTIONS:
        answer, llm = await answered(graph, agent, manner, question, hops)
        assert (answer.texts, answer.status) == ((label_of(hops[-1][2]),), "answered"), question
        tokens += sum(tokens_in(message.content) for asked in llm.asked for message in asked.messages)
    return tokens


async def answered(
    graph: KnowledgeGraph, agent: str, manner: Manner, question: str, hops: Sequence[Hop]
) -> tuple[AgentAnswer, ScriptedLlm]:
    entities = [id_of(hops[0][0])]
    if agent == "oda":
        llm = ScriptedLlm(oda_script(manner, hops))
        oda = ODA(llm, graph, settings=OdaSettings(manner=manner))
        return await oda.answer(question, entities), llm
    llm = ScriptedLlm(counselor_script(manner, hops))
    counselor = GraphCounselor(llm, graph, settings=CounselorSettings(manner=manner))
    return await counselor.answer(question, entities), llm


@pytest.mark.parametrize(("agent", "share"), [("oda", 0.45), ("graph-counselor", 0.35)])
async def test_the_usual_manner_costs_a_fraction_of_that_of_the_paper(cache: Path, agent: str, share: float) -> None:
    async with sample(cache) as graph:
        ours, theirs = await played(graph, agent, "sextant"), await played(graph, agent, "paper")
    assert ours <= share * theirs, f"{ours:,} of {theirs:,} tokens"
