"""Small graphs with one trap each, and a short notation to write more of them.

A statement is written as three words, `"tokyo country japan"`. A word is a local name in `http://example.org/`, a name
of `NAMES`, a blank node (`_:b0`), an IRI in angle brackets or, at the end, a literal in N-Triples notation.
"""

from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import pytest

from kg_adapters.labels import RDF_TYPE, WIKIDATA_TYPES
from kg_adapters.models import NO_FEATURES, Count, Direction, FeaturePage
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import XSD, Iri, Literal, Node, Triple, node_from_key, node_key

EXAMPLE: Final = "http://example.org/"
NAMES: Final[Mapping[str, Iri]] = {
    "type": RDF_TYPE,
    "P31": WIKIDATA_TYPES[0],
    "label": Iri("http://www.w3.org/2000/01/rdf-schema#label"),
    "prefLabel": Iri("http://www.w3.org/2004/02/skos/core#prefLabel"),
    "altLabel": Iri("http://www.w3.org/2004/02/skos/core#altLabel"),
    "description": Iri("http://schema.org/description"),
    "subClassOf": Iri("http://www.w3.org/2000/01/rdf-schema#subClassOf"),
    "inverseOf": Iri("http://www.w3.org/2002/07/owl#inverseOf"),
}


def iri(name: str) -> Iri:
    """Return the IRI that a word of the notation stands for."""
    return NAMES.get(name) or Iri(EXAMPLE + name)


def edge(text: str) -> Triple:
    """Return the triple that a statement without a literal stands for."""
    head, relation, tail = (_word(word) for word in text.split())
    return Triple(node_from_key(head), Iri(relation), node_from_key(tail))


def edges(*texts: str) -> tuple[Triple, ...]:
    """Return the triples of several statements."""
    return tuple(edge(text) for text in texts)


def typed(value: str, datatype: str) -> Literal:
    """Return a literal with a datatype of XML Schema, named by its local part."""
    return Literal(value, Iri(XSD + datatype))


def ntriples(statements: Iterable[str]) -> str:
    """Return statements in the short notation as N-Triples."""
    return "".join(f"{_line(statement)}\n" for statement in statements)


def in_order(
    triples: Iterable[Triple],
    entity: Node,
    direction: Direction,
    relations: Collection[Iri] | None = None,
    limit_per_relation: int | None = None,
) -> tuple[Triple, ...]:
    """Return an entity's neighbouring triples as `KGAdapter.neighbors` lists them: the slow, plain reading of it."""
    groups: dict[tuple[bool, Iri], list[tuple[str, Triple]]] = defaultdict(list)
    for triple in set(triples):
        if relations is not None and triple.relation not in relations:
            continue
        if triple.head == entity and direction != "in":
            groups[False, triple.relation].append((node_key(triple.tail), triple))
        if triple.tail == entity and (direction == "in" or (direction == "both" and triple.head != entity)):
            groups[True, triple.relation].append((node_key(triple.head), triple))
    turns = [
        (turn, group, triple)
        for group, members in groups.items()
        for turn, (_, triple) in enumerate(sorted(members, key=lambda member: member[0]))
        if limit_per_relation is None or turn < limit_per_relation
    ]
    return tuple(triple for _, _, triple in sorted(turns, key=lambda item: item[:2]))


def _line(statement: str) -> str:
    head, relation, tail = statement.split(maxsplit=2)
    written = tail if tail.startswith('"') else _written(_word(tail))
    return f"{_written(_word(head))} {_written(_word(relation))} {written} ."


def _written(key: str) -> str:
    return key if key.startswith("_:") else f"<{key}>"


def _word(word: str) -> str:
    if word.startswith("<"):
        return word[1:-1]
    return word if word.startswith("_:") else iri(word).value


