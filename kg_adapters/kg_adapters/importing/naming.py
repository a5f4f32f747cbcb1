"""Which relations name entities: labels of properties, SKOS-XL labels, and relations that look like names."""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from kg_adapters.appellations import ALIAS, VOCABULARIES
from kg_adapters.index.graph_index import GraphIndex, Ints, Longs, bare_relations, written
from kg_adapters.labels import RDF_TYPE
from kg_adapters.terms import RDF_LANG_STRING, XSD_STRING

_ENTITY: Final = "http://www.wikidata.org/entity/"
_DIRECT: Final = "http://www.wikidata.org/prop/direct/"


def names_of_relations(
    find_node: Callable[[str], int | None],
    relations: Mapping[str, int],
    feature_heads: Ints,
    feature_relations: Ints,
    texts: Container[str],
) -> Iterator[tuple[str, str, Longs]]:
    """Yield which relations are called by which literals of their properties.

    Args:
        find_node: Returns the number of a node, or None.
        relations: The number of each relation.
        feature_heads: Whom the literals belong to; shape [f].
        feature_relations: Their relations; shape [f].
        texts: Relations that name and describe.

    Yields:
        The relation of Wikidata, the relation that names or describes it, and the rows of the literals.
    """
    direct = [relation for relation in relations if relation.startswith(_DIRECT)]
    found = ((find_node(_ENTITY + each.removeprefix(_DIRECT)), each) for each in direct)
    owners = {node: each for node, each in found if node is not None}
    if not owners:
        return
    rows = np.flatnonzero(np.isin(feature_heads, np.fromiter(owners, np.int32, len(owners))))
    for name, number in relations.items():
        if name in texts:
            said = rows[feature_relations[rows] == number]
            for head in np.unique(feature_heads[said]).tolist():
                yield owners[head], name, said[feature_heads[said] == head]


_FORMS: Final = tuple(each.form for each in VOCABULARIES)


def plain_labels(
    find_node: Callable[[str], int | None],
    relations: Mapping[str, int],
    edges: tuple[Ints, ...],
    feature_heads: Ints,
    feature_relations: Ints,
) -> Iterator[tuple[str, Ints, Longs]]:
    """Yield relations of SKOS with the entities that have a label by them, and the literals that it is.

    Labels of SKOS-XL and appellations of CIDOC CRM (P1 or P102 to a node with P190) are such. A node without exactly
    one text is no label, and nothing follows from it.

    Args:
        find_node: Returns the number of a node, or None.
        relations: The number of each relation.
        edges: Heads, relations and tails, numbered; shape [e] each.
        feature_heads: Whom the literals belong to; shape [f].
        feature_relations: Their relations; shape [f].

    Yields:
        The relation's IRI, heads of shape [k], and the row of the literal of each; shape [k].
    """
    heads, edge_relations, tails = edges
    for each in VOCABULARIES:
        rows = np.flatnonzero(feature_relations == relations.get(each.form, -1))
        labels, firsts, counts = np.unique(feature_heads[rows], return_index=True, return_counts=True)
        labels, rows = labels[counts == 1], rows[firsts[counts == 1]]
        if not len(labels):
            continue
        typed = (edge_relations == relations.get(RDF_TYPE.value, -1)) & (tails == (find_node(each.identifiers) or -1))
        identifiers = np.isin(labels, heads[typed])
        for relation, name in each.relations.items():
            named = np.flatnonzero(edge_relations == relations.get(relation, -1))
            places = np.minimum(np.searchsorted(labels, tails[named]), len(labels) - 1)
            known = labels[places] == tails[named]
            for meant, chosen in ((name, known & ~identifiers[places]), (ALIAS, known & identifiers[places])):
                if chosen.any():
                    yield meant, heads[named][chosen], rows[places[chosen]]


_LOOKED_AT: Final = 10_000
_LEAST_SHARE: Final = 0.2
_LEAST_BEARERS: Final = 2
_MOST_EACH: Final = 1.2
_LEAST_DISTINCT: Final = 0.8
_LONGEST_MEAN: Final = 60
_MOST_PROPOSED: Final = 5
_TEXTS: Final = (XSD_STRING.value, RDF_LANG_STRING.value)


