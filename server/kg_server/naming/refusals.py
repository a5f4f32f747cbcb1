"""Errors about a name: the closest known names, and a caret at its place in a text."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kg_adapters.errors import BackendUnavailable, InvalidRequest, KGError, UnknownEntity, UnknownRelation, causes
from kg_adapters.federated import FederatedGraph
from kg_adapters.models import Description
from kg_adapters.prefixes import Position, read_differently
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import in_quotes, visible_line
from kg_server.names import names_of


def id_of(graph: KGAdapter, text: str, position: Position = "entity") -> Node | None:
    """Return what a text is the id of, whether the graph has it or not; None where it is no id."""
    try:
        return graph.prefixes.expand(text, position)
    except InvalidRequest:
        return None


async def entity_of(graph: KGAdapter, text: str) -> Node:
    """Return the entity that an id stands for, whether the graph has it or not.

    Raises:
        InvalidRequest: It is no id, or that of different entities in several graphs.
        UnknownEntity: It is the id of a relation.
    """
    if isinstance(graph, FederatedGraph):
        found = (await graph.known([text])).get(text, ())
        if len(found) > 1:
            raise read_differently(text, found)
        if found := found or tuple(graph.prefixes.readings(text)):
            return found[0]
    try:
        return graph.prefixes.expand(text)
    except InvalidRequest:
        hint = await relation_hint(graph, text)
        if hint is None:
            raise
        raise UnknownEntity(text, hint=hint) from None


async def unknown_entity(graph: KGAdapter, node: Node, text: str) -> UnknownEntity:
    """Return the error for an entity that the graph does not mention, with ids that may have been meant."""
    hint = await relation_hint(graph, text)
    if hint is not None:
        return UnknownEntity(text, hint=hint)
    found = await graph.search(node.local_part, limit=3) if is_word(node.local_part) else ()
    names = await names_of(graph, [each.entity for each in found])
    return UnknownEntity(
        text,
        suggestions=[names.entity(each.entity) for each in found],
        hint="Retrieve finds the id of a name.",
    )


class NoSuchRelation(InvalidRequest):
    """No relation or feature of the graph is called so."""


def is_about_unknown(error: KGError) -> bool:
    """Return whether a call failed because the graph has nothing of a name or id."""
    return any(isinstance(each, UnknownEntity | UnknownRelation | NoSuchRelation) for each in causes(error))


def one_error(errors: Sequence[KGError], text: str | None = None) -> KGError:
    """Return one error in place of several, with the texts of all, or another text."""
    if len(errors) == 1:
        return errors[0]
    joined = InvalidRequest(" ".join(map(str, errors)) if text is None else text)
    joined.__cause__ = ExceptionGroup("", errors)
    return joined


def none_answered(failures: Mapping[str, KGError]) -> KGError:
    """Return the error of a call that no graph answered, with the reasons of all by their names."""
    reasons = {str(each): each for each in failures.values()}
    if len(reasons) == 1:
        return next(iter(reasons.values()))
    text = " ".join(f"{name}: {each}" for name, each in failures.items())
    refused = all(isinstance(each, InvalidRequest | UnknownEntity) for each in failures.values())
    return InvalidRequest(text) if refused else BackendUnavailable(text)


async def require_entity(graph: KGAdapter, text: str) -> Node:
    """Return the entity that an id stands for.

    Raises:
        InvalidRequest: It is no id.
        UnknownEntity: The graph does not mention it.
    """
    return (await described_entity(graph, text))[0]


async def described_entity(graph: KGAdapter, text: str) -> tuple[Node, Description]:
    """Return the entity of an id, with its description.

    Raises:
        InvalidRequest: It is no id.
        UnknownEntity: The graph does not mention it.
    """
    node = await entity_of(graph, text)
    described = await graph.describe([node])
    if node not in described or "entity" not in described[node].roles:
        raise await unknown_entity(graph, node, text)
    return node, described[node]


def closest(text: str, choices: Iterable[str], *, limit: int = 3) -> list[str]:
    """Return the choices most like `text`, best first; none that is not alike."""
    from rapidfuzz import fuzz, process

    found = process.extract(text, list(choices), scorer=fuzz.WRatio, limit=limit, score_cutoff=70)
    return [choice for choice, _, _ in found]


MAX_ECHO: Final = 80
"""How many characters of a refused value an error repeats."""


def unknown_name(owner: str, kind: str, name: str, known: Iterable[str]) -> str:
    """Return the message for a name of nothing, with the closest one and all that there are."""
    names = sorted(known)
    close = closest(name[:MAX_ECHO], names, limit=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return f"{owner} has no {kind} {in_quotes(name, MAX_ECHO)}.{meant} Its {kind}s are {', '.join(names)}."


async def relation_hint(graph: KGAdapter, text: str) -> str | None:
    """Return what to say of a text in the place of an entity that is the id of a relation."""
    relation = id_of(graph, text, "relation")
    if not isinstance(relation, Iri) or relation not in await graph.describe([relation]):
        return None
    names = await names_of(graph, [relation])
    return f"{names.relation(relation)} is a relation: give it as the relation."


def is_word(text: str) -> bool:
    """Say whether a text reads like a word rather than a number."""
    return sum(mark.isalpha() for mark in text) >= 3


_SIDE: Final = 50
"""How many characters of the line are shown on either side of the place."""


class MisreadExpression(InvalidRequest):
    """Something in an expression or a query cannot be read, or does not mean what it must.

    Args:
        text: The expression or query.
        position: The index of the character that is at fault; the length of the text stands for its end.
        problem: What is wrong, and what was expected, in full sentences.
        named: What of the text the problem quotes: where it stands there once, nothing points at it as well.
    """

    def __init__(self, text: str, position: int, problem: str, named: str = "") -> None:
        self.position = position
        self.problem = problem
        self.named = named
        plain = named and text.count(named) == 1
        super().__init__(problem if plain else f"{problem}\n{pointed(text, position)}")

    def within(self, start: int, end: int, text: str) -> str:
        """Return the message about a stretch of the text, with the caret below its own characters."""
        return str(MisreadExpression(text[start:end], self.position - start, self.problem, self.named))


def pointed(text: str, position: int) -> str:
    """Return the line of `text` that holds a position, with a caret below the character.

    Of several lines it shows the number of the line; a long line is shortened.
    """
    before, line_start = text[:position], text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    column = position - line_start
    first, last = max(0, column - _SIDE), column + _SIDE
    lead = "…" if first else ""
    before_it, behind = visible_line(line[first:column]), visible_line(line[column:last])
    rest = "…" if last < len(line) else ""
    blank = "".join(_blank(mark) for mark in lead + before_it)
    where = f"line {before.count(chr(10)) + 1}, column {column + 1}: " if "\n" in text else ""
    return f"{where}{lead}{before_it}{behind}{rest}\n{' ' * len(where)}{blank}^"


def _blank(mark: str) -> str:
    """Return the blank that is as wide as a character."""
    if unicodedata.combining(mark):
        return ""
    return "\N{IDEOGRAPHIC SPACE}" if unicodedata.east_asian_width(mark) in {"W", "F"} else " "
