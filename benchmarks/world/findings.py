"""Whether the first answers to questions about the world hold the facts that answer them, or report what is missing.

The facts are recorded in `facts.json`, for the questions of `questions.json` and for others made from the graph.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from mcp import Client
from mcp.types import TextContent
from pydantic import BaseModel, ConfigDict, TypeAdapter

from benchmarks.figures import Figure, Line, Section, Target, Timings
from benchmarks.graphs import Bench
from benchmarks.world.questions import (
    ABSENT,
    FOLDER,
    INVERSE,
    LITERAL,
    NO_SUCH_ENTITY,
    NO_SUCH_FACT,
    NO_VALUE,
    ONE_HOP,
    QUALIFIER,
    TWO_HOP,
    full_iri,
)
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_server.answers.results import token_count
from kg_server.app import build_server
from kg_server.settings import Settings

FACTS: Final = FOLDER / "facts.json"
WORLD: Final = "sample:world"
IN_OBSERVE: Final = "the facts stand in observe"
IN_LITTLE: Final = "the facts stand in observe, within 1,000 tokens"
IN_NEIGHBORS: Final = "the facts stand in GetNeighbor"
IN_ONE: Final = "the facts stand in one answer"
STATED: Final = "GetNeighbor over the relation reports that it is stated"
EXACT: Final = "Retrieve reports that the name is exact"
NO_NEIGHBOR: Final = "GetNeighbor reports that there is none"
NO_NAME: Final = "Retrieve reports that nothing has this name"
TARGETS: Final[Mapping[tuple[str, str], float]] = {
    (LITERAL, IN_ONE): 0.95,
    (ONE_HOP, IN_ONE): 0.95,
    (ONE_HOP, STATED): 0.95,
    (ONE_HOP, EXACT): 0.98,
    (TWO_HOP, IN_ONE): 0.95,
    (TWO_HOP, IN_LITTLE): 0.85,
    (INVERSE, IN_ONE): 0.95,
    (QUALIFIER, IN_ONE): 0.95,
    (NO_SUCH_FACT, NO_NEIGHBOR): 0.95,
    (NO_VALUE, NO_NEIGHBOR): 0.95,
    (NO_SUCH_ENTITY, NO_NAME): 1.0,
}
_LITTLE: Final = 1_000
# Where GetNeighbor finds what answers a kind of question; a career may be asked about from either of its ends.
_DIRECTIONS: Final[Mapping[str, str]] = {INVERSE: "in", QUALIFIER: "both"}
# How the typed fields of an answer report something that is not in the graph.
_NOT_THERE: Final = ("denied", "unknown", "unnamed")
_NOT_NAMED: Final = ("none", "loose")
# Before and after a name or a number: what cannot be a part of it.
_BEFORE: Final = r"(?<![\w:.,-])"
_AFTER: Final = r"(?![\w]|[.,-]\w)"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A fact to find in an answer: each part in any of its spellings, all of them in one line."""

    parts: Sequence[Sequence[str]]

    def stands_in(self, text: str) -> bool:
        """Return whether a line states it."""
        patterns = [_pattern(part) for part in self.parts]
        return any(all(pattern.search(line) for pattern in patterns) for line in _composed(text).splitlines())


class Expected(BaseModel):
    """A question, and what its answers must show.

    Args:
        id: As in `questions.json`, or that of a question made from the graph.
        kind: The sort of question.
        question: The question in words.
        topics: The short ids of the entities that it is about.
        facts: The facts that answer it, as spellings of their parts; none where the graph cannot answer it.
        relation: The name of the relation of a one-hop question.
        name: The name of its topic.
        wanted: The words for what the graph does not hold: a relation's, or an entity's name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    kind: str
    question: str
    topics: tuple[str, ...]
    facts: tuple[tuple[tuple[str, ...], ...], ...] = ()
    relation: str = ""
    name: str = ""
    wanted: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool answered: the text that a model reads, and its values, which are empty where it was refused."""

    text: str
    data: Mapping[str, object]

    @property
    def tokens(self) -> int:
        """The most tokens that the text takes."""
        return token_count(self.text)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found for one question: whether each of the claims above holds, and the tokens of each tool's answer."""

    asked: Expected
    claims: Mapping[str, bool]
    tokens: Mapping[str, int] = field(default_factory=dict[str, int])


def read_facts(path: Path = FACTS) -> list[Expected]:
    """Read the recorded questions with their facts."""
    return TypeAdapter(list[Expected]).validate_json(path.read_bytes())


async def ask(client: Client, tool: str, **arguments: object) -> Reply:
    """Call a tool, and return its answer or why it was refused."""
    result = await client.call_tool(tool, arguments)
    text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    return Reply(text, {} if result.is_error else result.structured_content or {})


