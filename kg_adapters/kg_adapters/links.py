"""The same thing in several graphs: what says so, and under which terms each graph has it."""

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self, TypeVar
from urllib.parse import quote, unquote

import anyio

from kg_adapters.calls import time_left_s
from kg_adapters.errors import BackendError, BackendTimeout, GraphReplaced, InvalidRequest, KGError, Unsupported
from kg_adapters.labels import read_relation
from kg_adapters.models import NeighborPage
from kg_adapters.prefixes import MAX_ID_LENGTH, Prefixes
from kg_adapters.protocol import KGAdapter, SupportsSparql
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import XSD, Attribute, BlankNode, Iri, Literal, Node
from kg_boundary.shown import in_quotes

SAME: Final = frozenset(
    {Iri("http://www.w3.org/2002/07/owl#sameAs"), Iri("http://www.w3.org/2004/02/skos/core#exactMatch")}
)
"""The relations that link one thing to itself wherever they stand."""
MOST_LINKS: Final = 50
"""How many links of one term are read, and how many terms one thing has at most."""
LONGEST_CHAIN: Final = 3
"""Over how many links in a row one thing is known."""
XSD_INTEGER: Final = Iri(f"{XSD}integer")
_BATCH: Final = 1_000
_VALUES: Final = 200
_MOST_ROWS: Final = 10_000
_LOOKUP_S: Final = 10.0
_PLACE: Final = "{}"
_SCHEMES: Final = frozenset({"http", "https", "urn"})
_SAFE: Final = "/:@!$&'()*+,;=-._~"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LinkRules:
    """What one graph says about the same thing in other graphs. Equal IRIs are one thing without a rule.

    Args:
        relations: Relations between two terms of one thing.
        identifiers: Relations to an id, such as that of Wikidata, and the IRI that it stands for, with `{}` for the id.
    """

    relations: frozenset[Iri] = SAME
    identifiers: Mapping[Iri, str] = field(default_factory=dict[Iri, str])

    @classmethod
    def of(cls, texts: Iterable[str], prefixes: Prefixes) -> Self:
        """Return the usual rules with more of them: `ex:same`, or `ex:wikidataId=http://www.wikidata.org/entity/{}`.

        A rule whose relation a graph cannot read, as its prefix is unknown there, may be meant for another one: it is
        left out.

        Raises:
            InvalidRequest: A text has another form.
        """
        relations, identifiers = set(SAME), dict[Iri, str]()
        for text in texts:
            relation, template = relation_of_link(text, prefixes), split_link(text)[1]
            if relation is not None and template:
                identifiers[relation] = template
            elif relation is not None:
                relations.add(relation)
        return cls(frozenset(relations), identifiers)

    @property
    def read(self) -> frozenset[Iri]:
        """All relations that are read for links."""
        return self.relations.union(self.identifiers)

    def target(self, fact: Attribute) -> Iri | None:
        """Return the term that an identifier stands for, or None where it is no identifier."""
        template = self.identifiers.get(fact.relation)
        text = fact.tail.value.strip()
        if template is None or not text or len(text) > MAX_ID_LENGTH:
            return None
        try:
            return Iri(template.replace(_PLACE, quote(text, safe=_SAFE, errors="replace")))
        except InvalidRequest:
            return None

    def values(self, term: Iri) -> list[tuple[Iri, Literal]]:
        """Return the identifiers that stand for a term, by relation, in the forms in which graphs hold them."""
        found: list[tuple[Iri, Literal]] = []
        for relation, template in self.identifiers.items():
            before, _, behind = template.partition(_PLACE)
            text = unquote(term.value.removeprefix(before).removesuffix(behind))
            held = [Literal(text), *([Literal(text, XSD_INTEGER)] if text.isdecimal() and text.isascii() else [])]
            found += [(relation, each) for each in held if self.target(Attribute(term, relation, each)) == term]
        return found


def relation_of_link(text: str, prefixes: Prefixes) -> Iri | None:
    """Return the relation of a rule in a graph; None where the graph cannot read it.

    Raises:
        InvalidRequest: The text is no rule.
    """
    written, _ = split_link(text)
    try:
        return read_relation(written, prefixes)
    except InvalidRequest:
        return None


