"""Texts in a query that are meant as names: those that nobody bears, and labels that lack their language."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kg_adapters.local.names.folding import fold
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Literal, Node
from kg_boundary.shown import in_quotes
from kg_server.entity_arguments import MOST_NEAR, SHOWN
from kg_server.identity import Identity, identify
from kg_server.names import MAX_LABEL, Names, names_of, shown_literal
from kg_server.sparql.syntax import Element, Outline, Statement

_MOST: Final = 3
_FEWEST_LETTERS: Final = 3
_AROUND: Final = "^$.*"
_QUOTES: Final = ('"""', "'''", '"', "'")


async def unnamed_texts(graph: KGAdapter, outline: Outline, element: Element) -> tuple[bool, str]:
    """Return whether texts of a part of a query are nobody's name, and what is wrong with them, in full sentences."""
    if element.statement is not None and not _names(graph, outline, element.statement):
        return False, ""
    texts = dict(list(_texts(outline, element))[:_MOST])
    found = await identify(graph, list(texts))
    shown = await names_of(graph, [each.entity for one in found for each in one.named[:SHOWN] or one.alike[:MOST_NEAR]])
    written = await _written(graph, [each.entity for one in found for each in one.named[:SHOWN]])
    said = " ".join(_said(each, shown, written, texts[each.text]) for each in found)
    return any(each.match != "exact" for each in found), said


def _names(graph: KGAdapter, outline: Outline, statement: Statement) -> bool:
    """Say whether a statement is about names: over a variable, or over a relation that names."""
    verb = outline.within(statement.verb)
    return any(each.kind == "variable" or outline.iri(each, graph.prefixes) in graph.vocabulary.texts for each in verb)


async def _written(graph: KGAdapter, entities: Sequence[Node]) -> Mapping[Node, Sequence[Literal]]:
    """Return the labels of entities as the graph writes them."""
    if not entities:
        return {}
    pages = await graph.features(FeatureRequest(tuple(entities), frozenset(graph.vocabulary.labels)))
    return {entity: [feature.value for feature in page.features] for entity, page in pages.items()}


def _texts(outline: Outline, element: Element) -> Iterator[tuple[str, str]]:
    """Yield the texts that may be names, and the language that they are told to have."""
    span = element.span if element.statement is None else element.statement.tail
    for at in range(*span):
        token = outline.tokens[at]
        behind = outline.tokens[at + 1] if at + 1 < len(outline.tokens) else token
        if token.kind != "text" or behind.text == "^^":
            continue
        quote = next(quote for quote in _QUOTES if token.text.startswith(quote))
        text = token.text[len(quote) : -len(quote)].strip(_AROUND)
        if sum(map(str.isalpha, text)) >= _FEWEST_LETTERS:
            yield text, behind.text[1:].lower() if behind.kind == "tag" else ""


def _said(identity: Identity, names: Names, written: Mapping[Node, Sequence[Literal]], tag: str) -> str:
    text = in_quotes(identity.text, MAX_LABEL)
    shown = "; ".join(names.entity(each.entity) for each in identity.named[:SHOWN] or identity.alike[:MOST_NEAR])
    if identity.match == "exact":
        named = [each for entity in identity.nodes for each in written.get(entity, ())]
        labels = [each for each in named if fold(each.value) == fold(identity.text)]
        if not labels or any((each.value, (each.language or "").lower()) == (identity.text, tag) for each in labels):
            return f"{text} is the name of {shown}."
        label = shown_literal(labels[0], names.prefixes, MAX_LABEL)
        return f'{text} is the name of {shown}. Write its label {label}, or @"…" in place of an id.'
    if identity.match == "close":
        return f"Nothing is named {text}, but {shown} is."
    return f"Nothing is named {text}.{f' Near, not the same: {shown}.' if shown else ''}"