async def findings(client: Client, questions: Iterable[Expected]) -> list[Finding]:
    """Ask each question as an assistant would that knows the names, and check the first answers."""
    return [await (_absent if asked.kind in ABSENT else _present)(client, asked) for asked in questions]


def share(found: Sequence[Finding], kind: str, claim: str) -> float:
    """Return for which share of a kind's questions a claim holds."""
    held = [finding.claims[claim] for finding in found if finding.asked.kind == kind]
    return sum(held) / len(held)


def failing(found: Sequence[Finding], kind: str, claim: str) -> list[str]:
    """Return the ids of a kind's questions for which a claim does not hold."""
    return [each.asked.id for each in found if each.asked.kind == kind and not each.claims[claim]]


async def measure_world(bench: Bench) -> Section:
    """Ask the recorded questions, and look for what answers them."""
    questions = read_facts()
    settings = Settings(cache_folder=bench.cache, data_folder=bench.cache / "data")
    bench.tell(f"Asking {len(questions)} questions about {WORLD} …")
    async with (
        aclosing(LocalAdapter(open_sample(bench.cache, WORLD))) as graph,
        Client(build_server(graph, settings)) as client,
    ):
        found = await findings(client, questions)
    notes = [
        f"Does not hold, {kind}, {claim}: {', '.join(missed)}."
        for kind, claim in TARGETS
        if (missed := failing(found, kind, claim))
    ]
    return Section("world", f"Answers about {WORLD}: {len(found)} questions", [*_lines(found)], notes)


def _lines(found: Sequence[Finding]) -> Iterator[Line]:
    for kind in dict.fromkeys(kind for kind, _ in TARGETS):
        ours = [finding for finding in found if finding.asked.kind == kind]
        for claim in ours[0].claims:
            limit = TARGETS.get((kind, claim))
            target = None if limit is None else Target(limit, least=True)
            yield Line(f"{kind} ({len(ours)}): {claim}", Figure(share(found, kind, claim), "share"), target)
        for tool in ours[0].tokens:
            tokens = Timings(tuple(float(finding.tokens[tool]) for finding in ours))
            yield Line(f"{kind}: length of {tool}", Figure.of(tokens, "tokens"))


async def _present(client: Client, asked: Expected) -> Finding:
    facts = [Wanted(fact) for fact in asked.facts]

    def shown(reply: Reply) -> bool:
        return all(fact.stands_in(reply.text) for fact in facts)

    topics = [full_iri(topic) for topic in asked.topics]
    observed = await ask(client, "observe", question=asked.question, entities=topics)
    # Of two topics of a career one holds it all, such as the organisation in which one person followed another.
    asked_about = asked.topics if asked.kind == QUALIFIER else asked.topics[:1]
    listed = [await _neighbors(client, topic, _DIRECTIONS.get(asked.kind, "out")) for topic in asked_about]
    claims = {IN_OBSERVE: shown(observed), IN_NEIGHBORS: any(map(shown, listed))}
    claims[IN_ONE] = claims[IN_OBSERVE] or claims[IN_NEIGHBORS]
    if asked.kind == TWO_HOP:
        short = await ask(client, "observe", question=asked.question, entities=topics, max_tokens=_LITTLE)
        claims[IN_LITTLE] = shown(short)
    if asked.kind == ONE_HOP:
        over = await ask(client, "GetNeighbor", entity=topics[0], relation=asked.relation)
        named = await ask(client, "Retrieve", text=asked.name)
        claims |= {STATED: over.data.get("knowledge") == "stated", EXACT: named.data.get("match") == "exact"}
    return Finding(asked, claims, {"observe": observed.tokens, "GetNeighbor": listed[0].tokens})


async def _neighbors(client: Client, topic: str, direction: str) -> Reply:
    """Return the answer of GetNeighbor with the entity before each line: its first line names it for all of them."""
    reply = await ask(client, "GetNeighbor", entity=full_iri(topic), direction=direction)
    return replace(reply, text="\n".join(f"{topic} | {line}" for line in reply.text.splitlines()))


async def _absent(client: Client, asked: Expected) -> Finding:
    """Make the call that would answer if the graph could, and read its typed fields."""
    if asked.kind == NO_SUCH_ENTITY:
        named = await ask(client, "Retrieve", text=asked.wanted)
        return Finding(asked, {NO_NAME: named.data.get("match") in _NOT_NAMED}, {"Retrieve": named.tokens})
    (topic,) = asked.topics
    reply = await ask(client, "GetNeighbor", entity=full_iri(topic), relation=asked.wanted)
    return Finding(asked, {NO_NEIGHBOR: reply.data.get("knowledge") in _NOT_THERE}, {"GetNeighbor": reply.tokens})


def _pattern(spellings: Sequence[str]) -> re.Pattern[str]:
    return re.compile(_BEFORE + "(?:" + "|".join(re.escape(_composed(each)) for each in spellings) + ")" + _AFTER)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)
