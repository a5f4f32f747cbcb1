"""Retrieve: which entities a text may name."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rapidfuzz import fuzz
from rapidfuzz.utils import default_process

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import Candidate, Description
from kg_adapters.protocol import KGAdapter, SupportsSearchNote
from kg_adapters.terms import Node
from kg_boundary.shown import in_quotes, shown_within
from kg_server.meaning import Meaning
from kg_server.names import MAX_LABEL, Names, names_of, shown_label
from kg_server.resolve import require_entity
from kg_server.results import Answer, CandidatesResult, fitted

MAX_TYPES: Final = 3
SURE: Final = 0.8
"""How like a name the whole text has to be to be taken for it; misspelt names are more alike than this."""


async def retrieval(
    graph: KGAdapter, meaning: Meaning, *, text: str, limit: int, type: str | None, max_tokens: int
) -> Answer:
    """Answer Retrieve.

    Raises:
        InvalidRequest: The text is blank, or the type is no id.
        UnknownEntity: The graph does not mention the type.
    """
    wanted = text.strip()
    if not wanted:
        raise InvalidRequest("The text is blank. Give a name, or words that describe what you look for.")
    kind = None if type is None else await require_entity(graph, type)
    found, missing = await _found(graph, meaning, wanted, limit, kind)
    descriptions = await graph.describe([each.entity for each in found])
    types = [each for described in descriptions.values() for each in described.types[:MAX_TYPES]]
    names = await names_of(graph, (*(each.entity for each in found), *types, *([kind] if kind is not None else [])))
    hint = await _id_hint(graph, wanted)
    note = f" {graph.search_note}" if isinstance(graph, SupportsSearchNote) and graph.search_note else ""
    note += f" Names alone were compared: {missing}." if missing else ""
    rows = [_row(each, descriptions.get(each.entity), names) for each in found]
    lines = [_line(each, row, names) for each, row in zip(found, rows, strict=True)]

    def build(shown: int) -> Answer:
        result = CandidatesResult(
            status="empty" if not rows else "ok" if shown >= len(rows) else "truncated",
            summary=_summary(wanted, len(rows[:shown]), kind, names) + hint + note,
            candidates=rows[:shown],
            missing=missing or None,
        )
        return Answer(result, tuple(lines[:shown]))

    return fitted(build, len(rows), max_tokens)


async def _found(
    graph: KGAdapter, meaning: Meaning, text: str, limit: int, type: Node | None
) -> tuple[Sequence[Candidate], str]:
    """Return what was found, and why nothing was looked for by meaning where that failed."""
    named = await graph.search(text, limit=limit, type=type)
    if named and _likeness(text, named[0]) >= SURE:
        return named, ""
    meant = await meaning.candidates(text, limit=limit, type=type)
    return ranked(text, named, meant.candidates, limit), meant.missing


def ranked(text: str, named: Sequence[Candidate], meant: Sequence[Candidate], limit: int) -> Sequence[Candidate]:
    """Return one ranking of what was found by name and by meaning, each entity once, at most `limit`.

    Where a text is no name but says what something is, single words of it match many names. So these count as much as
    the whole name is like the whole text, beside the cosines.
    """
    if not meant:
        return named
    whole = [replace(each, score=_likeness(text, each)) for each in named]
    best: dict[Node, Candidate] = {}
    for each in sorted((*whole, *meant), key=lambda candidate: -candidate.score):
        best.setdefault(each.entity, each)
    return list(best.values())[:limit]


def _likeness(text: str, candidate: Candidate) -> float:
    return fuzz.token_sort_ratio(text, candidate.matched_text, processor=default_process) / 100


async def _id_hint(graph: KGAdapter, text: str) -> str:
    """Return what to say about a text that is an id already."""
    try:
        node = graph.prefixes.expand(text)
    except InvalidRequest:
        return ""
    described = await graph.describe([node])
    if node not in described or "entity" not in described[node].roles:
        return ""
    return f" {in_quotes(text, MAX_LABEL)} is itself the id of {(await names_of(graph, [node])).entity(node)}."


def _row(candidate: Candidate, described: Description | None, names: Names) -> list[str]:
    types = described.types[:MAX_TYPES] if described is not None else ()
    return [
        names.entity_id(candidate.entity),
        shown_label(names.labels.get(candidate.entity, candidate.entity.local_part)),
        shown_within((described.description if described is not None else None) or "", MAX_LABEL),
        ", ".join(names.entity(each) for each in types),
        f"{candidate.score:.2f}",
        _how(candidate),
    ]


def _how(candidate: Candidate) -> str:
    return f"{candidate.matched_by} {in_quotes(candidate.matched_text, MAX_LABEL)}"


def _line(candidate: Candidate, row: list[str], names: Names) -> str:
    _, _, description, types, score, how = row
    return " | ".join(
        part for part in (names.entity(candidate.entity), description, types, f"{score} by {how}") if part
    )


def _summary(text: str, shown: int, kind: Node | None, names: Names) -> str:
    asked = in_quotes(text, MAX_LABEL)
    among = f" among {names.entity(kind)}" if kind is not None else ""
    if shown == 0:
        less = " without the type," if kind is not None else ""
        return f"Nothing{among} is called {asked} or alike. Try{less} another spelling or fewer words."
    noun = "entity" if shown == 1 else "entities"
    return f"{shown} {noun}{among} for {asked}, best first."
