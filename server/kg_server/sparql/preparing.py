"""What is run in place of a query as it was written, and what its readers should know of that."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import anyio

from kg_adapters.errors import BackendTimeout
from kg_adapters.prefixes import Position
from kg_adapters.protocol import KGAdapter
from kg_boundary.shown import in_quotes
from kg_server.identity import said_of_reading
from kg_server.meaning import Meaning
from kg_server.names import MAX_LABEL, names_of
from kg_server.sparql.labels import asks_for_labels, put_labels
from kg_server.sparql.naming import Meant, meanings, shown_all
from kg_server.sparql.outline import outline_of
from kg_server.sparql.rewriting import Edits, put_ids
from kg_server.sparql.syntax import Outline

_MARKS: Final = ('@"', "@'")
_LABEL: Final = "label"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query as it is run.

    Args:
        text: SPARQL.
        note: What was read as what, in full sentences; empty where nothing need be said.
        read: The ids that names stand for.
        edits: How it came out of the query that was written.
    """

    text: str
    note: str = ""
    read: Mapping[str, str] = field(default_factory=dict[str, str])
    edits: Edits = field(default_factory=Edits)


async def prepared(graph: KGAdapter, meaning: Meaning, query: str, *, timeout_s: float) -> Prepared:
    """Return a query with ids in place of its names, and without Wikidata's ways to ask for labels.

    Raises:
        InvalidRequest: A name stands for nothing in its place, or for too much.
        BackendTimeout: The graph did not say in time what the names stand for.
    """
    if _LABEL not in query.lower() and not any(mark in query for mark in _MARKS):
        return Prepared(query)
    try:
        with anyio.fail_after(timeout_s):
            return await _with_ids(graph, meaning, query)
    except TimeoutError:
        raise BackendTimeout(
            f"The graph gave no answer within {timeout_s:g} s to what the names in the query stand for. Ask again with "
            "a larger timeout_s, or write ids: Retrieve finds them."
        ) from None


async def _with_ids(graph: KGAdapter, meaning: Meaning, query: str) -> Prepared:
    outline = outline_of(query)
    meant = await meanings(graph, meaning, query, outline)
    edits = Edits()
    labels = await _with_labels(graph, outline, edits) if _LABEL in query.lower() else ""
    put_ids(query, outline, meant, edits)
    distinct = list(dict.fromkeys(meant.values()))
    read = {each.text: "" for each in distinct}
    for text in read:
        ids = (short for each in distinct if each.text == text for short in _ids(graph, each))
        read[text] = ", ".join(dict.fromkeys(ids))
    note = f"{await _note(graph, distinct)} {labels}".strip()
    return Prepared(edits.applied(query, outline), note, read, edits)


async def _with_labels(graph: KGAdapter, outline: Outline, edits: Edits) -> str:
    """Do without Wikidata's ways to ask for labels, by the relations to labels that the graph has."""
    if not asks_for_labels(outline):
        return ""
    features = {each.iri for each in (await graph.schema()).features}
    vocabulary = graph.vocabulary
    used = tuple(each for each in vocabulary.labels if each in features)
    return put_labels(outline, replace(vocabulary, labels=used or vocabulary.labels[:1]), edits)


def _ids(graph: KGAdapter, meant: Meant) -> Sequence[str]:
    position: Position = "relation" if meant.sort == "relation" else "entity"
    return [graph.prefixes.shorten(each, position) for each in meant.iris]


async def _note(graph: KGAdapter, meant: Sequence[Meant]) -> str:
    """Return what was not plainly the name of one thing."""
    readings = Counter(text for text, _ in {(each.text, each.iris) for each in meant})
    told = [each for each in meant if not each.plain or len(each.iris) > 1 or readings[each.text] > 1]
    names = await names_of(graph, [iri for each in told for iri in each.iris])
    notes: list[str] = []
    for each in told:
        name = in_quotes(each.text, MAX_LABEL)
        if len(each.iris) > 1:
            notes.append(f"{name} names {shown_all(each, names)}. All are taken.")
        elif each.how:
            pieces = said_of_reading(each.text, next(iter(each.iris)), each.how)
            notes.append("".join(piece if isinstance(piece, str) else names.entity(piece) for piece in pieces))
        else:
            show = names.relation if each.sort == "relation" else names.entity
            notes.append(f"Read {name} as {' '.join(map(show, each.iris))}.")
    return " ".join(dict.fromkeys(notes))
