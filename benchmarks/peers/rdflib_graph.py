"""rdflib, with its graph in memory."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pyoxigraph as ox
import rdflib
from rdflib.namespace import RDFS
from rdflib.term import Node

from benchmarks.peers.answers import Degrees, paths_query
from benchmarks.sources import quads_of


class RdflibPeer:
    """A graph that is filled by Oxigraph's parser, since rdflib's own takes half a minute."""

    name = "rdflib"

    def __init__(self, source: Path) -> None:
        self._graph = rdflib.Graph()
        known: dict[str, rdflib.URIRef] = {}
        for quad in quads_of(source):
            head, relation = _iri(quad.subject, known), _iri(quad.predicate, known)
            self._graph.add((head, relation, _term(quad.object, known)))

    def rows(self, entity: str, limit: int) -> int:
        """List triples with labels."""
        triples = list(islice(self._around(rdflib.URIRef(entity)), limit))
        for term in {term for triple in triples for term in triple}:
            self._graph.value(term, RDFS.label)
        return len(triples)

    def degrees(self, entity: str) -> Degrees:
        """Count edge by edge."""
        node = rdflib.URIRef(entity)
        found: Degrees = Counter()
        for relation, tail in self._graph.predicate_objects(node):
            if not isinstance(tail, rdflib.Literal):
                found[str(relation), "out"] += 1
        for head, relation in self._graph.subject_predicates(node):
            if head != node:
                found[str(relation), "in"] += 1
        return found

    def paths(self, source: str, target: str, max_hops: int) -> int:
        """Ask for the paths in one query."""
        return len(self._graph.query(paths_query(source, target, max_hops)))

    def heads(self, relation: str, tails: Sequence[str]) -> set[object]:
        """Collect the subjects of triples."""
        return {head for tail in tails for head in self._graph.subjects(rdflib.URIRef(relation), rdflib.URIRef(tail))}

    def tails(self, head: object, relation: str) -> set[object]:
        """Collect the objects of triples."""
        return set(self._graph.objects(head, rdflib.URIRef(relation))) if isinstance(head, Node) else set()

    def texts_around(self, entity: str) -> Iterator[tuple[str, str]]:
        """Give each edge around an entity as a text, `relation tail` or `inverse of relation head`, and its far end."""
        node = rdflib.URIRef(entity)
        for head, relation, tail in self._around(node):
            inverse, far = ("", tail) if head == node else ("inverse of ", head)
            yield f"{inverse}{self._label(relation)} {self._label(far)}", str(far)

    def _label(self, term: Node) -> str:
        label = self._graph.value(term, RDFS.label)
        return str(term if label is None else label)

    def _around(self, node: rdflib.URIRef) -> Iterator[tuple[Node, Node, Node]]:
        for triple in self._graph.triples((node, None, None)):
            if not isinstance(triple[2], rdflib.Literal):
                yield triple
        for triple in self._graph.triples((None, None, node)):
            if triple[0] != node:
                yield triple


def _iri(term: object, known: dict[str, rdflib.URIRef]) -> rdflib.URIRef:
    text = term.value if isinstance(term, ox.NamedNode) else str(term)
    return known.setdefault(text, rdflib.URIRef(text))


def _term(term: object, known: dict[str, rdflib.URIRef]) -> Node:
    if isinstance(term, ox.Literal):
        datatype = None if term.language else rdflib.URIRef(term.datatype.value)
        return rdflib.Literal(term.value, lang=term.language, datatype=datatype)
    return _iri(term, known)
