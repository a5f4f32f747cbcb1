"""What SPARQL engines do differently: the one table."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from kg_adapters.http.options import DialectName, TextSearch
from kg_adapters.terms import BlankNode, Iri

_SERVER_SHARE: Final = 0.9
_LABELS: Final = Iri("http://www.ontotext.com/connectors/lucene/instance#labels")


@dataclass(frozen=True, slots=True)
class BlankNodeNames:
    """How an engine names blank nodes for good.

    Args:
        scheme: What makes the label of a blank node the IRI that stands for it in a query.
        pattern: What its labels look like; an IRI with another label is an error to the engine.
    """

    scheme: str
    pattern: str

    def iri(self, node: BlankNode) -> str | None:
        """Return what stands for a node in a query, or None where it is none of this engine's."""
        return self.scheme + node.label if re.fullmatch(self.pattern, node.label) else None


@dataclass(frozen=True, slots=True)
class Engine:
    """What is known of the engine behind an endpoint.

    Args:
        dialect: The engine, as settings name it.
        text_search: The full-text index that it has.
        longest_limit_s: The longest time, in seconds, that it lets a query ask for; None for that of the table.
        connector: The Lucene connector of GraphDB that has the names; None for that of the table.
    """

    dialect: DialectName = "standard"
    text_search: TextSearch = "none"
    longest_limit_s: float | None = None
    connector: Iri | None = None

    def dialect_of(self) -> "Dialect":
        """Return how it is asked."""
        dialect = DIALECTS[self.dialect]
        limit, connector = self.longest_limit_s, self.connector
        return replace(
            dialect,
            longest_limit_s=dialect.longest_limit_s if limit is None else limit,
            connector=dialect.connector if connector is None else connector,
        )


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an engine needs beyond plain SPARQL 1.1.

    Args:
        name: The engine.
        blank_nodes: How blank nodes are named; None where one of this answer means nothing in the next query.
        orders_hubs: Whether sorting thousands of neighbours is cheap enough. Without it pages of a hub come in the
            engine's own order, and only as long as that stays the same does a cursor go on where the page ended.
        merges_graphs: Whether one statement may match twice because several graphs hold it, so that counts must
            compare what they count.
        digit_booleans: Whether answers have true and false as 1 and 0, whatever was stored.
        nests_sets: Whether differences, steps that are repeated and lists of nothing are answered rightly wherever they
            stand in a query.
        holds_numbers: Whether numbers of any length are numbers to the engine: Oxigraph takes what its 128 bits do not
            hold for a text.
        time_limit: The parameter by which a query is given up, with `{ms}` or `{s}` for its value.
        longest_limit_s: The longest time, in seconds, that may be asked for; None for any. More is left to the engine,
            which has a limit of its own.
        text_search: The full-text index that the engine may have.
        named_by: Headers of replies by which the engine is recognised, with a part of each value.
        connector: The Lucene connector of GraphDB that has the names.
        counts_relations: Whether it knows how many instances of a class have each relation, without reading them.
        joins: Whether it is asked for what links two nodes that have too many neighbours to be read. Blazegraph is not:
            the public Wikidata gives it too little time.
    """

    name: DialectName = "standard"
    blank_nodes: BlankNodeNames | None = None
    orders_hubs: bool = True
    merges_graphs: bool = True
    digit_booleans: bool = False
    nests_sets: bool = True
    holds_numbers: bool = True
    time_limit: tuple[str, str] | None = None
    longest_limit_s: float | None = None
    text_search: TextSearch = "none"
    named_by: tuple[tuple[str, str], ...] = ()
    connector: Iri = _LABELS
    joins: bool = True
    counts_relations: bool = False

    def parameters(self, timeout_s: float, left_s: float | None = None) -> Mapping[str, str]:
        """Return the parameters that make the engine give up a little before its caller does.

        They stay the same, as keys of caches need, until `left_s` is so much less than `timeout_s` that it matters.
        """
        if left_s is not None and left_s < timeout_s * _SERVER_SHARE:
            timeout_s = left_s
        if self.time_limit is None:
            return {}
        name, form = self.time_limit
        seconds = timeout_s * _SERVER_SHARE
        if self.longest_limit_s is not None and seconds > self.longest_limit_s:
            return {}
        return {name: form.format(ms=max(1, round(seconds * 1000)), s=max(1, round(seconds)))}


DIALECTS: Final[Mapping[DialectName, Dialect]] = MappingProxyType(
    {
        dialect.name: dialect
        for dialect in (
            Dialect(holds_numbers=False, named_by=(("server", "oxigraph"),)),
            Dialect(
                "virtuoso",
                BlankNodeNames("nodeID://", "b[0-9]+"),
                digit_booleans=True,
                nests_sets=False,
                holds_numbers=False,
                time_limit=("timeout", "{ms}"),
                text_search="virtuoso",
                named_by=(("server", "virtuoso"),),
            ),
            Dialect(
                "blazegraph",
                merges_graphs=False,
                time_limit=("timeout", "{s}"),
                text_search="blazegraph",
                joins=False,
            ),
            # A server with the limit that it has by itself refuses queries that ask for more.
            Dialect(
                "qlever",
                merges_graphs=False,
                time_limit=("timeout", "{s}s"),
                longest_limit_s=30.0,
                text_search="qlever",
                counts_relations=True,
            ),
            Dialect(
                "graphdb",
                time_limit=("timeout", "{s}"),
                text_search="lucene",
                named_by=(("server", "graphdb"),),
            ),
            Dialect(
                "fuseki",
                time_limit=("timeout", "{s}"),
                text_search="lucene",
                named_by=(("fuseki-request-id", ""), ("server", "fuseki")),
            ),
        )
    }
)
"""By the name that a setting has."""
