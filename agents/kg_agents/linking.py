"""Which entities a question names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg_agents.dialogue import Dialogue, FailedReply, Task, Unreadable, fitting
from kg_agents.graph_values import Candidate, Named
from kg_agents.knowledge import KnowledgeGraph
from kg_agents.question_parts import QuestionParts, other_forms, overlap
from kg_boundary.shown import in_quotes
from kg_prompts import render
from kg_prompts.oda import LinkingPrompt, MentionsPrompt

MAX_ENTITIES: Final = 5
LONGEST_NAME: Final = 8
"""How many words of a question are tried as one name."""

_REPLY_TOKENS: Final = 200
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Linked:
    """A part of a question, and the entity that it is taken for."""

    mention: str
    entity: Candidate

    def __str__(self) -> str:
        return f"{in_quotes(self.mention)} is {self.entity.label} ({self.entity.id})"


@dataclass(frozen=True, slots=True)
class Linking:
    """The entities that a question is about, and why what else was named stands for none."""

    linked: tuple[Linked, ...] = ()
    passed_over: tuple[str, ...] = ()


async def link_given(graph: KnowledgeGraph, texts: Sequence[str]) -> Linking:
    """Return the entities that ids, IRIs or names stand for, by the short ids that the tools show, each once.

    What stands for nothing, or for several things, is passed over and said.

    Args:
        graph: The graph.
        texts: What was given.

    Raises:
        ToolError: The server does not answer.
    """
    found: dict[str, Linked] = {}
    passed_over: list[str] = []
    for named in await graph.identify([text.strip() for text in texts], limit=_SHOWN):
        if len(named.meant) == 1:
            found.setdefault(named.meant[0].id, Linked(named.text, named.meant[0]))
        else:
            passed_over.append(_refusal(named))
    return Linking(tuple(found.values()), tuple(passed_over))


async def link_by_names(graph: KnowledgeGraph, question: str) -> Linking:
    """Return the entities that parts of a question name, exactly or misspelt, the longest parts first tried.

    Names with a capital letter in them are what a question is about; where there are none, other names count. Who
    shares a name is found under it. A name inside a longer one that the graph does not have is not taken.
    """
    parts = QuestionParts.of(question)
    found: list[tuple[range, Linked]] = []
    for length in range(min(LONGEST_NAME, len(parts.words)), 0, -1):
        spans = parts.names_of(length, [taken for taken, _ in found])
        for named in await graph.identify(list(spans), limit=_SHOWN):
            if named.meant and not any(overlap(spans[named.text], taken) for taken, _ in found):
                found += [(spans[named.text], Linked(named.text, entity)) for entity in named.meant]
    unknown = parts.unknown_names([taken for taken, _ in found])
    sure = [each for taken, each in found if not any(overlap(taken, name) for name in unknown.values())]
    names = [each for each in sure if _is_proper(each, parts)]
    return Linking(tuple((names or ([] if unknown else sure))[:MAX_ENTITIES]), tuple(map(_unknown, unknown)))


async def link_by_model(graph: KnowledgeGraph, question: str, talk: Dialogue) -> Linking:
    """Return the entities that a model finds named in a question; by names alone where its reply cannot be read.

    A name that the graph does not have is tried once more in other forms.

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
    looked_up = await graph.identify(mentions)
    named = [each if each.meant else await _otherwise(graph, each) for each in looked_up]
    sure, unsure = _by_verdict(named)
    if unsure:
        sure += await _chosen(question, unsure, talk)
    found = {each.entity.id: each for each in sure}
    linked = tuple(found.values())[:MAX_ENTITIES]
    taken = {each.mention for each in linked}
    passed_over = tuple(_refusal(each) for each in named if each.text not in taken)
    return Linking(linked, passed_over) if linked or unsure else await link_by_names(graph, question)


def _by_verdict(named: Sequence[Named]) -> tuple[list[Linked], list[Linked]]:
    """Return what one entity alone bears the name of, and what may be meant besides.

    Namesakes may be; where nothing else is sure, so may what is near a name. What has no label of its own never is.
    """
    labelled = {each.text: [of for of in each.candidates if of.label and of.label != of.id] for each in named}
    sure = [Linked(each.text, *labelled[each.text]) for each in named if each.meant and len(labelled[each.text]) == 1]
    unsure = [each for each in named if (each.meant and len(labelled[each.text]) > 1) or not (each.meant or sure)]
    return sure, [Linked(each.text, entity) for each in unsure for entity in labelled[each.text]]


async def _chosen(question: str, unsure: Sequence[Linked], talk: Dialogue) -> list[Linked]:
    """Have the model choose among entities by what tells them apart; all namesakes where its reply cannot be read.

    Raises:
        RunEnded: The model fails.
    """
    lines = (f"{number}. {each.entity.described}" for number, each in enumerate(unsure, start=1))
    prompt = render(LinkingPrompt(question=question, candidates="\n".join(lines)))
    task = Task("linking", fitting(lambda: [prompt], "the question and the candidates"), _REPLY_TOKENS, 0.0)
    try:
        numbers = await talk.ask(task, lambda reply: _numbers(reply, len(unsure)))
    except FailedReply:
        return [each for each in unsure if each.entity.label.casefold() == each.mention.casefold()]
    return [unsure[number - 1] for number in numbers]


def _numbers(reply: str, most: int) -> tuple[int, ...] | Unreadable:
    numbers = [int(each) for each in re.findall(r"\d{1,3}", reply)]
    if wrong := [each for each in numbers if not 1 <= each <= most]:
        return Unreadable(f"there is no candidate {wrong[0]}. Write numbers from 1 to {most}, or none.")
    if not numbers and not re.search(r"\bnone\b", reply, re.IGNORECASE):
        return Unreadable("it holds no number. Write the numbers of candidates, or none.")
    return tuple(dict.fromkeys(numbers))


async def _otherwise(graph: KnowledgeGraph, named: Named) -> Named:
    """Return what a name stands for in another form, or the name as it was found where none helps."""
    forms = other_forms(named.text)
    tried = await graph.identify(forms)
    return next((replace(each, text=named.text) for each in tried if each.meant), named)


def _is_proper(linked: Linked, parts: QuestionParts) -> bool:
    """Say whether a name is written as one, there and here; in a question without capitals it need not be here."""
    here = not parts.has_capitals or linked.mention.lower() != linked.mention
    return here and linked.entity.label.lower() != linked.entity.label


def _unknown(name: str) -> str:
    return f"Nothing in the graph is named {in_quotes(name)}."


def _refusal(named: Named) -> str:
    """Return why a text stands for no single entity."""
    shown = "; ".join(f"{each.label} ({each.id})" for each in named.candidates)
    asked = in_quotes(named.text)
    if named.meant:
        return f"{asked} names several things: {shown}. Give the id of the one that is meant."
    return f"Nothing in the graph is named {asked}.{f' Near, not the same: {shown}.' if shown else ''}"


def _mentions(reply: str) -> list[str] | Unreadable:
    lines = [re.sub(r"^\s*(?:[-*]\s+|\d+[.)]\s+)", "", line).strip(" \t'\"*`") for line in reply.splitlines()]
    names = [line for line in dict.fromkeys(lines) if line and len(line) <= 200]
    return names[:MAX_ENTITIES] or Unreadable("it holds no name. Write one name on each line.")
