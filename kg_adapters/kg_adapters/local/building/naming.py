"""Which entities of a graph have a name, and which relations look as if they led to names."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from kg_adapters.local.building.skos_xl import LITERAL_FORM
from kg_adapters.local.index import GraphIndex, Longs
from kg_adapters.local.names.table import bare_relations, written
from kg_adapters.terms import RDF_LANG_STRING, XSD_STRING

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
class Naming:
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


def naming_of(index: GraphIndex) -> Naming:
    """Return which entities have a name; where most have none, also what could name them."""
    counted = ~(bare_relations(index) | _blank(index))
    # Whoever has only ever been a class or an object of the web's vocabularies says nothing about itself.
    said = (np.diff(index.features.starts) > 0) | (np.diff(index.out.groups) > 0)
    counted &= said
    # A label of SKOS-XL is a name itself.
    named = (index.labels >= 0) | _has_literal_form(index)
    naming = Naming(int(counted.sum()), int((counted & named).sum()), ())
    if not naming.mostly_nameless:
        return naming
    likely = sorted(_likely(index, counted & ~named), key=lambda each: (-each.entities, each.relation))
    return Naming(naming.entities, naming.named, tuple(likely[:_MOST_PROPOSED]))


def _has_literal_form(index: GraphIndex) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(index.nodes), dtype=np.bool_)
    relation = index.relations.find(LITERAL_FORM)
    if relation is not None:
        rows = np.flatnonzero(index.features.relations == relation)
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