@dataclass(frozen=True, slots=True)
class LikelyName:
    """A relation that looks as if it led to names.

    Args:
        relation: Its IRI.
        entities: How many entities without a name have such a text.
        example: One of the texts.
    """

    relation: str
    entities: int
    example: str


@dataclass(frozen=True, slots=True)
class NamingReport:
    """How many entities have a name; blank nodes are not counted, nor relations that nothing else is said of.

    Args:
        entities: How many entities with an IRI there are.
        named: How many of them have a name.
        likely: Relations that could name most of the others; those with the most first.
    """

    entities: int
    named: int
    likely: tuple[LikelyName, ...]

    @property
    def mostly_nameless(self) -> bool:
        """Whether more entities have no name than have one."""
        return self.named * 2 < self.entities


def naming_of(index: GraphIndex) -> NamingReport:
    """Return which entities have a name; where most have none, also what could name them."""
    counted = ~(bare_relations(index) | _blank(index))
    # Whoever has only ever been a class or an object of the web's vocabularies says nothing about itself.
    said = (np.diff(index.features.starts) > 0) | (np.diff(index.out.groups) > 0)
    counted &= said
    # A label of SKOS-XL, or an appellation, is a name itself.
    named = (index.labels >= 0) | _is_a_name(index)
    naming = NamingReport(int(counted.sum()), int((counted & named).sum()), ())
    if not naming.mostly_nameless:
        return naming
    likely = sorted(_likely(index, counted & ~named), key=lambda each: (-each.entities, each.relation))
    return NamingReport(naming.entities, naming.named, tuple(likely[:_MOST_PROPOSED]))


def _is_a_name(index: GraphIndex) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(index.nodes), dtype=np.bool_)
    for relation in map(index.relations.find, _FORMS):
        rows = np.flatnonzero(index.features.relations == (-1 if relation is None else relation))
        found[np.searchsorted(index.features.starts, rows, side="right") - 1] = True
    return found


def _likely(index: GraphIndex, nameless: npt.NDArray[np.bool_]) -> Iterator[LikelyName]:
    table = index.features
    owners = np.repeat(np.arange(len(index.nodes)), np.diff(table.starts))
    texts = [number for number in range(len(index.datatypes)) if index.datatypes[number] in _TEXTS]
    rows = np.flatnonzero(nameless[owners] & np.isin(table.datatypes, texts))
    order = rows[np.argsort(table.relations[rows], kind="stable")]
    for part in np.split(order, np.flatnonzero(np.diff(table.relations[order])) + 1):
        if len(part) and (found := _as_name(index, part, owners, int(nameless.sum()))) is not None:
            yield found


def _as_name(index: GraphIndex, rows: Longs, owners: Longs, nameless: int) -> LikelyName | None:
    """Return the relation of these rows if it has texts of many, about one for each, short and mostly distinct."""
    bearers = len(np.unique(owners[rows]))
    texts = list(written(index.features.values, rows[:_LOOKED_AT]))
    distinct = len(set(texts)) / len(texts)
    mean = sum(map(len, texts)) / len(texts)
    fits = bearers >= max(_LEAST_BEARERS, _LEAST_SHARE * nameless) and len(rows) <= _MOST_EACH * bearers
    if not fits or distinct < _LEAST_DISTINCT or not 0 < mean <= _LONGEST_MEAN:
        return None
    return LikelyName(index.relations[int(index.features.relations[rows[0]])], bearers, texts[0])


def _blank(index: GraphIndex) -> npt.NDArray[np.bool_]:
    """Return which nodes are blank; they stand together, since their keys begin alike."""
    firsts = index.nodes.offsets[:-1]
    two = np.zeros(len(firsts), dtype=np.bool_)
    long = np.diff(index.nodes.offsets) > 1
    places = firsts[long]
    two[long] = (index.nodes.text[places] == ord("_")) & (index.nodes.text[places + 1] == ord(":"))
    return two
