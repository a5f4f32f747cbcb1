"""Class expressions of OWL, and lists, as one line of Manchester syntax: the labels of such blank nodes."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from kg_adapters.prefixes import WELL_KNOWN
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import XSD, BlankNode, Iri, Literal, Node, Term
from kg_server.answers.values import plain_value

OWL: Final = WELL_KNOWN["owl"]
MOST_NODES: Final = 300
"""How many blank nodes are read for one answer."""
_ROUNDS: Final = 12
"""How many requests read them: each goes one level deeper, or one place further in a list."""
_MOST_FACTS: Final = 60
_DEEPEST: Final = 4
_MOST_MEMBERS: Final = 6
_LONGEST: Final = 120
_CUT: Final = "…"
_WORD: Final = re.compile(r"[\w.:-]+")


def _owl(*names: str) -> tuple[Iri, ...]:
    return tuple(Iri(OWL + name) for name in names)


UNION, INTERSECTION, COMPLEMENT, ONE_OF = _owl("unionOf", "intersectionOf", "complementOf", "oneOf")
_INVERSE, _ON_PROPERTY, _HAS_SELF = _owl("inverseOf", "onProperty", "hasSelf")
_ON_DATATYPE, _FACETS, _OTHER_VALUES = _owl("onDatatype", "withRestrictions", "datatypeComplementOf")
FIRST, _REST = (Iri(WELL_KNOWN["rdf"] + name) for name in ("first", "rest"))
_JOINED: Final = {UNION: ("", " or ", ""), INTERSECTION: ("", " and ", ""), ONE_OF: ("{", ", ", "}")}
_FILLED: Final = dict(zip(_owl("someValuesFrom", "allValuesFrom", "hasValue"), ("some", "only", "value"), strict=True))
_CLASS_OF_COUNT: Final = _owl("onClass", "onDataRange")
_COUNTED: Final = {
    relation: word
    for word, names in (
        ("exactly", ("cardinality", "qualifiedCardinality")),
        ("min", ("minCardinality", "minQualifiedCardinality")),
        ("max", ("maxCardinality", "maxQualifiedCardinality")),
    )
    for relation in _owl(*names)
}
_LIMITS: Final = {
    Iri(XSD + name): sign
    for name, sign in {
        "minInclusive": ">=",
        "minExclusive": ">",
        "maxInclusive": "<=",
        "maxExclusive": "<",
        **{name: name for name in ("length", "minLength", "maxLength", "pattern")},
    }.items()
}
_CLOSED: Final = frozenset({ONE_OF, FIRST, _ON_DATATYPE})
"""Expressions that need no brackets inside another one."""
THROUGH: Final = frozenset((*_FILLED, *_CLASS_OF_COUNT, *_JOINED, COMPLEMENT, FIRST, _REST))
"""The relations from a class expression to the classes that it names."""
_READ: Final = THROUGH | {
    *(_INVERSE, _ON_PROPERTY, _HAS_SELF, _ON_DATATYPE, _FACETS, _OTHER_VALUES),
    *_COUNTED,
    *_LIMITS,
}


_NOTHING: Final[Mapping[Iri, Sequence[Term]]] = {}


@dataclass(frozen=True, slots=True)
class Expressions:
    """What blank nodes hold of class expressions and lists, by relation."""

    held: Mapping[Node, Mapping[Iri, Sequence[Term]]]

    def members(self, node: Term) -> Sequence[Term]:
        """Return the members of a union, or the term itself if it is not a union."""
        union = None if isinstance(node, Literal) else self.of(node).get(UNION)
        return (node,) if union is None else self.items(union)

    def of(self, node: Node) -> Mapping[Iri, Sequence[Term]]:
        """Return what a node holds."""
        return self.held.get(node, _NOTHING)

    def terms(self) -> Iterator[Node]:
        """Yield the entities and relations that expressions name, with repeats."""
        for held in self.held.values():
            yield from (term for term in chain.from_iterable(held.values()) if isinstance(term, Iri))

    def labels(self, nodes: Collection[Node], known: Mapping[Node, str]) -> dict[Node, str]:
        """Return the line for each node that is an expression or a list; `known` has the labels of what they name."""
        writer = _Writer(self, known)
        written = {node: writer.text(node) for node in nodes if node in self.held}
        return {node: text for node, text in written.items() if text is not None and text != _CUT}

    def items(self, terms: Sequence[Term]) -> Sequence[Term]:
        """Return what is listed: the items of a list, or the terms themselves, as where an import unfolded it."""
        at = terms[0] if len(terms) == 1 else None
        items, met = list[Term](), set[Node]()
        while isinstance(at, BlankNode) and FIRST in (held := self.of(at)) and at not in met:
            met.add(at)
            items.append(held[FIRST][0])
            at = held[_REST][0] if _REST in held else None
        # A cell that was not read, or is in a cycle, shows as missing.
        return [*items, at] if items and isinstance(at, BlankNode) else items or terms


NO_EXPRESSIONS: Final = Expressions({})


async def read_expressions(graph: KGAdapter, nodes: Collection[Node]) -> Expressions:
    """Return what blank nodes among some nodes, and those that they lead to, hold of expressions.

    Each level is one request, in a remote graph the first alone.

    Raises:
        BackendError: The graph does not answer.
    """
    held: dict[Node, dict[Iri, list[Term]]] = {}
    met: dict[Node, None] = {}
    ahead = [node for node in nodes if isinstance(node, BlankNode)]
    for _ in range(1 if graph.remote else _ROUNDS):
        asked = [node for node in dict.fromkeys(ahead) if node not in met][: MOST_NODES - len(met)]
        if not asked:
            break
        met.update(dict.fromkeys(asked))
        request = NeighborRequest(tuple(asked), "out", relations=_READ, limit=_MOST_FACTS, values=True)
        facts = [fact for page in (await graph.neighbors(request)).values() for fact in page.facts]
        for fact in facts:
            held.setdefault(fact.head, {}).setdefault(fact.relation, []).append(fact.tail)
        ahead = [fact.tail for fact in facts if isinstance(fact.tail, BlankNode)]
    return Expressions(held)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes expressions, each once at each depth; what is deeper than `_DEEPEST`, or holds itself, is an ellipsis."""

    expressions: Expressions
    known: Mapping[Node, str]
    _texts: dict[tuple[Node, int], str | None] = field(default_factory=dict[tuple[Node, int], str | None])

    def text(self, node: Node, above: Set[Node] = frozenset()) -> str | None:
        """Return the line of a node; None for one that is neither an expression nor a list."""
        if node in above or len(above) >= _DEEPEST:
            return _CUT
        at = node, len(above)
        if at not in self._texts:
            self._texts[at] = self._text(node, above)
        return self._texts[at]

    def _text(self, node: Node, above: Set[Node]) -> str | None:
        held, inside = self.expressions.of(node), above | {node}
        for relation, (before, mark, behind) in _JOINED.items():
            if relation in held:
                return f"{before}{self._all(held[relation], mark, inside)}{behind}"
        if FIRST in held:
            return f"({self._all([node], ' ', inside)})"
        for relation, word in ((COMPLEMENT, "not"), (_OTHER_VALUES, "not"), (_INVERSE, "inverse")):
            if relation in held:
                return f"{word} {self._part(held[relation][0], inside)}"
        if _ON_DATATYPE in held:
            limits = (self._limits(each) for each in self.expressions.items(held.get(_FACETS, ())))
            return f"{self._part(held[_ON_DATATYPE][0], inside)}[{', '.join(chain.from_iterable(limits))}]"
        return self._restriction(held, inside) if _ON_PROPERTY in held else None

    def _restriction(self, held: Mapping[Iri, Sequence[Term]], above: Set[Node]) -> str | None:
        """Return `engine some Engine`, `part min 2 Wheel`, or another restriction of a property."""
        parts = [self._part(held[_ON_PROPERTY][0], above)]
        for relation, word in _FILLED.items():
            if relation in held:
                return " ".join((*parts, word, self._part(held[relation][0], above)))
        if _HAS_SELF in held:
            return f"{parts[0]} Self"
        for relation, word in _COUNTED.items():
            if relation in held:
                of = next((held[each][0] for each in _CLASS_OF_COUNT if each in held), None)
                counted = [] if of is None else [self._part(of, above)]
                return " ".join((*parts, word, self._part(held[relation][0], above), *counted))
        return None

    def _limits(self, facet: Term) -> Iterator[str]:
        held = self.expressions.of(facet) if isinstance(facet, BlankNode) else _NOTHING
        yield from (
            f"{sign} {self._part(held[each][0], frozenset())}" for each, sign in _LIMITS.items() if each in held
        )

    def _all(self, terms: Sequence[Term], mark: str, above: Set[Node]) -> str:
        items = self.expressions.items(terms)
        parts = [self._part(each, above) for each in items[:_MOST_MEMBERS]]
        if len(items) > _MOST_MEMBERS:
            parts.append(f"{len(items) - _MOST_MEMBERS:,} more")
        return mark.join(parts)

    def _part(self, term: Term, above: Set[Node]) -> str:
        """Return a term inside an expression: names of several words in quotes, expressions in brackets."""
        if isinstance(term, Literal):
            return plain_value(term) or f'"{term.value[:_LONGEST]}"'
        if isinstance(term, BlankNode):
            text = self.text(term, above) or _CUT
            return text if text == _CUT or _CLOSED.intersection(self.expressions.held[term]) else f"({text})"
        name = self.known.get(term, term.local_part)[:_LONGEST]
        return name if _WORD.fullmatch(name) else f"'{name}'"
