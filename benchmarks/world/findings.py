"""What a client in memory finds in the first answers to each question."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from mcp import Client

from benchmarks.world.answers import Reply, Wanted, ask, shown, wanted
from benchmarks.world.gold import completed, gold_of
from benchmarks.world.graph import World
from benchmarks.world.questions import (
    ABSENT,
    INVERSE,
    NO_SUCH_ENTITY,
    ONE_HOP,
    QUALIFIER,
    TWO_HOP,
    Asked,
    full_iri,
    short_id,
)

IN_OBSERVE: Final = "the facts stand in observe"
IN_LITTLE: Final = "the facts stand in observe, within 1,000 tokens"
IN_NEIGHBORS: Final = "the facts stand in GetNeighbor"
IN_ONE: Final = "the facts stand in one answer"
STATED: Final = "GetNeighbor over the relation says that it is stated"
EXACT: Final = "Retrieve says that the name is exact"
NO_NEIGHBOR: Final = "GetNeighbor says that there is none"
NO_FEATURE: Final = "Feature says that there is none"
NO_SCHEMA: Final = "Schema says that there is no such kind of fact"
NO_NAME: Final = "Retrieve says that nothing is named so"
OBSERVE: Final = "observe"
GET_NEIGHBOR: Final = "GetNeighbor"
RETRIEVE: Final = "Retrieve"

_LITTLE: Final = 1_000
# Where GetNeighbor looks for what answers a kind of question; a career may be asked about from either of its ends.
_DIRECTIONS: Final[Mapping[str, str]] = {INVERSE: "in", QUALIFIER: "both"}
# What the typed fields of an answer say about something that is not in the graph.
_NOT_THERE: Final = ("denied", "unknown", "unnamed")
_NOT_NAMED: Final = ("none", "loose")

Told: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found for one question.

    Args:
        asked: The question.
        claims: Whether each of the sentences above holds.
        tokens: How long the answer of each tool was.
    """

    asked: Asked
    claims: Mapping[str, bool]
    tokens: Mapping[str, int] = field(default_factory=dict[str, int])


async def findings(
    client: Client, world: World, questions: Iterable[Asked], told: Told = lambda: None
) -> list[Finding]:
    """Ask each question as an assistant would that knows the names, and look into the first answers."""
    found: list[Finding] = []
    for asked in questions:
        finding = await (_absent if asked.kind in ABSENT else _present)(client, world, asked)
        if finding is not None:
            found.append(finding)
        told()
    return found


def share(found: Sequence[Finding], kind: str, claim: str) -> float:
    """Return for which share of a kind's questions a claim holds."""
    held = [finding.claims[claim] for finding in found if finding.asked.kind == kind and claim in finding.claims]
    return sum(held) / len(held)


def failing(found: Sequence[Finding], kind: str, claim: str) -> list[str]:
    """Return the ids of a kind's questions for which a claim does not hold."""
    return [each.asked.id for each in found if each.asked.kind == kind and not each.claims.get(claim, True)]


async def _present(client: Client, world: World, asked: Asked) -> Finding | None:
    """Look for the facts; None for a question that rests on something missing."""
    gold = gold_of(world, asked)
    statements = wanted(world, gold.facts)
    if not statements or not gold.topics:
        return None
    direction = _DIRECTIONS.get(asked.kind, "out")
    topics = [full_iri(topic) for topic in gold.topics]
    observed = await ask(client, "observe", question=asked.question, entities=topics)
    # Of two topics of a career one holds it all, such as the organisation in which one person followed another.
    asked_about = gold.topics if asked.kind == QUALIFIER else gold.topics[:1]
    listed = [await _neighbors(client, topic, direction) for topic in asked_about]
    in_one = any(shown(reply, statements) for reply in listed)
    claims = {IN_OBSERVE: shown(observed, statements), IN_NEIGHBORS: in_one}
    claims[IN_ONE] = claims[IN_OBSERVE] or claims[IN_NEIGHBORS]
    if asked.kind == TWO_HOP:
        claims[IN_LITTLE] = await _in_little(client, asked, topics, statements)
    if asked.kind == ONE_HOP:
        relation = world.label(short_id(gold.facts[0].predicate.value))
        over = await ask(client, "GetNeighbor", entity=topics[0], relation=relation)
        named = await ask(client, "Retrieve", text=world.label(gold.topics[0]))
        claims |= {STATED: over.data.get("knowledge") == "stated", EXACT: named.data.get("match") == "exact"}
    return Finding(asked, claims, {OBSERVE: observed.tokens, GET_NEIGHBOR: listed[0].tokens})


async def _neighbors(client: Client, topic: str, direction: str) -> Reply:
    """Return what GetNeighbor answers, with the entity before each line: its first line names it for all of them."""
    reply = await ask(client, "GetNeighbor", entity=full_iri(topic), direction=direction)
    lines = (f"{topic} | {line}" for line in reply.text.splitlines())
    return replace(reply, text="\n".join(lines))


async def _in_little(client: Client, asked: Asked, topics: list[str], statements: Sequence[Wanted]) -> bool:
    short = await ask(client, "observe", question=asked.question, entities=topics, max_tokens=_LITTLE)
    return shown(short, statements)


async def _absent(client: Client, world: World, asked: Asked) -> Finding:
    """Make the calls that would answer if the graph could, and read what their typed fields say."""
    asked = completed(world, asked)
    if asked.kind == NO_SUCH_ENTITY:
        named = await ask(client, "Retrieve", text=asked.wanted)
        return Finding(asked, {NO_NAME: named.data.get("match") in _NOT_NAMED}, {RETRIEVE: named.tokens})
    topic = full_iri(asked.topic)
    calls: Mapping[str, Awaitable[Reply]] = {
        NO_NEIGHBOR: ask(client, "GetNeighbor", entity=topic, relation=asked.wanted),
        NO_FEATURE: ask(client, "Feature", node=topic, feature=asked.wanted),
        NO_SCHEMA: ask(client, "Schema", about=asked.wanted),
    }
    replies = {claim: await call for claim, call in calls.items()}
    claims = {claim: reply.data.get("knowledge") in _NOT_THERE for claim, reply in replies.items()}
    return Finding(asked, claims, {GET_NEIGHBOR: replies[NO_NEIGHBOR].tokens})
