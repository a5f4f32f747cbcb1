"""The section of the benchmark that puts questions about the world to the agent whose model calls the tools itself."""

from collections.abc import Sequence
from contextlib import aclosing
from statistics import median
from typing import Final

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Line, Section, Target
from benchmarks.world.graph import World
from benchmarks.world.measure import WORLD
from benchmarks.world.played import Played, one_of_each, play
from benchmarks.world.questions import read_questions
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import sample_store
from kg_adapters.local.store import open_store
from kg_agents.chat_requests import estimated_tokens
from kg_agents.llm import LlmRequest
from kg_agents.sessions import connect_tools
from kg_agents.tool_calls import ToolOffer
from kg_agents.tools import ToolsSettings
from kg_server.app import build_server
from kg_server.settings import Settings

ONLY: Final = "Retrieve,Schema,Sparql,Compose"
"""The tools that computing takes, for the second measurement."""
_RIGHT: Final = Target("median", 0.94, least=True)
_CALLS: Final = Target("median", 2)
_TOKENS: Final = Target("median", 3_000)


async def measure_played(bench: Bench) -> Section:
    """Put one question of each kind to the agent, and count right answers, calls and tokens; rules play the model."""
    world, questions = World(), one_of_each(read_questions())
    settings = Settings(cache_folder=bench.cache, data_folder=bench.cache / "data")
    async with (
        aclosing(LocalAdapter(open_store(sample_store(bench.cache, WORLD)))) as graph,
        connect_tools(build_server(graph, settings)) as tools,
    ):
        listed = _cost(await tools.offer())
        found = await play(tools, world, questions)
        few = await play(tools, world, questions, ToolsSettings(only=ONLY))
    lines = (*_lines("tools", found), *_lines(f"tools, only {ONLY}", few))
    notes = [f"The list of tools takes {listed:,} tokens of every call, which the service may keep in a cache."]
    notes += (f"Wrong: {each.asked.id}, {each.asked.kind}." for each in found if not each.right)
    title = f"{len(questions)} questions about {WORLD}, one of each kind, by an agent whose model is played by rules"
    return Section("played", title, lines, tuple(notes))


def _lines(name: str, found: Sequence[Played]) -> Sequence[Line]:
    usages = [each.answer.usage for each in found]
    return (
        Line(
            f"{name}: right, of {len(found)}",
            Figure(sum(each.right for each in found) / len(found), "share"),
            (_RIGHT,),
        ),
        Line(f"{name}: median calls of the model", Figure(median(each.calls for each in usages), "calls"), (_CALLS,)),
        Line(f"{name}: median tokens, both ways", Figure(median(each.tokens for each in usages), "tokens"), (_TOKENS,)),
    )


def _cost(offer: ToolOffer) -> int:
    return estimated_tokens(LlmRequest((), "", 0.0, 1, tools=offer.tools))
