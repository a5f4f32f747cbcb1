"""The world as its source says it, read without the code that is measured."""

import gzip
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

import pyoxigraph as ox

from benchmarks.world.questions import GRAPH, PREFIXES, full_iri, short_id

Node: TypeAlias = ox.NamedNode | ox.BlankNode
End: TypeAlias = Node | ox.Literal

NAMING: Final = tuple(ox.NamedNode(full_iri(short)) for short in ("rdfs:label", "skos:altLabel"))
_TYPE: Final = ox.NamedNode(full_iri("rdf:type"))
_INVERSE: Final = ox.NamedNode(full_iri("owl:inverseOf"))
_SYMMETRIC: Final = ox.NamedNode(full_iri("owl:SymmetricProperty"))
_SUBCLASS: Final = ox.NamedNode(full_iri("rdfs:subClassOf"))


class World:
    """The triples of the world, with what is asked of them here."""

    def __init__(self, path: Path = GRAPH) -> None:
        self._store = ox.Store()
        self._store.bulk_load(gzip.decompress(path.read_bytes()), ox.RdfFormat.TURTLE)

    @property
    def triples(self) -> bytes:
        """All that the world says, as N-Triples."""
        written = self._store.dump(format=ox.RdfFormat.N_TRIPLES, from_graph=ox.DefaultGraph())
        assert written is not None
        return written

    def solutions(self, query: str) -> list[dict[str, End]]:
        """Return what each solution of a SELECT query binds."""
        found = self._store.query(query)
        assert isinstance(found, ox.QuerySolutions)
        names = [variable.value for variable in found.variables]
        return [{name: row[name] for name in names if row[name] is not None} for row in found]

    def csv(self, query: str) -> str:
        """Return the answer to a query as CSV, the shortest of the formats of SPARQL."""
        found = self._store.query(query)
        assert not isinstance(found, ox.QueryTriples)
        if isinstance(found, ox.QueryBoolean):
            return str(bool(found)).lower()
        written = found.serialize(format=ox.QueryResultsFormat.CSV)
        assert written is not None
        return written.decode()

    def outgoing(self, head: End, relation: ox.NamedNode) -> Iterator[ox.Triple]:
        """Yield the statements about `head` over a relation."""
        if not isinstance(head, ox.Literal):
            for quad in self._store.quads_for_pattern(head, relation, None):
                yield quad.triple

    def incoming(self, tail: End, relation: ox.NamedNode) -> Iterator[ox.Triple]:
        """Yield the statements over a relation that end in `tail`."""
        for quad in self._store.quads_for_pattern(None, relation, tail):
            yield quad.triple

    def over(self, relation: str) -> list[ox.Triple]:
        """Return every statement over a relation, given by its short id, in a fixed order."""
        found = [quad.triple for quad in self._store.quads_for_pattern(None, ox.NamedNode(full_iri(relation)), None)]
        return sorted(found, key=str)

    def instances(self, kind: str) -> list[str]:
        """Return the short ids of the instances of a class and of its subclasses, in order."""
        below = {kind}
        pending = [kind]
        while pending:
            lower = [short_id(str_of(each.subject)) for each in self.incoming(named(pending.pop()), _SUBCLASS)]
            pending += [each for each in lower if each not in below]
            below.update(lower)
        found = (short_id(str_of(each.subject)) for one in below for each in self.incoming(named(one), _TYPE))
        return sorted(found)

    def names(self, node: End) -> list[str]:
        """Return the labels and aliases of a node, in every language."""
        return [tail.value for relation in NAMING for tail in self._values(node, relation)]

    def label(self, short: str) -> str | None:
        """Return the English label of an entity or relation, given by its short id."""
        tails = [tail for tail in self._values(named(short), NAMING[0]) if tail.language == "en"]
        return tails[0].value if tails else None

    @cached_property
    def bearers(self) -> dict[str, set[str]]:
        """The short ids of what bears each name."""
        found: dict[str, set[str]] = defaultdict(set)
        for relation in NAMING:
            for quad in self._store.quads_for_pattern(None, relation, None):
                if isinstance(quad.object, ox.Literal) and isinstance(quad.subject, ox.NamedNode):
                    found[quad.object.value].add(short_id(quad.subject.value))
        return found

    @cached_property
    def inverses(self) -> dict[str, str]:
        """The IRI of each relation's declared inverse, both ways; a symmetric relation is its own."""
        found = self._store.quads_for_pattern(None, _INVERSE, None)
        pairs = {str_of(quad.subject): str_of(quad.object) for quad in found}
        symmetric = [str_of(triple.subject) for triple in self.incoming(_SYMMETRIC, _TYPE)]
        return pairs | {there: here for here, there in pairs.items()} | {each: each for each in symmetric}

    def _values(self, node: End, relation: ox.NamedNode) -> list[ox.Literal]:
        tails = [triple.object for triple in self.outgoing(node, relation)]
        return [tail for tail in tails if isinstance(tail, ox.Literal)]


def named(short: str) -> ox.NamedNode:
    """Return the node of a short id."""
    return ox.NamedNode(full_iri(short))


def end_of(term: object) -> End:
    """Return a term that is no triple, as no term of the world is one."""
    assert isinstance(term, ox.NamedNode | ox.BlankNode | ox.Literal)
    return term


def str_of(term: object) -> str:
    """Return the IRI, label or text of a term."""
    return end_of(term).value


def prologue() -> str:
    """Return the prefixes of the world's queries."""
    return " ".join(f"PREFIX {name}: <{base}>" for name, base in PREFIXES.items())