TOWNS: Final = (
    "japan capital tokyo",
    "kyoto borders otsu",
    "kyoto borders uji",
    "kyoto country japan",
    "kyoto twin kyiv",
    "kyoto twin paris",
    "nara capitalOf japan",
    "osaka country japan",
    "paris country france",
    "paris twin kyoto",
    "tokyo capitalOf japan",
    "tokyo country japan",
    'hermit label "A hermit, who knows nobody"@en',
)
"""Two relations each way between the same two nodes, a cycle, and an entity with a label and no neighbours."""
LOOPS: Final = ("a knows a", "a knows b", "a likes b", "b knows a", "b likes b", "c likes a")
"""Self-loops, parallel edges and a cycle of two."""
TANGLE: Final = tuple(f"n{i * i // 3 % 12} r{i // 5 % 4} n{(7 * i + i // 4) % 12}" for i in range(90))
"""A dozen nodes with many edges of four relations in every way, to themselves too, some said twice."""
CITIZENS: Final = 3_000
HUB: Final = (
    "tokyo capitalOf japan",
    *(f"person{number:04} citizenOf japan" for number in range(CITIZENS)),
    "japan partOf asia",
    'japan label "Japan"@en',
)
"""One node with thousands of edges of one relation and a single one of another."""
BLANKS: Final = ("_:ward partOf tokyo", '_:ward label "a ward without a name"@en', "_:ward near _:park")
"""Nodes without an IRI on both sides of an edge."""
UNICODE: Final = (
    "東京 国 日本",
    '東京 label "東京 🗼"@ja',
    "mitte near Ä",
    "mitte near a",
    "mitte near ﾊ",
    "mitte near 😀",
    "mitte near Z",
)
"""IRIs beyond ASCII, two of which sort differently by code point and by UTF-16."""
NAMED: Final = (
    'tokyo label "東京"@ja',
    'tokyo label "Tokio"@de',
    'tokyo label "Tokyo"@en',
    'bern label "Berne"@fr',
    'bern label "Bern"@mul',
    'bern label "Bärn"',
    'oslo label "Oslo in Norwegen"@de',
    'oslo label "Oslo"',
    'lima label "Lima la ciudad"@es',
    'lima label "Lima die Stadt"@de',
    'bath label "Bath"@en-GB',
    'bath label "Bath auf Deutsch"@de',
    'nara prefLabel "Nara"@en',
    'kobe prefLabel "Kobe"@en',
    'kobe label "神戸"@ja',
    "tokyo near nameless",
)
"""Labels in several languages and by several relations."""
DESCRIBED: Final = (
    'tokyo label "Tokyo"@en',
    'tokyo description "Hauptstadt Japans"@de',
    'tokyo description "capital of Japan"@en',
    "tokyo type Metropolis",
    "tokyo type City",
    "tokyo P31 Capital",
    "tokyo country japan",
    'country label "country"@en',
    "osaka country japan",
)
"""Descriptions, types by two relations, and a relation that is also spoken of."""
VALUES: Final = (
    'tokyo area "2194.07"^^<http://www.w3.org/2001/XMLSchema#decimal>',
    'tokyo code "T1"^^<http://example.org/code>',
    r'tokyo motto "two\nlines, \"quoted\" \\ and back"@en',
    'tokyo name "Tokio"@de',
    'tokyo name "Tokio"@pl',
    'tokyo name "Tokio"',
    'tokyo name "東京"@ja',
    'tokyo opened "1889-05-01"^^<http://www.w3.org/2001/XMLSchema#date>',
    'tokyo population "13960000"^^<http://www.w3.org/2001/XMLSchema#integer>',
    "tokyo country japan",
)
"""Literals with datatypes and languages, and one edge that is no feature."""
SEARCHABLE: Final = (
    'planet label "Mercury"@en',
    "planet type Planet",
    'element label "Mercury"@en',
    'element altLabel "quicksilver"@en',
    "element type Element",
    'earth label "Earth"@en',
    "earth type Planet",
    r'odd label "the \"odd\" one {?x} \\ <b>"@en',
)
"""Two entities of one name and different types, an alias, and a name full of syntax."""
CALLED: Final = (
    'father label "father"@en',
    'father altLabel "dad"@en',
    'inLaw label "father-in-law"@en',
    'feathers label "feathers"@en',
    'weather label "the arts"@en',
    'birthPlace label "place of birth"@en',
    'deathPlace label "place of death"@en',
    'born label "date of birth"@en',
    'capital label "capital"@en',
    'seat label "capital"@en',
    'seat altLabel "seat of power"@en',
    'mayor label "head of government"@en',
    'head label "mayor"@en',
    "ann father bob",
    "ann inLaw carl",
    "ann birthPlace kyoto",
    "bob birthPlace kyoto",
    "ann deathPlace kyoto",
    "kyoto weather fine",
    "kyoto mayor bob",
    "kyoto head carl",
    "japan capital tokyo",
    "japan seat tokyo",
    "france seat paris",
    'ann born "1952-01-17"^^<http://www.w3.org/2001/XMLSchema#date>',
    'owl feathers "brown"',
)
"""Relations and features with labels and aliases, two of one label, and one called as another one's IRI says."""
SUMMED: Final = (
    "kyoto type City",
    "osaka type City",
    "osaka type Port",
    "kyoto country japan",
    "osaka country japan",
    "osaka near kyoto",
    'City label "city"@en',
    'near label "near"@en',
    'osaka population "2700000"^^<http://www.w3.org/2001/XMLSchema#integer>',
)
"""Two classes, three relations and two features, each counted easily by hand."""
ROADS: Final = (
    "a near z",
    "z near a",
    "a near m",
    "m near z",
    "a near n",
    "n near z",
    "n near x",
    "a type Town",
    "z type Town",
    "m partOf n",
)
"""From a to z: two direct edges, two ways of two hops and two of three, and one over a class."""
CROWD: Final = ("a near hub", "hub near z", *(f"p{number} near hub" for number in range(50)), "a near b", "b near z")
"""From a to z: one way over a node with 52 neighbours, one over a quiet node."""
HEAP: Final = tuple(f"s{number} r{number % 3} o{number % 97}" for number in range(2_000))
"""Enough triples that a cross product of several patterns never ends."""


