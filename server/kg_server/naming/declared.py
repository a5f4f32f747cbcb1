"""Relations that an ontology declares or restricts and that no fact has."""

from collections.abc import Sequence
from typing import Final

from kg_adapters.folding import fold
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import NeighborRequest
from kg_adapters.terms import BlankNode, Iri, Node
from kg_boundary.shown import in_quotes
from kg_server.answers.expressions import OWL
from kg_server.names import MAX_LABEL, names_of
from kg_server.ontology import PROPERTY_KINDS

_FOUND: Final = 50
_SHOWN: Final = 3
_ON_PROPERTY: Final = Iri(f"{OWL}onProperty")
_HIGHEST: Final = 5
"""How many levels of class expressions are climbed to the class that they are of."""


async def declared_only(graph: KGAdapter, text: str, relation: Iri | None) -> str:
    """Return where a relation is used that is declared and that no fact has; empty for any other name.

    A remote graph is not asked for it.

    Args:
        graph: The graph.
        text: The name.
        relation: What it is the id of, if it is one.
    """
    if graph.remote or not await graph.describe(list(PROPERTY_KINDS)):
        return ""
    nodes: list[Node] = [] if relation is None else [relation]
    if relation is None:
        found = await graph.search(text, limit=_FOUND)
        nodes = [each.entity for each in found if fold(each.matched_text) == fold(text)]
    described = await graph.describe(nodes)
    declared = next((each for each in nodes if each in described and PROPERTY_KINDS & {*described[each].types}), None)
    if not isinstance(declared, Iri) or "relation" in described[declared].roles:
        return ""
    number, owners = await _restrictions(graph, declared)
    names = await names_of(graph, [declared, *owners])
    shown = names.relation(declared)
    if not number:
        about = names.labels.get(declared, text)
        return f"{shown} is declared here, but no fact has it. Schema(about={in_quotes(about, MAX_LABEL)}) shows it."
    whose = (
        f"{' of' if len(owners) == number else ', such as of'} {' and '.join(map(names.entity, owners))}"
        if owners
        else ""
    )
    about = names.labels.get(owners[0], owners[0].local_part) if owners else text
    used = "it is used in a restriction" if number == 1 else f"it is used in {number:,} restrictions"
    where = f"{whose}. Schema(about={in_quotes(about, MAX_LABEL)}) shows {'it' if number == 1 else 'them'}."
    return f"{shown} is declared here, but no fact has it: {used}{where}"


async def _restrictions(graph: KGAdapter, declared: Iri) -> tuple[int, Sequence[Node]]:
    """Return in how many class expressions a property is restricted, and some of the classes that these are of."""
    nodes: Sequence[Node] = [declared]
    relations: frozenset[Iri] | None = frozenset({_ON_PROPERTY})
    number, owners = 0, dict[Node, None]()
    for _ in range(_HIGHEST):
        pages = await graph.neighbors(NeighborRequest(tuple(nodes), "in", relations=relations, limit=_SHOWN))
        number = number or sum(page.total.value for page in pages.values())
        heads = dict.fromkeys(triple.head for page in pages.values() for triple in page.triples)
        owners |= dict.fromkeys(each for each in heads if isinstance(each, Iri))
        nodes, relations = [each for each in heads if isinstance(each, BlankNode)], None
        if not nodes:
            break
    return number, list(owners)[:_SHOWN]
