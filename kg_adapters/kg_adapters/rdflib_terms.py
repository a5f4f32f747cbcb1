"""Where rdflib's terms become ours, and ours become rdflib's.

rdflib lets a graph hold what RDF does not: IRIs with blanks, blank nodes as relations, literals as heads. Statements
with such a part do not exist for us.
"""

from collections.abc import Iterator

import rdflib
from rdflib.term import BNode, URIRef
from rdflib.term import Literal as RdflibLiteral
from rdflib.term import Node as RdflibNode

from kg_adapters.errors import InvalidRequest
from kg_adapters.terms import RDF_LANG_STRING, XSD_STRING, BlankNode, Iri, Literal, Node, Term

Statement = tuple[Node, Iri, Term]
"""Head, relation and tail, where the tail may be a literal."""


def from_rdflib(term: object) -> Term | None:
    """Return the term of this project, or None where RDF has no such term."""
    try:
        match term:
            case URIRef():
                return Iri(str(term))
            case BNode():
                return BlankNode(str(term))
            case RdflibLiteral():
                return _literal(term)
            case _:
                return None
    except InvalidRequest:
        return None


def to_rdflib(node: Node) -> RdflibNode:
    """Return rdflib's term for a node."""
    return URIRef(node.value) if isinstance(node, Iri) else BNode(node.label)


class RdflibStatements:
    """The valid statements of an rdflib graph; for a dataset those of all its graphs, where one may come repeatedly."""

    def __init__(self, graph: rdflib.Graph) -> None:
        self._graph = graph

    def match(
        self, head: Node | None = None, relation: Iri | None = None, tail: Node | None = None
    ) -> Iterator[Statement]:
        """Yield the statements with the given parts."""
        pattern = tuple(None if node is None else to_rdflib(node) for node in (head, relation, tail))
        for subject, predicate, value in self._triples(pattern):
            ours = from_rdflib(subject), from_rdflib(predicate), from_rdflib(value)
            match ours:
                case (Iri() | BlankNode() as found_head, Iri() as found_relation, found_tail) if found_tail is not None:
                    yield found_head, found_relation, found_tail
                case _:
                    continue

    def mentions(self, node: Node) -> bool:
        """Return whether a node is the head or tail of any statement."""
        return any(True for _ in self.match(head=node)) or any(True for _ in self.match(tail=node))

    def iris(self) -> set[str]:
        """Return every IRI of the graph, read quickly and therefore unchecked; the datatypes of literals too."""
        terms = {term for triple in self._triples((None, None, None)) for term in triple}
        datatypes = {term.datatype for term in terms if isinstance(term, RdflibLiteral)}
        return {str(term) for term in terms | datatypes if isinstance(term, URIRef)}

    def _triples(self, pattern: tuple[RdflibNode | None, ...]) -> Iterator[tuple[object, object, object]]:
        subject, predicate, value = pattern
        if isinstance(self._graph, rdflib.Dataset):
            for quad in self._graph.quads((subject, predicate, value, None)):
                yield quad[0], quad[1], quad[2]
        else:
            yield from self._graph.triples((subject, predicate, value))


def _literal(term: RdflibLiteral) -> Literal:
    if term.language is not None:
        return Literal(str(term), RDF_LANG_STRING, term.language)
    return Literal(str(term), XSD_STRING if term.datatype is None else Iri(str(term.datatype)))
