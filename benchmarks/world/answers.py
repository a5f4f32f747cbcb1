"""Whether an answer holds a statement, and how long it is: read from the text that a model sees."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import pyoxigraph as ox
from mcp import Client
from mcp.types import TextContent

from benchmarks.world.graph import End, World, end_of, str_of
from benchmarks.world.questions import short_id
from kg_server.budget import token_count

# Before and after a name or a number: what cannot be a part of it.
_BEFORE: Final = r"(?<![\w:.,-])"
_AFTER: Final = r"(?![\w]|[.,-]\w)"
_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool answered.

    Args:
        text: What a model reads.
        data: The same as values; empty where the call was refused.
    """

    text: str
    data: Mapping[str, object]

    @property
    def tokens(self) -> int:
        """How much of a model's context the text takes, at most."""
        return token_count(self.text)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A statement to look for: each part in any of its spellings, all of them in one line."""

    parts: tuple[tuple[str, ...], ...]

    def stands_in(self, text: str) -> bool:
        """Whether a line says it."""
        patterns = [_pattern(part) for part in self.parts]
        return any(all(pattern.search(line) for pattern in patterns) for line in _composed(text).splitlines())


async def ask(client: Client, tool: str, **arguments: object) -> Reply:
    """Call a tool, and return its answer or why it was refused."""
    result = await client.call_tool(tool, arguments)
    text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    return Reply(text, {} if result.is_error else result.structured_content or {})


def wanted(world: World, facts: Iterable[ox.Triple]) -> list[Wanted]:
    """Return what an answer must show of the facts; the statements of an entry without a name are one."""
    found: list[Wanted] = []
    entries: dict[str, dict[tuple[str, ...], None]] = {}
    for fact in facts:
        ends = [end_of(fact.subject), end_of(fact.object)]
        unnamed = [end for end in ends if not isinstance(end, ox.Literal) and not world.names(end)]
        spelled = [_spellings(world, end) for end in ends if end not in unnamed]
        if unnamed:
            entries.setdefault(str_of(unnamed[0]), {}).update(dict.fromkeys(spelled))
        else:
            found.append(Wanted((spelled[0], _relation(world, fact.predicate), spelled[1])))
    return found + [Wanted(tuple(parts)) for parts in entries.values()]


def shown(reply: Reply, statements: Sequence[Wanted]) -> bool:
    """Whether an answer says all of the statements."""
    return all(statement.stands_in(reply.text) for statement in statements)


def _spellings(world: World, end: End) -> tuple[str, ...]:
    if not isinstance(end, ox.Literal):
        return (short_id(end.value), *world.names(end))
    if _NUMBER.fullmatch(end.value):
        # The engine that gold answers come from leaves out a fraction of nothing.
        return tuple(form for value in (end.value, f"{Decimal(end.value):,}") for form in (value, f"{value}.0"))
    return (end.value,)


def _relation(world: World, relation: ox.NamedNode) -> tuple[str, ...]:
    """Return how a relation may be called: by its id or a name, or by those of its declared inverse."""
    both = [relation.value, *filter(None, [world.inverses.get(relation.value)])]
    return tuple(name for iri in both for name in (short_id(iri), *world.names(ox.NamedNode(iri))))


def _pattern(spellings: Sequence[str]) -> re.Pattern[str]:
    return re.compile(_BEFORE + "(?:" + "|".join(re.escape(_composed(each)) for each in spellings) + ")" + _AFTER)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)
