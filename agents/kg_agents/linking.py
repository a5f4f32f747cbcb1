"""Which entities a question names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kg_agents.dialogue import Dialogue, FailedReply, Task, Unreadable, fitting
from kg_agents.graph_values import Candidate, Named
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.tool_calls import ToolError
from kg_boundary.shown import in_quotes
from kg_prompts import render
from kg_prompts.oda import MentionsPrompt

MAX_ENTITIES: Final = 5
MAX_WORDS: Final = 30
LONGEST_NAME: Final = 6
"""How many words of a question are tried as one name."""

_REPLY_TOKENS: Final = 200
_SHOWN: Final = 3
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
    for named in await graph.identify([text.strip() for text in texts], limit=_SHOWN):
        if len(named.meant) != 1:
            raise ToolError(_refusal(named))
        found.setdefault(named.meant[0].id, Linked(named.text, named.meant[0]))
    return tuple(found.values())


async def link_by_names(graph: KnowledgeGraph, question: str) -> tuple[Linked, ...]:
    """Return the entities that parts of a question name, exactly or misspelt, the longest parts first tried.

    Names with a capital letter in them are what a question is about; where there are none, other names count. Of
    namesakes the best connected one is taken.
    """
    found: list[Linked] = []
    words = list(_WORD.finditer(question))[:MAX_WORDS]
    taken: set[int] = set()
    for length in range(min(LONGEST_NAME, len(words)), 0, -1):
        spans = {
            question[words[first].start() : words[first + length - 1].end()].rstrip("."): range(first, first + length)
            for first in range(len(words) - length + 1)
            if not taken.intersection(range(first, first + length)) and _may_be_name(words, first, length)
        }
        for named in await graph.identify(list(spans), limit=1):
            if named.meant and not taken.intersection(spans[named.text]):
                taken.update(spans[named.text])
                found.append(Linked(named.text, named.meant[0]))
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
    for named in await graph.identify(mentions):
        for entity in named.meant:
            found.setdefault(entity.id, Linked(named.text, entity))
    return tuple(found.values())[:MAX_ENTITIES] or await link_by_names(graph, question)


def _refusal(named: Named) -> str:
    """Return why a text stands for no single entity."""
    shown = "; ".join(f"{each.label} ({each.id})" for each in named.candidates)
    asked = in_quotes(named.text)
    if named.meant:
        return f"{asked} names several things: {shown}. Give the id of the one that is meant."
    return f"Nothing in the graph is named {asked}.{f' Near, not the same: {shown}.' if shown else ''}"


def _may_be_name(words: Sequence[re.Match[str]], first: int, length: int) -> bool:
    """Say whether a part of a question may be a name: neither its first nor its last word is a small one."""
    begins = first + 1 if length > 1 and words[first][0].lower() in _ARTICLES else first
    return not any(_is_small(words, place) for place in (begins, first + length - 1))


def _is_small(words: Sequence[re.Match[str]], place: int) -> bool:
    """Say whether no name begins or ends with a word; one with a capital inside a question may be part of a name."""
    word = words[place][0]
    return word.lower() in _SMALL and (place == 0 or word[0].islower())


def _mentions(reply: str) -> list[str] | Unreadable:
    lines = [re.sub(r"^\s*(?:[-*]\s+|\d+[.)]\s+)", "", line).strip(" \t'\"*`") for line in reply.splitlines()]
    names = [line for line in dict.fromkeys(lines) if line and len(line) <= 200]
    return names[:MAX_ENTITIES] or Unreadable("it holds no name. Write one name on each line.")