def split_link(text: str) -> tuple[str, str]:
    """Return the relation of a rule, and its IRI with `{}` for the id; an empty text where it links terms.

    Raises:
        InvalidRequest: The relation is not one word, or what follows it is no such IRI.
    """
    relation, sign, template = map(str.strip, text.strip().partition(">=" if text.strip().startswith("<") else "="))
    one_word = len(relation.split()) == 1
    if not sign and one_word:
        return relation, ""
    try:
        whole = Iri(template.replace(_PLACE, "1"))
    except InvalidRequest:
        whole = None
    known = template.partition(":")[0].lower() in _SCHEMES
    if whole is None or not one_word or not known or template.count(_PLACE) != 1:
        raise InvalidRequest(
            f"{in_quotes(text)} is no rule for links. Write a relation (ex:same), or a relation to an id and the IRI "
            "that the id stands for, in full and with {} for the id, as in "
            "ex:wikidataId=http://www.wikidata.org/entity/{}. It begins with http:, https: or urn:."
        )
    return f"{relation}>" if sign == ">=" else relation, template


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing in several graphs.

    Args:
        iris: All its terms.
        terms: Under which of them each graph has it, sorted; graphs that do no more than link to it are left out.
    """

    iris: frozenset[Iri]
    terms: Mapping[str, tuple[Iri, ...]]


async def ask_each(
    graphs: Mapping[str, KGAdapter],
    ask: Callable[[str, KGAdapter], Awaitable[T]],
    timeouts_s: Mapping[str, float] | None = None,
) -> dict[str, T | KGError]:
    """Ask several graphs side by side, and return what each answers, or its error, which names the graph.

    Args:
        graphs: The graphs.
        ask: Asks one, given its name.
        timeouts_s: After how many seconds each is late; at the end of the call that is under way in any case.
    """
    found: dict[str, T | KGError] = {}

    async def one(name: str, graph: KGAdapter) -> None:
        try:
            with anyio.fail_after(time_left_s((timeouts_s or {}).get(name, math.inf))):
                found[name] = await ask(name, graph)
        except TimeoutError:
            found[name] = BackendTimeout(f"The graph {name} did not answer in time.")
        except KGError as error:
            found[name] = naming(name, error)

    async with anyio.create_task_group() as tasks:
        for name, graph in graphs.items():
            tasks.start_soon(one, name, graph)
    return {name: found[name] for name in graphs}


def answers(outcomes: Mapping[str, T | KGError]) -> dict[str, T]:
    """Return what graphs answered.

    Raises:
        KGError: One of them failed; of several, the first in order.
    """
    given: dict[str, T] = {}
    for name, outcome in outcomes.items():
        if isinstance(outcome, KGError):
            raise outcome
        given[name] = outcome
    return given


def naming(name: str, error: KGError) -> KGError:
    """Return an error of the same kind that names the graph."""
    if isinstance(error, GraphReplaced):
        return error
    kinds: Sequence[type[KGError]] = (BackendTimeout, BackendError, Unsupported, InvalidRequest)
    named = next((kind for kind in kinds if isinstance(error, kind)), KGError)(f"The graph {name}: {error}")
    named.__cause__ = error
    return named


async def same_things(
    graphs: Mapping[str, KGAdapter],
    rules: Mapping[str, LinkRules],
    terms: Collection[Iri],
    *,
    left_out: Callable[[str, KGError], None] | None = None,
    timeouts_s: Mapping[str, float] | None = None,
) -> dict[Iri, Thing]:
    """Return what the same thing as each of some terms is in several graphs, those included that have the term itself.

    A link may be stated in any of the graphs. Each is asked once for all terms, then for what they are linked with.

    Args:
        graphs: The graphs by name.
        rules: What each of them says about others; the usual rules for a graph without any.
        terms: The terms.
        left_out: Learns which graph fails, which then counts as if it had none of the terms.
        timeouts_s: After how many seconds each graph fails.

    Raises:
        KGError: A graph fails, and `left_out` is not given.
    """
    reading = _Links(dict(graphs), rules, left_out, timeouts_s)
    await reading.follow(terms)
    await reading.tell_apart()
    return {term: reading.thing(term) for term in terms}


class _Links:
    """The links of some terms, as far as they are read."""

    def __init__(
        self,
        graphs: dict[str, KGAdapter],
        rules: Mapping[str, LinkRules],
        left_out: Callable[[str, KGError], None] | None,
        timeouts_s: Mapping[str, float] | None,
    ) -> None:
        self._graphs = graphs
        self._rules = {name: rules.get(name, LinkRules()) for name in graphs}
        self._left_out = left_out
        self._timeouts_s = timeouts_s
        self._classes: dict[Iri, set[Iri]] = {}
        self._mentions: dict[str, set[Node]] = {name: set() for name in graphs}
        self._has: dict[str, set[Iri]] = {}

    async def follow(self, terms: Collection[Iri]) -> None:
        """Read the links of terms, and of what these lead to."""
        ahead = list(dict.fromkeys(terms))
        self._classes |= {term: {term} for term in ahead}
        for turn in range(LONGEST_CHAIN + 1):
            found: dict[Iri, None] = {}
            for first in range(0, len(ahead), _BATCH):
                batch = tuple(ahead[first : first + _BATCH])
                for name, (pages, having) in (await self._ask(partial(self._linked, batch))).items():
                    self._mentions[name] |= pages.keys()
                    # What is found last only tells who has it.
                    if turn < LONGEST_CHAIN:
                        found |= dict.fromkeys(self._joined([*self._links(name, pages), *having]))
            ahead = list(found)
            if not ahead:
                return

    async def tell_apart(self) -> None:
        """Ask which graphs have more than links of terms that are linked."""
        linked = sorted({term for members in self._classes.values() if len(members) > 1 for term in members})
        for name, stated in (await self._ask(partial(self._stated, linked))).items():
            self._has[name] = stated

    def thing(self, term: Iri) -> Thing:
        """Return the thing that a term is."""
        members = self._classes[term]
        terms = {name: tuple(sorted(members & self._mentions[name])) for name in self._graphs}
        if len(members) > 1:
            having = {name: tuple(iri for iri in of if iri in self._has[name]) for name, of in terms.items()}
            terms = having if any(having.values()) else terms
        return Thing(frozenset(members), {name: of for name, of in terms.items() if of})

    async def _ask(self, ask: Callable[[str, KGAdapter], Awaitable[T]]) -> dict[str, T]:
        outcomes = await ask_each(self._graphs, ask, self._timeouts_s)
        if self._left_out is not None:
            for name, error in outcomes.items():
                if isinstance(error, KGError):
                    self._left_out(name, error)
                    del self._graphs[name]
        return answers({name: outcome for name, outcome in outcomes.items() if name in self._graphs})

    async def _linked(
        self, terms: tuple[Iri, ...], name: str, graph: KGAdapter
    ) -> tuple[Mapping[Node, NeighborPage], list[tuple[Iri, Iri]]]:
        """Return the links of terms in a graph, and what has them as identifiers."""
        rules = self._rules[name]
        request = NeighborRequest(terms, relations=rules.read, limit=MOST_LINKS, values=bool(rules.identifiers))
        pages = await graph.neighbors(request)
        named = {value: term for term in terms for value in rules.values(term)}
        having: list[tuple[Iri, Iri]] = []
        if named and isinstance(graph, SupportsSparql):
            # Most graphs are never asked for identifiers.
            from kg_adapters.sparql.queries.descriptions import holders

            for first in range(0, len(named), _VALUES):
                query = holders(list(named)[first : first + _VALUES])
                answer = await graph.select(query, timeout_s=time_left_s(_LOOKUP_S), max_rows=_MOST_ROWS)
                for row in answer.rows:
                    match row:
                        case (Iri() as holder, Iri() as relation, Literal() as value) if (relation, value) in named:
                            having.append((named[relation, value], holder))
                        case _:
                            pass
        return pages, having

    def _links(self, name: str, pages: Mapping[Node, NeighborPage]) -> Iterator[tuple[Iri, Iri]]:
        """Yield the pairs of terms that pages of a graph link."""
        rules = self._rules[name]
        for node, page in pages.items():
            for fact in page.facts:
                if isinstance(fact, Attribute):
                    other: Node | None = rules.target(fact)
                else:
                    other = fact.tail if fact.head == node else fact.head
                    other = other if fact.relation in rules.relations else None
                if isinstance(node, Iri) and isinstance(other, Iri):
                    yield node, other

    def _joined(self, links: Iterable[tuple[Iri, Iri]]) -> list[Iri]:
        """Join the classes of terms that are linked, and return the terms that are new."""
        new: list[Iri] = []
        for term, other in links:
            if len(self._classes[term]) < MOST_LINKS:
                if other not in self._classes:
                    new.append(other)
                self._join(term, other)
        return new

    def _join(self, one: Iri, other: Iri) -> None:
        members = self._classes[one] | self._classes.get(other, {other})
        self._classes |= dict.fromkeys(members, members)

    async def _stated(self, terms: Sequence[Iri], name: str, graph: KGAdapter) -> set[Iri]:
        """Return those of some terms of which a graph says more than what they are linked with."""
        mentioned = [term for term in terms if term in self._mentions[name]]
        described = await graph.describe(mentioned)
        having = {term for term in mentioned if (found := described.get(term)) and (found.label or found.types)}
        left = tuple(term for term in mentioned if term not in having)
        if left:
            links = self._rules[name].read
            # The first of every group: more than the links have there is something else.
            most = 3 * len(links) + 1
            pages = await graph.neighbors(NeighborRequest(left, limit=most, limit_per_relation=1, values=True))
            having |= {
                term for term in left if term in pages and any(each.relation not in links for each in pages[term].facts)
            }
        return having


class LinkedNodes:
    """Which node stands for which terms of which graph.

    A node is the first term of the first graph that has the thing. Blank nodes belong to one graph, whose place stands
    before their label.
    """

    def __init__(
        self, graphs: Mapping[str, KGAdapter], rules: Mapping[str, LinkRules], timeouts_s: Mapping[str, float]
    ) -> None:
        self._graphs = graphs
        self._rules = rules
        self._timeouts_s = timeouts_s
        self._marks = {name: f"g{place}." for place, name in enumerate(graphs, start=1)}
        self._same: dict[Node, Node] = {}
        self._terms: dict[Node, Mapping[str, tuple[Iri, ...]]] = {}

    def one(self, node: Node) -> Node:
        """Return the node that stands for a node."""
        return self._same.get(node, node)

    def of(self, name: str, node: Node) -> tuple[Node, ...]:
        """Return the terms under which a graph has a node; of one that nobody asked about, itself."""
        if isinstance(node, BlankNode):
            mark = self._marks[name]
            label = node.label.removeprefix(mark)
            return (BlankNode(label),) if node.label.startswith(mark) and label else ()
        terms = self._terms.get(node)
        return (node,) if terms is None else terms.get(name, ())

    def apart(self, name: str, node: Node) -> Node:
        """Return a term of a graph; a blank node gets an id that differs from those of other graphs."""
        return BlankNode(f"{self._marks[name]}{node.label}") if isinstance(node, BlankNode) else node

    def seen(self, name: str, node: Node) -> Node:
        """Return the node that stands for a term of a graph."""
        return self.one(self.apart(name, node))

    def place(self, node: Node) -> int | None:
        """Return the place of the first graph that is known to have a node."""
        return next((place for place, name in enumerate(self._graphs) if self._terms.get(node, {}).get(name)), None)

    async def learn(self, nodes: Iterable[Node]) -> None:
        """Read the links of nodes that are not known yet."""
        new = [node for node in dict.fromkeys(nodes) if isinstance(node, Iri) and node not in self._same]
        if not new:
            return
        for thing in (await same_things(self._graphs, self._rules, new, timeouts_s=self._timeouts_s)).values():
            first = next(iter(thing.terms.values()), tuple(sorted(thing.iris)))[0]
            # What was answered before stays: another call may have learned of it since.
            node = next((self._same[iri] for iri in sorted(thing.iris) if iri in self._same), first)
            known = self._terms.get(node, {})
            self._terms[node] = {
                name: tuple(dict.fromkeys((*known.get(name, ()), *thing.terms.get(name, ())))) for name in self._graphs
            }
            for iri in thing.iris:
                self._same.setdefault(iri, node)
