"""Which entities a question names."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kg_agents.dialogue import Dialogue, FailedReply, Task, Unreadable, fitting
from kg_agents.graph_values import Candidate
from kg_agents.knowledge import Direction, KnowledgeGraph
from kg_agents.tool_calls import ToolError, ToolRefusal
from kg_boundary.shown import in_quotes
from kg_prompts import render
from kg_prompts.oda import MentionsPrompt

MAX_ENTITIES: Final = 5
MAX_WORDS: Final = 30
LONGEST_NAME: Final = 6
"""How many words of a question are tried as one name."""

_REPLY_TOKENS: Final = 200
_LEAST_LIKE: Final = 0.6
_WORD: Final = re.compile(r"[^\W_]+(?:['.\u2019-][^\W_]+)*\.?|&", re.UNICODE)
_ARTICLES: Final = frozenset(("a", "an", "the"))
_SMALL: Final = frozenset(
    "a about all an and any are as at be been born by can did do does find for from give had has have he her his how i "  # noqa: SIM905 - a list of words reads best as words
    "in into is it its list many me much name of off on or she show so tell than that the their them then there they "
    "this through to under up was were what when where which who whom whose why will with you your".split()
)


@dataclass(frozen=True, slots=True)
class Linked:
    """A part of a question, and the entity that it is taken for."""

    mention: str
    entity: Candidate

    def __str__(self) -> str:
        return f"{in_quotes(self.mention)} is {self.entity.label} ({self.entity.id})"


async def link_given(graph: KnowledgeGraph, texts: Sequence[str]) -> tuple[Linked, ...]:
    """Return the entities that ids, IRIs or names stand for, by the short ids that the tools show, each once.

    Args:
        graph: The graph.
        texts: What was given.

    Raises:
        ToolError: One of them stands for nothing, or the server does not answer.
    """
    found: dict[str, Linked] = {}
    for text in texts:
        entity = await _given(graph, text.strip())
        found.setdefault(entity.id, Linked(text, entity))
    return tuple(found.values())


async def link_by_names(graph: KnowledgeGraph, question: str) -> tuple[Linked, ...]:
    """Return the entities whose labels or aliases stand in a question, the longest names first tried.

    Names with a capital letter in them are what a question is about; where there are none, other names count.
    """
    found: list[Linked] = []
    words = list(_WORD.finditer(question))[:MAX_WORDS]
    taken: set[int] = set()
    for first, last in _spans(len(words)):
        span = range(first, last)
        mention = question[words[first].start() : words[last - 1].end()].rstrip(".")
        begins = first + 1 if last - first > 1 and words[first][0].lower() in _ARTICLES else first
        if taken.intersection(span) or any(_is_small(words, place) for place in (begins, last - 1)):
            continue
        entity = await _named(graph, mention)
        if entity is not None:
            taken.update(span)
            found.append(Linked(mention, entity))
    names = [each for each in found if each.entity.label.lower() != each.entity.label]
    return tuple((names or found)[:MAX_ENTITIES])


async def link_by_model(graph: KnowledgeGraph, question: str, talk: Dialogue) -> tuple[Linked, ...]:
    """Return the entities that a model finds named in a question; by names alone where its reply cannot be read.

    Raises:
        RunEnded: The model fails.
    """
    prompt = render(MentionsPrompt(question=question, most=MAX_ENTITIES))
    try:
        mentions = await talk.ask(
            Task("mentions", fitting(lambda: [prompt], "the question"), _REPLY_TOKENS, 0.0), _mentions
        )
    except FailedReply:
        return await link_by_names(graph, question)
    found: dict[str, Linked] = {}
    for mention in mentions:
        for entity in await graph.retrieve(mention, limit=1):
            if entity.score >= _LEAST_LIKE:
                found.setdefault(entity.id, Linked(mention, entity))
    return tuple(found.values())[:MAX_ENTITIES] or await link_by_names(graph, question)


async def _given(graph: KnowledgeGraph, text: str) -> Candidate:
    try:
        return await _by_id(graph, text)
    except ToolRefusal as refusal:
        # The text is no id, or an unknown one.
        return await _by_name(graph, text, refusal)


async def _by_id(graph: KnowledgeGraph, text: str) -> Candidate:
    """Return the entity that an id in any form stands for: what the tools say of it shows the form that they use."""
    sides: tuple[tuple[Direction, int], ...] = (("out", 0), ("in", 2))
    for direction, place in sides:
        around = await graph.neighbors(text, direction=direction, limit=1)
        # Where there is no triple, a label can only be its own.
        short = around.triples[0][place] if around.triples else next(iter(around.labels.nodes), None)
        if short is not None:
            return Candidate(short, around.labels.nodes.get(short, short), "", 1.0, "id")
    return Candidate(text, text, "", 1.0, "id")


async def _by_name(graph: KnowledgeGraph, text: str, refusal: ToolRefusal) -> Candidate:
    near = [each for each in await graph.retrieve(text, limit=3) if not each.matched.startswith("meaning ")]
    if near and _is_exact(near[0]):
        return near[0]
    if not near:
        raise refusal
    names = " or ".join(f"{each.label} ({each.id})" for each in near)
    raise ToolError(f"Nothing in the graph is called {in_quotes(text)}. Did you mean {names}?") from refusal


def _is_exact(candidate: Candidate) -> bool:
    return candidate.matched.startswith(("label ", "alias "))


def _spans(words: int) -> Iterator[tuple[int, int]]:
    for length in range(min(LONGEST_NAME, words), 0, -1):
        for first in range(words - length + 1):
            yield first, first + length


def _is_small(words: Sequence[re.Match[str]], place: int) -> bool:
    """Say whether no name begins or ends with a word; one with a capital inside a question may be part of a name."""
    word = words[place][0]
    return word.lower() in _SMALL and (place == 0 or word[0].islower())


async def _named(graph: KnowledgeGraph, mention: str) -> Candidate | None:
    for entity in await graph.retrieve(mention, limit=1):
        if _is_exact(entity):
            return entity
    return None


def _mentions(reply: str) -> list[str] | Unreadable:
    lines = [re.sub(r"^\s*(?:[-*]\s+|\d+[.)]\s+)", "", line).strip(" \t'\"*`") for line in reply.splitlines()]
    names = [line for line in dict.fromkeys(lines) if line and len(line) <= 200]
    return names[:MAX_ENTITIES] or Unreadable("it holds no name. Write one name on each line.")
