"""Converts rdflib's terms to those of this project.

rdflib lets a graph hold what RDF does not: IRIs with blanks, blank nodes as relations, literals as heads. Statements
with such a part do not exist for us.
"""

from collections.abc import Iterator

import rdflib
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.term import BNode, URIRef
from rdflib.term import Literal as RdflibLiteral

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


class RdflibStatements:
    """The valid statements of an rdflib graph; for a dataset those of all its graphs, where one may come repeatedly.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: rdflib.Graph) -> None:
        self._graph = graph

    def match(self) -> Iterator[Statement]:
        """Yield all statements."""
        return (statement for statement, _ in self.in_graphs())

    def in_graphs(self) -> Iterator[tuple[Statement, Node | None]]:
        """Yield all statements, each with the named graph that it is in, if any."""
        for subject, predicate, value, graph in self._quads():
            head, relation, tail, name = map(from_rdflib, (subject, predicate, value, graph))
            if isinstance(head, Iri | BlankNode) and isinstance(relation, Iri) and tail is not None:
                yield (head, relation, tail), None if isinstance(name, Literal) else name

    def iris(self) -> set[str]:
        """Return every IRI of the graph, read quickly and therefore unchecked; the datatypes of literals too."""
        terms = {term for quad in self._quads() for term in quad[:3]}
        datatypes = {term.datatype for term in terms if isinstance(term, RdflibLiteral)}
        return {str(term) for term in terms | datatypes if isinstance(term, URIRef)}

    def _quads(self) -> Iterator[tuple[object, object, object, object]]:
        if isinstance(self._graph, rdflib.Dataset):
            for subject, predicate, value, graph in self._graph.quads((None, None, None, None)):
                yield subject, predicate, value, None if graph == DATASET_DEFAULT_GRAPH_ID else graph
        else:
            yield from ((*triple, None) for triple in self._graph.triples((None, None, None)))


def _literal(term: RdflibLiteral) -> Literal:
    if term.language is not None:
        return Literal(str(term), RDF_LANG_STRING, term.language)
    return Literal(str(term), XSD_STRING if term.datatype is None else Iri(str(term.datatype)))