async def feature_page(graph: KGAdapter, entity: Node, *, relation: Iri | None = None, limit: int = 200) -> FeaturePage:
    """Return what a graph says of a single entity: an empty page where it says nothing."""
    relations = None if relation is None else frozenset({relation})
    return (await graph.features(FeatureRequest((entity,), relations, limit))).get(entity, NO_FEATURES)


SHOWN: Final = 3
"""How many missing or surplus items a failure names: pytest would take minutes to show how two long ones differ."""


@pytest.mark.anyio
class GraphOpening:
    """The one thing to override, and what a store may declare that it cannot do.

    Attributes:
        stable_blank_nodes: Whether a blank node of one answer can be asked about in the next call. SPARQL endpoints
            give blank nodes new labels with every answer.
    """

    stable_blank_nodes: bool = True

    @pytest.fixture
    def anyio_backend(self) -> str:
        """Run the contract on asyncio."""
        return "asyncio"

    async def open_graph(self, triples: str) -> KGAdapter:
        """Return a new adapter, with the default `Vocabulary`, over exactly the graph of an N-Triples text."""
        raise NotImplementedError("override open_graph(triples) to return your adapter over these N-Triples")

    @asynccontextmanager
    async def opened(self, statements: Iterable[str]) -> AsyncGenerator[KGAdapter]:
        """Open a graph in the short notation for the time of one test."""
        graph = await self.open_graph(ntriples(statements))
        try:
            yield graph
        finally:
            await graph.aclose()


def allows(count: Count, actual: int) -> bool:
    """Say whether a count is true: exact, or honest about being a lower bound."""
    return count.value == actual if count.exact else count.value <= actual


def apart(found: Collection[object], wanted: Collection[object]) -> str:
    """Return in what two collections of one type differ, with a few examples; nothing where they are the same."""
    if found == wanted:
        return ""
    surplus, missing = set(found).difference(wanted), set(wanted).difference(found)
    told = [
        f"{len(items)} {name}: {'; '.join(sorted(map(repr, items))[:SHOWN])}"
        for name, items in (("surplus", surplus), ("missing", missing))
        if items
    ]
    return ", ".join(told) or f"the same in another order or number: {len(found)} and {len(wanted)}"
