"""Questions that `kg-sextant ask` puts to a scripted model about a small graph."""

from collections.abc import Sequence
from typing import TypeAlias

from cli_runs import CommandLine, Run
from oda_runs import ENOUGH, NEIGHBORS, selecting
from scripted_model import Asked, Scripted, calling, serving_model
from story_graphs import TOKYO, write_story

Script: TypeAlias = Sequence[Scripted]

QUESTION = "What is the capital of Tokyo?"
EVIDENCE = "Tokyo (Q1490) | capital (P36) | Shinjuku (Q179645)"
PAPER = ("--set", "manner=paper")
ABOUT_TOKYO = ("--entity", "Q1490")

EXPLORED = (NEIGHBORS.format("Q1490"), selecting("Q1490,P36,Q179645"), ENOUGH, "Answer: Shinjuku")
"""What a model replies to ODA as published."""
CALLED = (
    calling(("GetNeighbor", '{"entity": "Tokyo"}')),
    calling(("answer", '{"answers": [{"text": "Shinjuku", "results": [1]}]}')),
)
"""What a model replies that calls the tools."""


def asked(
    cli: CommandLine, script: Script, *words: str, question: str = QUESTION, **environ: str
) -> tuple[Run, list[Asked]]:
    """Ask about Tokyo; return how it ended, and what the model was asked."""
    graph = str(write_story(cli.folder, TOKYO))
    with serving_model(*script) as service:
        options = ["--graph", graph, "--model", "m", "--base-url", service.url]
        return cli.run("ask", question, *options, *words, **environ), service.asked
