"""Questions about the world, put to an agent whose model is played by rules."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.world.by_rules import ByRules
from benchmarks.world.counsel import counsel
from benchmarks.world.explorer import explore
from benchmarks.world.gold import completed
from benchmarks.world.graph import World
from benchmarks.world.matching import Given, is_right
from benchmarks.world.one_call import Calls, read_calls
from benchmarks.world.player import Player
from benchmarks.world.questions import Asked
from kg_agents.answers import AgentAnswer
from kg_agents.llm import Llm
from kg_agents.running import AgentName, Question, run_question
from kg_agents.tool_calls import Toolbox
from kg_agents.trace import Trace

GRAPH: Final = "sample:world"
"""What the graph calls itself, so that the agents get its examples."""
PLAYERS: Final[Mapping[AgentName, Callable[[Sequence[Asked], Mapping[str, Calls]], Llm]]] = {
    "tools": Player,
    "oda": partial(ByRules, "explorer", explore),
    "graph-counselor": partial(ByRules, "counsel", counsel),
}
"""Who plays the model of each agent."""


@dataclass(frozen=True, slots=True)
class Played:
    """How one question went.

    Args:
        asked: The question.
        answer: The answer.
        right: Whether it is right.
    """

    asked: Asked
    answer: AgentAnswer
    right: bool


def one_of_each(questions: Sequence[Asked]) -> list[Asked]:
    """Return the first question of each kind."""
    return list({asked.kind: asked for asked in reversed(questions)}.values())[::-1]


async def play(tools: Toolbox, world: World, questions: Sequence[Asked], way: Question) -> list[Played]:
    """Answer questions by an agent, each in a run of its own with a record.

    Args:
        tools: The tools of the graph.
        world: The world that they are about.
        questions: The questions.
        way: The agent and its parameters; its text does not count.
    """
    player, found = PLAYERS[way.agent](questions, read_calls()), list[Played]()
    with tempfile.TemporaryDirectory() as folder:
        for asked in questions:
            with Trace(Path(folder) / f"{asked.id}.jsonl") as trace:
                answer = await run_question(replace(way, text=asked.question, graph_name=GRAPH), tools, player, trace)
            full = completed(world, asked)
            found.append(Played(asked, answer, is_right(full, _given(world, full, answer))))
    return found


def _given(world: World, asked: Asked, answer: AgentAnswer) -> Given:
    """Return what was answered; a name counts for the entity that is asked for, where it bears it."""
    if not asked.answer_ids:
        return Given(values=answer.texts, unknown=answer.explanation)
    wanted = set(asked.answer_ids)
    bearers = [world.bearers.get(text, set[str]()) for text in answer.texts]
    nodes = (min(ids & wanted or ids, default=text) for text, ids in zip(answer.texts, bearers, strict=True))
    return Given(nodes=tuple(nodes), unknown=answer.explanation)
