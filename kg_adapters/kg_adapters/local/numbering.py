"""Statements of the parser as the builder of an index takes them, and back."""

import pyoxigraph as ox

from kg_adapters.local.arrays import Feature, IndexBuilder


def add_quad(builder: IndexBuilder, quad: ox.Quad) -> None:
    """Add a statement to an index."""
    tail = quad.object
    head = _key(quad.subject)
    if isinstance(tail, ox.Literal):
        builder.add_feature(head, quad.predicate.value, tail.value, tail.datatype.value, tail.language)
    else:
        builder.add_edge(head, quad.predicate.value, _key(tail))


def stated(feature: Feature) -> ox.Quad:
    """Return a literal as a statement."""
    head, relation, value, datatype, language = feature
    subject = ox.BlankNode(head[2:]) if head.startswith("_:") else ox.NamedNode(head)
    kind = None if language is not None else ox.NamedNode(datatype)
    return ox.Quad(subject, ox.NamedNode(relation), ox.Literal(value, datatype=kind, language=language))


def _key(node: ox.NamedNode | ox.BlankNode | ox.Triple) -> str:
    return node.value if isinstance(node, ox.NamedNode) else str(node)
