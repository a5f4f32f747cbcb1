"""The relations and features of an expression."""

from collections.abc import Sequence

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import Direction
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_server.names import names_of
from kg_server.relation_resolution import Chosen, Sort, relation_of


async def chosen(graph: KGAdapter, text: str, sort: Sort, nodes: Sequence[Node], direction: Direction) -> Chosen:
    """Return the relation or feature that a text stands for at some nodes; see `relation_of`.

    Raises:
        InvalidRequest: The text names none or several, or one of the other sort.
        UnknownRelation: It is an id that no statement has.
    """
    try:
        found = await relation_of(graph, text, sort, around=nodes, direction=direction)
    except InvalidRequest as error:
        if "," not in text:
            raise
        advice = f"One call takes one {sort}: write several calls, side by side or inside Union[…, …]."
        raise InvalidRequest(f"{error} {advice}") from error
    await _require_sort(graph, found.relation, sort)
    return found


async def _require_sort(graph: KGAdapter, relation: Iri, sort: Sort) -> None:
    schema = await graph.schema()
    to_nodes = any(each.iri == relation for each in schema.relations)
    to_values = any(each.iri == relation for each in schema.features)
    names = await names_of(graph, [relation])
    shown, short = names.relation(relation), names.relation_id(relation)
    if sort == "relation" and to_values and not to_nodes:
        raise InvalidRequest(f"{shown} has values, not nodes: use Feature[node, {short}].")
    if sort == "feature" and to_nodes and not to_values:
        raise InvalidRequest(f"{shown} leads to nodes, not values: use Neighbor[node, {short}].")
