"""The section of the benchmark that puts questions about the world to each agent; rules play the model."""

from collections.abc import Mapping, Sequence
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
from kg_adapters.local.cache import open_sample
from kg_agents.chat_requests import estimated_tokens
from kg_agents.llm import LlmRequest
from kg_agents.running import AgentName, Question
from kg_agents.sessions import connect_tools
from kg_agents.tool_calls import ToolOffer
from kg_agents.tools import ToolsSettings
from kg_agents.tools.final import ANSWER
from kg_agents.tools.offered import offered
from kg_server.app import build_server
from kg_server.settings import Settings

ONLY: Final = "Retrieve,Schema,Sparql,Compose"
"""The tools that computing takes, for the second measurement."""
WAYS: Final[Mapping[str, Question]] = {
    "tools": Question("", agent="tools"),
    f"tools, only {ONLY}": Question("", agent="tools", tools=ToolsSettings(only=ONLY)),
    "oda": Question("", agent="oda"),
    "graph-counselor": Question("", agent="graph-counselor"),
}
_RIGHT: Final = Target("median", 0.94, least=True)
_MEDIANS: Final[Mapping[AgentName, tuple[Target, Target]]] = {
    "tools": (Target("median", 2), Target("median", 3_000)),
    "oda": (Target("median", 5), Target("median", 6_000)),
    "graph-counselor": (Target("median", 4), Target("median", 5_000)),
}
"""How many calls of the model, and tokens, each agent should need."""


async def measure_played(bench: Bench) -> Section:
    """Put one question of each kind to the agents, and count right answers, calls and tokens; rules play the model."""
    world, questions = World(), one_of_each(read_questions())
    settings = Settings(cache_folder=bench.cache, data_folder=bench.cache / "data")
    lines, notes = list[Line](), list[str]()
    async with (
        aclosing(LocalAdapter(open_sample(bench.cache, WORLD))) as graph,
        connect_tools(build_server(graph, settings)) as tools,
    ):
        listed = _cost(await tools.offer())
        for name, way in WAYS.items():
            found = await play(tools, world, questions, way)
            lines += _lines(name, found, way.agent)
            notes += (f"Wrong by {name}: {each.asked.id}, {each.asked.kind}." for each in found if not each.right)
    notes.append(f"The list of tools takes {listed:,} tokens of every call, which the service may keep in a cache.")
    title = f"{len(questions)} questions about {WORLD}, one of each kind, by agents whose model is played by rules"
    return Section("played", title, tuple(lines), tuple(notes))


def _lines(name: str, found: Sequence[Played], agent: AgentName) -> Sequence[Line]:
    usages, (calls, tokens) = [each.answer.usage for each in found], _MEDIANS[agent]
    return (
        Line(
            f"{name}: right, of {len(found)}",
            Figure(sum(each.right for each in found) / len(found), "share"),
            (_RIGHT,),
        ),
        Line(f"{name}: median calls of the model", Figure(median(each.calls for each in usages), "calls"), (calls,)),
        Line(f"{name}: median tokens, both ways", Figure(median(each.tokens for each in usages), "tokens"), (tokens,)),
    )


def _cost(offer: ToolOffer) -> int:
    return estimated_tokens(LlmRequest((), "", 0.0, 1, tools=(*offered(offer.tools, ""), ANSWER)))
