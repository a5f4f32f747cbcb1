"""What the clients of a soak ask: all tools and resources, in the shares that agents ask them in."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mcp import Client
from mcp.types import TextResourceContents

from benchmarks.soak_report import Said
from benchmarks.workload import Pair, Workload

RESOURCE: Final = "a resource"
SHARES: Final[Mapping[str, int]] = {
    "GetNeighbor": 18,
    "GetNeighbor, page of a hub": 10,
    "Degree": 10,
    "Feature": 8,
    "Retrieve": 12,
    "Retrieve, new words": 2,
    "observe": 6,
    "observe, new question": 2,
    "GetPath": 7,
    "GetPath, hubs": 2,
    "Compose": 6,
    "Sparql": 6,
    "Schema": 3,
    RESOURCE: 4,
    "memory-append": 3,
    "memory-read": 1,
}
"""How many of a hundred calls are of which kind."""
_PAGES: Final = 4
_LABEL: Final = "http://www.w3.org/2000/01/rdf-schema#label"
_ASKED: Final = ("What is it part of?", "Where is it?", "Who made it?", "When did it begin?", "What is it known for?")
_WORDS: Final = ("river", "city", "king", "island", "song", "engine", "painter", "war", "school", "bridge", "novel")


@dataclass(frozen=True, slots=True)
class Question:
    """One call.

    Args:
        kind: What it is counted as; one of `SHARES`.
        tool: The tool, or `RESOURCE`.
        arguments: Its arguments; a resource has its address alone, as `uri`.
    """

    kind: str
    tool: str
    arguments: Mapping[str, object]

    async def ask(self, client: Client) -> Said:
        """Ask it, and return what was said."""
        if self.tool != RESOURCE:
            return Said.by(await client.call_tool(self.tool, dict(self.arguments)))
        contents = (await client.read_resource(str(self.arguments["uri"]))).contents
        text = "\n".join(part.text for part in contents if isinstance(part, TextResourceContents))
        return Said(text, {}, is_error=False)


@dataclass(frozen=True, slots=True)
class Known:
    """A question, and what was answered to it when nobody else asked."""

    question: Question
    expected: Said


def lasting_questions(work: Workload) -> list[Question]:
    """Return the questions that have one answer for ever, but for the pages of hubs."""
    asked = [Question("Schema", "Schema", {}), Question(RESOURCE, RESOURCE, {"uri": "kg://schema"})]
    for number, (entity, other) in enumerate(work.random_pairs):
        asked += _about(f"<{entity}>", f"<{other}>", _ASKED[number % len(_ASKED)])
    asked += [Question("Retrieve", "Retrieve", {"text": name}) for name in (*work.names, *work.typos)]
    asked += [_path("GetPath", pair, max_hops=3) for pair in work.hub_adjacent]
    asked += [_path("GetPath, hubs", pair, max_hops=3) for pair in work.hub_pairs]
    return asked


async def hub_pages(client: Client, hubs: Sequence[str]) -> list[Known]:
    """Follow the cursors of hubs for some pages; their addresses are the questions, since a cursor says where it is."""
    pages: list[Known] = []
    for hub in hubs:
        arguments: dict[str, object] = {"entity": f"<{hub}>", "direction": "both", "limit": 100, "max_tokens": 8_000}
        for _ in range(_PAGES):
            result = await client.call_tool("GetNeighbor", arguments)
            pages.append(Known(Question("GetNeighbor, page of a hub", "GetNeighbor", arguments), Said.by(result)))
            content: dict[str, object] = result.structured_content or {}
            if content.get("cursor") is None:
                break
            arguments = {**arguments, "cursor": content["cursor"]}
    return pages


def new_question(kind: str, dice: random.Random, entities: Sequence[str]) -> Question:
    """Return a question in words that nobody has asked before, so that the model has work."""
    words = f"{' '.join(dice.sample(_WORDS, 3))} of {dice.randrange(10**9)}"
    if kind == "Retrieve, new words":
        return Question(kind, "Retrieve", {"text": words})
    return Question(kind, "observe", {"question": f"Which {words}?", "entities": [f"<{dice.choice(entities)}>"]})


def _about(entity: str, other: str, question: str) -> list[Question]:
    kinds = (f"Neighbor[{each}, instance of]" for each in (entity, other))
    composed = f"Count[Union[{', '.join(kinds)}]], Degree[{entity}, instance of]"
    query = f"SELECT ?l {{ {entity} ?p ?o . ?o <{_LABEL}> ?l }} ORDER BY ?l LIMIT 20"
    return [
        Question("GetNeighbor", "GetNeighbor", {"entity": entity, "direction": "both"}),
        Question("Degree", "Degree", {"entity": entity}),
        Question("Feature", "Feature", {"entity": entity}),
        Question("observe", "observe", {"question": question, "entities": [entity]}),
        Question("Compose", "Compose", {"expression": composed}),
        Question("Sparql", "Sparql", {"query": query}),
        Question(RESOURCE, RESOURCE, {"uri": f"kg://entity/Q{entity.rpartition('/Q')[2].removesuffix('>')}"}),
    ]


def _path(kind: str, pair: Pair, *, max_hops: int) -> Question:
    source, target = (f"<{each}>" for each in pair)
    return Question(kind, "GetPath", {"source": source, "target": target, "max_hops": max_hops})
