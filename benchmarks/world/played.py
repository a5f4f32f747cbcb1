"""Questions about the world, put to the agent whose model calls the tools itself; rules play the model."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.world.gold import completed
from benchmarks.world.graph import World
from benchmarks.world.matching import Given, is_right
from benchmarks.world.one_call import read_calls
from benchmarks.world.player import Player
from benchmarks.world.questions import Asked
from kg_agents.answers import AgentAnswer
from kg_agents.running import Question, run_question
from kg_agents.tool_calls import Toolbox
from kg_agents.tools import ToolsSettings
from kg_agents.trace import Trace


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


async def play(
    tools: Toolbox, world: World, questions: Sequence[Asked], settings: ToolsSettings | None = None
) -> list[Played]:
    """Answer questions by the agent, each in a run of its own with a record."""
    player, found = Player(questions, read_calls()), list[Played]()
    with tempfile.TemporaryDirectory() as folder:
        for asked in questions:
            question = Question(asked.question, agent="tools", tools=settings or ToolsSettings())
            with Trace(Path(folder) / f"{asked.id}.jsonl") as trace:
                answer = await run_question(question, tools, player, trace)
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
