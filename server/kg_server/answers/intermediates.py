"""Nodes without a name that only hold facts together, such as a career entry, shown with what they hold."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

import anyio

from kg_adapters.calls import note_partial, time_left_s
from kg_adapters.errors import BackendError
from kg_adapters.models import NeighborPage
from kg_adapters.profile import kind_of
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import BlankNode, Fact, Iri, Literal, Node, Term, Triple
from kg_adapters.values import order_of
from kg_boundary.shown import shown_within
from kg_server.answers.expressions import FIRST, NO_EXPRESSIONS, read_expressions
from kg_server.answers.results import Line
from kg_server.names import MAX_LABEL, Names, terms_of

MOST_OPENED: Final = 100
"""How many nodes of a table are shown with what they hold; no more fit into an answer."""
MOST_HELD: Final = 12
"""The most facts that a node is shown with; an IRI that has more is no intermediate node."""
_FEWEST_HELD: Final = 2
_LONGEST_VALUE: Final = 80
CLOSED: Final = "What some nodes without a name (_:…) hold is not here; a Sparql query can go through them."


async def with_intermediates(graph: KGAdapter, facts: Sequence[Fact], names: Names, around: Collection[Node]) -> Names:
    """Return names in which the intermediate nodes among facts have what they hold, by one request where there are any.

    An intermediate node is a blank node, or an IRI that has no label, does not read like a name and has little around
    it; what it is beside has a label.

    Args:
        graph: Where they are.
        facts: What is shown.
        names: The names of the terms of `facts`.
        around: What the answer is about: such nodes are not opened.
    """
    asked = tuple(dict.fromkeys(_candidates(graph, facts, names, frozenset(around))))
    shown = frozenset(facts)
    return await opened(graph, asked, names, lambda _, fact: fact in shown)


async def with_intermediates_of_rows(graph: KGAdapter, rows: Sequence[Sequence[Term | None]], names: Names) -> Names:
    """Return names in which the intermediate nodes in rows are followed by what their rows lack of what they hold."""
    beside: defaultdict[Node, set[Term | None]] = defaultdict(set)
    # What an endpoint calls a blank node is its name in one answer alone.
    kinds = Iri if graph.remote else Iri | BlankNode
    for row in rows:
        for term in row:
            if isinstance(term, kinds) and term not in names.labels and may_be_opened(term, labelled=True):
                beside[term].update(row)
    return await opened(
        graph,
        tuple(beside)[:MOST_OPENED],
        names,
        lambda node, fact: (fact.head if fact.tail == node else fact.tail) in beside[node],
    )


async def opened(
    graph: KGAdapter,
    asked: tuple[Node, ...],
    names: Names,
    is_shown: Callable[[Node, Fact], bool],
    *,
    always: bool = False,
) -> Names:
    """Return names in which nodes without a label are followed by what they hold, by one request.

    Where the graph does not answer in time, the names are as they were, and the answer says what is missing.

    Args:
        graph: Where they are.
        asked: The nodes.
        names: The names of what is shown.
        is_shown: Whether a fact of a node is shown anyway, and so is not part of its name.
        always: Whether all IRIs are opened, and not only those that hold as much as intermediate nodes do.
    """
    if not asked:
        return names
    try:
        with anyio.fail_after(time_left_s(math.inf)):
            return await _with_held(graph, asked, names, is_shown, always=always)
    except (TimeoutError, BackendError):
        note_partial("What nodes without a name hold is missing: it did not come in time.")
        return names


async def _with_held(
    graph: KGAdapter, asked: tuple[Node, ...], names: Names, is_shown: Callable[[Node, Fact], bool], *, always: bool
) -> Names:
    pages = await graph.neighbors(NeighborRequest(asked, "both", limit=MOST_HELD, values=True))
    closed = tuple(node for node in asked if isinstance(node, BlankNode) and node not in pages)
    unwalked = graph.vocabulary.unwalked
    cells = [node for node, page in pages.items() if any(fact.relation == FIRST for fact in page.facts)]
    lists = await read_expressions(graph, cells) if cells else NO_EXPRESSIONS
    held = {
        node: _in_order(node, pages[node], unwalked)
        for node in asked
        if node not in lists.held and (node in pages if always else _is_open(node, pages.get(node), unwalked))
    }
    shown = chain(terms_of(chain.from_iterable(held.values())), lists.terms())
    terms = {term for term in shown if term not in names.labels}
    labels = {**names.labels, **await graph.labels(terms)} if terms else names.labels
    labels = {**labels, **lists.labels(cells, labels)} if cells else labels
    inner = replace(names, labels=labels)
    notes = {
        node: _note(node, (fact for fact in of if not is_shown(node, fact)), pages[node], inner)
        for node, of in held.items()
    }
    return replace(inner, notes={node: note for node, note in notes.items() if note}, held=held, closed=closed)


def _candidates(graph: KGAdapter, facts: Sequence[Fact], names: Names, around: frozenset[Node]) -> Iterator[Node]:
    unwalked = graph.vocabulary.unwalked
    for fact in facts:
        if isinstance(fact, Triple):
            ends = ((fact.tail, fact.head), (fact.head, fact.tail))
            # What a class has are entries; a class is none.
            for near, far in ends[:1] if fact.relation in unwalked else ends:
                if far not in around and far not in names.labels and may_be_opened(far, labelled=near in names.labels):
                    yield far


def without_label(lines: Iterable[Line], names: Names) -> tuple[Node, ...]:
    """Return the nodes that lines show without a label, and whose ids tell nothing to who reads them."""
    nodes = dict.fromkeys(piece for line in lines for piece in line.text if isinstance(piece, Iri | BlankNode))
    return tuple(node for node in nodes if node not in names.labels and may_be_opened(node, labelled=True))


def may_be_opened(node: Node, *, labelled: bool) -> bool:
    """Say whether a node without a label tells nothing to who reads it; `labelled` says it of what it is beside."""
    if isinstance(node, BlankNode):
        return True
    return labelled and any(mark.isdigit() for mark in node.local_part)


def _is_open(node: Node, page: NeighborPage | None, unwalked: Collection[Iri]) -> bool:
    if page is None:
        return False
    if isinstance(node, BlankNode):
        return True
    kept = [fact for fact in page.facts if fact.relation not in unwalked]
    held = sum(fact.head == node for fact in kept)
    return not page.truncated and held >= _FEWEST_HELD and len(kept) - held <= 1


def _in_order(node: Node, page: NeighborPage, unwalked: Collection[Iri]) -> tuple[Fact, ...]:
    kept = (fact for fact in page.facts if fact.relation not in unwalked)
    return tuple(sorted(kept, key=lambda fact: fact.head == node))


def _note(node: Node, facts: Iterable[Fact], page: NeighborPage, names: Names) -> str:
    """Return what a node holds beside what is shown of it anyway."""
    parts = [said_of_held(node, fact, names) for fact in facts]
    return "; ".join([*parts, f"{page.total} facts in all"] if page.truncated else parts)


def said_of_held(node: Node, fact: Fact, names: Names) -> str:
    """Return a fact that a node without a name holds as half a sentence: `from 1993-06-30`."""
    known = fact.relation in names.labels
    relation = (
        names.alone(fact.relation, ";", "relation") if known else shown_within(fact.relation.local_part, MAX_LABEL)
    )
    if fact.head != node:
        return f"{relation} of {names.entity(fact.head, ';')}"
    return f"{relation} {names.term(fact.tail, _LONGEST_VALUE, relation=fact.relation, marks=';')}"


def when(node: Term, names: Names) -> tuple[bool, float, float]:
    """Return what puts intermediate nodes in the order of their first dates, then of their last; undated ones last."""
    held = () if isinstance(node, Literal) else names.held.get(node, ())
    dates = [fact.tail for fact in held if isinstance(fact.tail, Literal) and kind_of(fact.tail.datatype) == "date"]
    known = [order for order in map(order_of, dates) if order is not None]
    return not known, min(known, default=0.0), max(known, default=0.0)
