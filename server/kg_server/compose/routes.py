"""Routes whose text is a single relation, although a slash stands in its label."""

from kg_adapters.protocol import KGAdapter
from kg_server.compose.syntax import Leg, Route, Span, Words
from kg_server.naming.relations import relation_behind_label


async def as_one_relation(graph: KGAdapter, text: str, route: Route) -> Route:
    """Return a route that is one relation as answers print it, `and/or (P5)`, as that relation; others as they are.

    Args:
        graph: The graph.
        text: The expression that the route stands in.
        route: The route.
    """
    first = route.legs[0]
    start = first.name.span.start
    whole = text[start : route.span.end].strip()
    if len(route.legs) < 2 or not whole.endswith(")"):
        return route
    behind = await relation_behind_label(graph, whole)
    if behind is None or not behind.is_called_so:
        return route
    return Route((Leg(Words(whole, Span(start, route.span.end)), first.mark),), route.span)
