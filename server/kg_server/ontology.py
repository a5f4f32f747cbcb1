"""Ontologies: the classes and properties that a graph declares, the tree of classes, and how two are connected."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import anyio
import anyio.lowlevel

from kg_adapters.calls import note_partial, time_left_s
from kg_adapters.errors import BackendError
from kg_adapters.models import Count, GraphSchema, NeighborPage, Path
from kg_adapters.prefixes import WELL_KNOWN
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import BlankNode, Iri, Node, Triple, node_key
from kg_server.answers.expressions import OWL, THROUGH, read_expressions
from kg_server.concurrency import off_loop

_RDF: Final = WELL_KNOWN["rdf"]
_RDFS: Final = WELL_KNOWN["rdfs"]
_SKOS: Final = WELL_KNOWN["skos"]
CLASS_KINDS: Final = frozenset({Iri(f"{OWL}Class"), Iri(f"{_RDFS}Class")})
CONCEPT_KINDS: Final = frozenset({Iri(f"{_SKOS}Concept")})
PROPERTY_KINDS: Final = frozenset(
    {
        Iri(f"{_RDF}Property"),
        *(Iri(f"{OWL}{kind}Property") for kind in ("Object", "Datatype", "Annotation")),
    }
)
# The description of an ontology is not part of its data.
_SCHEMA: Final = ("http://schema.org/", "https://schema.org/")
_DESCRIBING: Final = (_RDF, _RDFS, OWL, _SKOS, "http://www.w3.org/ns/shacl#", *(f"{base}DataType" for base in _SCHEMA))
_DATA_SHARE: Final = 1 / 3
"""The most entities of other classes, as a part of the declared ones, that an ontology has."""
_DOMAINS: Final = (Iri(f"{_RDFS}domain"), *(Iri(f"{base}domainIncludes") for base in _SCHEMA))
_RANGES: Final = (Iri(f"{_RDFS}range"), *(Iri(f"{base}rangeIncludes") for base in _SCHEMA))
_BROADER: Final = Iri(f"{_SKOS}broader")
_NARROWER: Final = Iri(f"{_SKOS}narrower")
MOST_TERMS: Final = 4_000
"""How many classes, and how many properties, are read of an ontology."""
MOST_REMOTE_TERMS: Final = 1_000
_PAGE: Final = 2_000
_PAGES: Final = 40
"""How many pages are read for them, since nodes without a name come first."""
_NOTHING: Final = NeighborPage((), Count(0), truncated=False)
_PER_REQUEST: Final = 250
_PER_REMOTE_REQUEST: Final = 1_000
_MOST_FACTS: Final = 100
_MOST_ABOVE: Final = 200
"""How many superclasses of a class are read for what it inherits."""
_THING: Final = Iri(f"{OWL}Thing")
_EQUIVALENT: Final = Iri(f"{OWL}equivalentClass")
_HIGHEST: Final = 20
"""How many levels of superclasses are climbed."""
_WIDEST: Final = 500
"""How many classes of one level are climbed from."""
_WIDER: Final = 50
"""How many superclasses of one class are climbed to."""


@dataclass(frozen=True, slots=True)
class Declared:
    """How many entities a definition counts that are classes, concepts, properties, and anything else."""

    classes: int
    concepts: int
    properties: int
    individuals: int

    @classmethod
    def of(cls, schema: GraphSchema) -> "Declared":
        """Return what a definition counts; what has several types counts for each."""
        counts = {each.iri: each.instances.value for each in schema.classes}
        classes, concepts, properties = (
            sum(counts.get(each, 0) for each in kinds) for kinds in (CLASS_KINDS, CONCEPT_KINDS, PROPERTY_KINDS)
        )
        others = (count for iri, count in counts.items() if not str(iri).startswith(_DESCRIBING))
        return cls(classes, concepts, properties, sum(others))

    @property
    def terms(self) -> int:
        """How many classes, concepts and properties there are."""
        return self.classes + self.concepts + self.properties

    @property
    def is_ontology(self) -> bool:
        """Whether the graph is one, and not data with an ontology."""
        return self.classes + self.concepts > 0 and self.individuals <= self.terms * _DATA_SHARE

    @property
    def kinds(self) -> frozenset[Iri]:
        """The kinds of the nodes in its tree."""
        return CLASS_KINDS if self.classes else CONCEPT_KINDS


@dataclass(frozen=True, slots=True)
class Ontology:
    """The classes and properties that a graph declares.

    Args:
        classes: The classes, or the concepts of a thesaurus, that have an IRI, by IRI.
        size: How many there are; at least so many where the ontology is too large to read all of it.
        properties: The properties, by IRI.
        property_size: How many there are.
        is_thesaurus: Whether the classes are the concepts of a thesaurus.
        wider: The classes directly above each, declared or not, by id.
        expressions: The class expressions above each, or equivalent to it.
        domains: The classes that each property is of; a union counts as its classes.
        ranges: What each property leads to.
    """

    classes: tuple[Iri, ...]
    size: Count
    properties: tuple[Iri, ...]
    property_size: Count
    is_thesaurus: bool
    wider: Mapping[Node, Sequence[Node]]
    expressions: Mapping[Node, Sequence[Node]]
    domains: Mapping[Node, Sequence[Node]]
    ranges: Mapping[Node, Sequence[Node]]
    narrower: Mapping[Node, Sequence[Node]] = field(init=False, repr=False, compare=False)
    below: Mapping[Node, int] = field(init=False, repr=False, compare=False)
    of_class: Mapping[Node | None, Sequence[Iri]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        narrower, of_class = defaultdict[Node, list[Node]](list), defaultdict[Node | None, list[Iri]](list)
        for each in self.classes:
            for above in self.wider.get(each, ()):
                narrower[above].append(each)
        for each in self.properties:
            for owner in self.domains.get(each) or (None,):
                of_class[owner].append(each)
        below = _counted_below(self.classes, narrower)
        for siblings in narrower.values():
            siblings.sort(key=lambda node: (-below[node], node_key(node)))
        object.__setattr__(self, "narrower", narrower)
        object.__setattr__(self, "below", below)
        object.__setattr__(self, "of_class", of_class)

    @property
    def words(self) -> tuple[str, str]:
        """The noun for one of its classes, and for several."""
        return ("concept", "concepts") if self.is_thesaurus else ("class", "classes")

    def terms(self) -> Iterator[Node]:
        """Yield everything that it names, with repeats."""
        yield from chain(self.classes, self.narrower, self.properties)
        for ends in (self.domains, self.ranges, self.expressions):
            yield from chain.from_iterable(ends.values())

    def above(self, node: Node) -> list[Node]:
        """Return the classes above one, the nearest first, each once; at most `_MOST_ABOVE`."""
        found = dict.fromkeys(self.wider.get(node, ()))
        ahead = list(found)
        while ahead and len(found) < _MOST_ABOVE:
            fresh = [each for each in self.wider.get(ahead.pop(0), ()) if each not in found and each != node]
            found.update(dict.fromkeys(fresh))
            ahead += fresh
        return [each for each in found if each != node]

    def tops(self) -> list[Node]:
        """Return the classes that nothing is above, the largest branch first; of those in a circle the first."""
        order = sorted({*self.narrower, *self.classes}, key=lambda node: (-self.below[node], node_key(node)))
        tops, reached = list[Node](), set[Node]()
        for node in (*(each for each in order if not self.wider.get(each)), *order):
            if node not in reached:
                tops.append(node)
                reached.update(self._branch(node))
        return tops

    def _branch(self, node: Node) -> set[Node]:
        found, ahead = {node}, [node]
        while ahead:
            fresh = [each for each in self.narrower.get(ahead.pop(), ()) if each not in found]
            found.update(fresh)
            ahead += fresh
        return found

    def ways_down(self, node: Node, most: int) -> Iterator[list[Node]]:
        """Yield the ways down from a class that nothing is above, the first so many, each with the class last."""
        ahead, yielded = [[node]], 0
        while ahead and yielded < most:
            way = ahead.pop()
            above = [each for each in self.wider.get(way[0], ()) if each not in way] if len(way) < _HIGHEST else []
            ahead += [[each, *way] for each in reversed(above)]
            if not above:
                yielded += 1
                yield way


def _counted_below(classes: Sequence[Node], narrower: Mapping[Node, Sequence[Node]]) -> Counter[Node]:
    """Return how many classes are below each, each once, in circles too."""
    bits = {node: 1 << place for place, node in enumerate(classes)}
    sets = dict.fromkeys((*classes, *narrower), 0)
    order, is_changed = _from_below(narrower), True
    while is_changed:
        is_changed = False
        for node in order:
            found = sets[node]
            for child in narrower[node]:
                found |= sets[child] | bits[child]
            is_changed |= found != sets[node]
            sets[node] = found
    return Counter({node: (found & ~bits.get(node, 0)).bit_count() for node, found in sets.items()})


def _from_below(narrower: Mapping[Node, Sequence[Node]]) -> list[Node]:
    """Return the classes that have others below them, each behind those, but for circles."""
    order, met = list[Node](), set[Node]()
    for top in narrower:
        ahead = [(top, False)]
        while ahead:
            node, is_done = ahead.pop()
            if is_done:
                order.append(node)
            elif node not in met:
                met.add(node)
                ahead += [(node, True), *((child, False) for child in narrower[node] if child in narrower)]
    return order


async def read_ontology(graph: KGAdapter, declared: Declared, around: Collection[Node] = ()) -> Ontology:
    """Return the ontology of a graph; of a large one a part: some classes with all above them, and those below others.

    Args:
        graph: The graph.
        declared: What its definition counts.
        around: What is read in any case, with what is above and directly below it.

    Raises:
        BackendError: The graph does not answer.
    """
    (some, size), (properties, property_size) = await _instances(graph, declared.kinds, PROPERTY_KINDS)
    wide = frozenset((*graph.vocabulary.subclasses, _BROADER))
    classes = dict.fromkeys(some)
    if not size.exact and around:
        below = await graph.neighbors(NeighborRequest(tuple(around), "in", relations=wide, limit=_MOST_FACTS))
        heads = (triple.head for page in below.values() for triple in page.triples)
        classes |= dict.fromkeys(each for each in (*around, *heads) if isinstance(each, Iri))
    triples = await _about(graph, (*classes, *properties), wide)
    if not size.exact:
        await _climb(graph, wide, classes, triples)
    unions = await read_expressions(graph, [each.tail for each in triples if each.relation in _DOMAINS])

    def joined() -> Ontology:
        wider, expressions, domains, ranges = (defaultdict[Node, dict[Node, None]](dict) for _ in range(4))
        for head, relation, tail in ((each.head, each.relation, each.tail) for each in triples):
            if relation in _DOMAINS:
                domains[head].update((each, None) for each in unions.members(tail) if isinstance(each, Iri))
            elif relation in _RANGES:
                ranges[head][tail] = None
            elif isinstance(tail, BlankNode):
                expressions[head][tail] = None
            elif relation == _NARROWER:
                wider[tail][head] = None
            elif relation in wide and head != tail:
                wider[head][tail] = None
        found = ({node: tuple(each) for node, each in of.items()} for of in (wider, expressions, domains, ranges))
        return Ontology(tuple(classes), size, properties, property_size, not declared.classes, *found)

    return await off_loop(joined)


async def class_count(graph: KGAdapter, declared: Declared) -> Count:
    """Return how many classes that have an IRI a graph declares.

    Raises:
        BackendError: The graph does not answer.
    """
    ((_, size),) = await _instances(graph, declared.kinds)
    return size


async def _climb(graph: KGAdapter, wide: frozenset[Iri], classes: dict[Iri, None], triples: list[Triple]) -> None:
    """Add all that is above some classes to them and to what is known about them."""
    fresh = triples
    for _ in range(_HIGHEST):
        tails = (each.tail for each in fresh if each.relation in wide)
        ahead = dict.fromkeys(each for each in tails if isinstance(each, Iri) and each not in classes)
        if not ahead or len(classes) > 2 * MOST_TERMS:
            return
        classes |= ahead
        fresh = await _about(graph, tuple(ahead), wide)
        triples += fresh


async def _about(graph: KGAdapter, terms: Sequence[Node], wide: frozenset[Iri]) -> list[Triple]:
    """Return what classes are below, and what properties have and lead to."""
    asked = wide | {_NARROWER, _EQUIVALENT, *_DOMAINS, *_RANGES}
    most, found = _PER_REMOTE_REQUEST if graph.remote else _PER_REQUEST, list[Triple]()
    for first in range(0, len(terms), most):
        await anyio.lowlevel.checkpoint()
        request = NeighborRequest(tuple(terms[first : first + most]), "out", relations=asked, limit=_MOST_FACTS)
        found += chain.from_iterable(page.triples for page in (await graph.neighbors(request)).values())
    return found


async def _instances(graph: KGAdapter, *kinds: frozenset[Iri]) -> list[tuple[tuple[Iri, ...], Count]]:
    """Return for some kinds the instances that have an IRI, as far as they are read, and how many there are.

    Where not all are read, the number counts those without a name too. They are one request, unless a page is full.
    """
    most = MOST_REMOTE_TERMS if graph.remote else MOST_TERMS
    every, types = tuple(sorted(frozenset[Iri]().union(*kinds))), frozenset(graph.vocabulary.types)
    pages = await graph.neighbors(NeighborRequest(every, "in", relations=types, limit=_PAGE))
    named: dict[Iri, set[Iri]] = {}
    unread = set[Iri]()
    for kind in every:
        page, found = pages.get(kind, _NOTHING), named.setdefault(kind, set())
        for _ in range(_PAGES):
            found.update(each.head for each in page.triples if isinstance(each.head, Iri))
            if page.cursor is None or len(found) > most:
                break
            await anyio.lowlevel.checkpoint()
            more = NeighborRequest((kind,), "in", relations=types, limit=_PAGE, cursor=page.cursor)
            page = (await graph.neighbors(more)).get(kind, _NOTHING)
        if page.cursor is not None:
            unread.add(kind)
    counted = list[tuple[tuple[Iri, ...], Count]]()
    for each in kinds:
        found = set[Iri]().union(*(named[kind] for kind in each))
        is_cut = len(found) > most or not unread.isdisjoint(each)
        total = max(pages[kind].total.value for kind in each if kind in pages) if is_cut else 0
        counted.append((tuple(sorted(found)[:most]), Count(max(total, len(found)), exact=not is_cut)))
    return counted


async def class_paths(graph: KGAdapter, source: Node, target: Node) -> list[Path]:
    """Return how two classes are connected, the shorter path first.

    One path is over the nearest superclass of both, one goes through class expressions. Each level above both is one
    request. Expressions of a remote graph are left out.
    """
    wider = frozenset(graph.vocabulary.subclasses)
    found: dict[tuple[Node, ...], Path] = {}
    try:
        with anyio.fail_after(time_left_s(math.inf)):
            for relations in (wider,) if graph.remote else (wider, wider | THROUGH | {_EQUIVALENT}):
                path = await _meeting(graph, source, target, relations)
                if path is not None:
                    found.setdefault(path.nodes, path)
    except (TimeoutError, BackendError):
        note_partial("Superclasses are missing: they did not come in time.")
    return sorted(found.values(), key=lambda path: len(path.triples))


async def _meeting(graph: KGAdapter, source: Node, target: Node, relations: Collection[Iri]) -> Path | None:
    """Return the path over the first node that both ends lead to over some relations, or None."""
    reached: tuple[dict[Node, Triple | None], ...] = ({source: None}, {target: None})
    # The class of all things adds nothing to an expression.
    empty = {_THING} if _EQUIVALENT in relations else set[Node]()
    ahead: list[list[Node]] = [[source], [target]]
    for _ in range(_HIGHEST):
        met = (reached[0].keys() & reached[1].keys()) - empty
        if met:
            return await _path(graph, reached, met)
        asked = tuple(dict.fromkeys(chain.from_iterable(ahead)))
        if not asked:
            return None
        request = NeighborRequest(asked, "out", relations=frozenset(relations), limit=_WIDER)
        pages = await graph.neighbors(request)
        for side, known in enumerate(reached):
            steps = [step for node in ahead[side] if node in pages for step in pages[node].triples]
            fresh = {step.tail: step for step in reversed(steps) if step.tail not in known}
            known.update(fresh)
            ahead[side] = list(fresh)[:_WIDEST]
    return None


async def _path(graph: KGAdapter, reached: Sequence[Mapping[Node, Triple | None]], met: Collection[Node]) -> Path:
    """Return the shortest of the paths over nodes that both ends lead to."""

    def climb(side: int, node: Node) -> list[Triple]:
        steps = list[Triple]()
        while (step := reached[side][node]) is not None:
            steps.append(step)
            node = step.head
        return steps

    climbs = [(climb(0, node), climb(1, node)) for node in sorted(met, key=node_key)]
    up, down = min(climbs, key=lambda both: len(both[0]) + len(both[1]))
    up.reverse()
    first = up[0].head if up else down[0].tail
    nodes = (first, *(step.tail for step in up), *(step.head for step in down))
    degrees = await graph.degrees(nodes[1:-1])
    return Path(nodes, (*up, *down), sum(each.neighbors.value for each in degrees.values()))
