"""Record the run that docs/agents.md replays: ODA on the sample, with scripted replies in place of a model."""

import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import Final

import anyio

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_agents import OdaSettings, ScriptedLlm
from kg_agents.running import Question, run_question
from kg_agents.tools.client import connect_tools
from kg_agents.trace import Trace
from kg_server.app import build_server
from kg_server.settings import Settings

RECORD: Final = Path(__file__).resolve().parents[1] / "docs" / "examples" / "goethe.jsonl"
ASKED: Final = Question(
    "Where was Goethe born?",
    graph_name="sample",
    settings=OdaSettings(manner="paper", hops=1, top_n=5, found=50),
)
REPLIES: Final = (
    "Goethe",
    "Thought: The observation shows a place of birth, the memory is empty.\nAction: GetNeighbor\nEntity_id: Q5879",
    "Thought: Place of birth (P19) answers the question, nothing else does.\nTriples:\nQ5879,P19,Q1794",
    "Thought: The memory holds the place of birth.\nAction: Answer",
    "Answer:\nFrankfurt",
)


async def record() -> None:
    """Write the record."""
    with tempfile.TemporaryDirectory() as temporary:
        settings = Settings(cache_folder=Path(temporary), data_folder=Path(temporary))
        async with (
            aclosing(LocalAdapter(open_sample(settings.cache_folder))) as graph,
            connect_tools(build_server(graph, settings)) as tools,
        ):
            with Trace(RECORD) as trace:
                answer = await run_question(ASKED, tools, ScriptedLlm(REPLIES), trace)
    print(f"{RECORD.name}: {', '.join(answer.texts)}")


if __name__ == "__main__":
    anyio.run(record)
