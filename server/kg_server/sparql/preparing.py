"""Prepare a query: names become IRIs, labels are added."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

import anyio

from kg_adapters.errors import BackendTimeout
from kg_adapters.labels import Vocabulary
from kg_adapters.prefixes import Position
from kg_adapters.protocol import KGAdapter
from kg_boundary.shown import in_quotes
from kg_server.identity import said_of_reading
from kg_server.meaning import Meaning
from kg_server.names import MAX_LABEL, names_of
from kg_server.sparql.naming import Meant, meanings, shown_all
from kg_server.sparql.outline import outline_of
from kg_server.sparql.rewriting import Edits, put_ids
from kg_server.sparql.syntax import Outline, Select, Span

_SUFFIX: Final = "Label"
_SERVICES: Final = frozenset({"wikibase:label", "<http://wikiba.se/ontology#label>"})
_PARAMETERS: Final = frozenset({"bd:serviceParam", "<http://www.bigdata.com/rdf#serviceParam>"})


def asks_for_labels(outline: Outline) -> bool:
    """Say whether a query uses the label service or one of its variables."""
    return any(True for _ in _services(outline)) or bool(_unbound_labels(outline))


def put_labels(outline: Outline, vocabulary: Vocabulary, edits: Edits) -> str:
    """Do without the label service and its variables; return what was left out, in full sentences."""
    notes: list[str] = []
    for service in _services(outline):
        edits.drop(service)
        edits.instead[service[0]] = " ".join(_named_in(outline, service, vocabulary))
        notes.append("The label service is not needed: ids come with their labels.")
    for variable in _unbound_labels(outline):
        of = variable.removesuffix(_SUFFIX)
        uses = [at for at, each in enumerate(outline.tokens) if each.kind == "variable" and each.text[1:] == variable]
        listed = {at for select in outline.selects for at in _listed(outline, select)}
        if listed.issuperset(uses):
            notes.append(_without(outline, uses, of, edits))
            continue
        pattern = _label(vocabulary, f"?{of}", f"?{variable}")
        for group in {_group_around(outline, at) for at in uses}:
            if group is not None and not _comes_from_within(outline, group, variable):
                edits.instead[group[1]] = f"{pattern} {edits.instead.get(group[1], '}')}"
    return " ".join(dict.fromkeys(notes))


def _unbound_labels(outline: Outline) -> list[str]:
    """Return the variables that are called like the label of another one, and get no value from the query."""
    bound = _bound(outline)
    used = dict.fromkeys(outline.variables((0, len(outline.tokens))))
    return [each for each in used if each not in bound and each.removesuffix(_SUFFIX) in bound]


def _group_around(outline: Outline, at: int) -> Span | None:
    """Return the brackets of the group in which the value of a variable has to be known."""
    for select in outline.selects:
        if select.where is not None and any(part[0] <= at < part[1] for part in (select.projection, select.modifiers)):
            return select.where.span[0], select.where.span[1] - 1
    return outline.brackets_around(at)


def _comes_from_within(outline: Outline, group: Span, variable: str) -> bool:
    """Say whether a subquery in a group gives a variable to it."""
    inside = (each.projection for each in outline.selects if group[0] < each.projection[0] < group[1])
    return any(variable in outline.variables(projection) for projection in inside)


def _services(outline: Outline) -> Iterator[Span]:
    """Yield where the label service is called."""
    for first, token in enumerate(outline.tokens):
        if token.keyword != "SERVICE" or first + 2 >= len(outline.tokens):
            continue
        opening = first + 2
        if outline.tokens[first + 1].text not in _SERVICES or outline.tokens[opening].text != "{":
            continue
        depth = 0
        for at in range(opening, len(outline.tokens)):
            depth += {"{": 1, "}": -1}.get(outline.tokens[at].text, 0)
            if depth == 0:
                yield (first, at + 1)
                break


def _named_in(outline: Outline, service: Span, vocabulary: Vocabulary) -> Iterator[str]:
    """Yield patterns for the labels that the service gives to variables of the query's choice."""
    for each in outline.statements:
        subject, tail = outline.text(each.subject), outline.text(each.tail)
        inside = service[0] < each.subject[0] < service[1]
        if inside and subject not in _PARAMETERS and subject.startswith("?") and tail.startswith("?"):
            yield _label(vocabulary, subject, tail)


def _bound(outline: Outline) -> set[str]:
    """Return the variables that get a value from the query itself."""
    found = {
        variable
        for each in outline.statements
        for span in (each.subject, each.verb, each.tail)
        for variable in outline.variables(span)
    }
    tokens = outline.tokens
    for before, token in pairwise(tokens):
        if token.kind == "variable" and before.keyword in {"AS", "VALUES"}:
            found.add(token.text[1:])
    return found


def _listed(outline: Outline, select: Select) -> Iterator[int]:
    """Yield the variables that are only listed: for SELECT and for GROUP BY, without brackets."""
    yield from _outside_brackets(outline, select.projection)
    first, last = select.modifiers
    for at in range(first, last - 1):
        if outline.tokens[at].keyword == "GROUP" and outline.tokens[at + 1].keyword == "BY":
            ends = (end for end in range(at + 2, last) if outline.tokens[end].keyword)
            yield from _outside_brackets(outline, (at + 2, next(ends, last)))


def _outside_brackets(outline: Outline, span: Span) -> Iterator[int]:
    depth = 0
    for at in range(*span):
        depth += {"(": 1, ")": -1}.get(outline.tokens[at].text, 0)
        if depth == 0 and outline.tokens[at].kind == "variable":
            yield at


def _without(outline: Outline, uses: list[int], of: str, edits: Edits) -> str:
    """List an entity in place of its label, once."""
    for select in outline.selects:
        listed = list(_listed(outline, select))
        for part in (select.projection, select.modifiers):
            here = [at for at in listed if part[0] <= at < part[1]]
            there = any(outline.tokens[at].text[1:] == of for at in here)
            for at in set(here).intersection(uses):
                edits.instead[at] = "" if there else f"?{of}"
                there = True
    return f"?{of}{_SUFFIX} is shown beside the id in ?{of}."


def _label(vocabulary: Vocabulary, subject: str, variable: str) -> str:
    """Return patterns for a label: the first that there is gives the value, and the others leave it as it is."""
    return " ".join(
        f'OPTIONAL {{ {subject} <{relation}> {variable} FILTER(LANG({variable}) = "{language}") }}'
        for relation in vocabulary.labels
        for language in (*vocabulary.languages, "")
    )


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
