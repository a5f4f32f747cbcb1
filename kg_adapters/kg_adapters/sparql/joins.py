"""What links two nodes that have too many neighbours to be read."""

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import islice, pairwise
from typing import Final

from kg_adapters.models import Count, Joined
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.neighborhoods import BATCH
from kg_adapters.sparql.queries.edges import EdgeQueries, cut_short
from kg_adapters.sparql.rows import rows
from kg_adapters.terms import Iri, Node, Triple

MOST_JOINED: Final = 500
"""How many paths between two nodes are asked for of each way in which their edges may point."""


class JoinReader:
    """Asks an endpoint to join paths, as `SupportsJoins` has them.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
    """

    def __init__(self, asker: QueryAsker, queries: EdgeQueries) -> None:
        self._asker = asker
        self._queries = queries

    async def neighbor_counts(self, entities: Iterable[Node]) -> dict[Node, Count]:
        """Return how many neighbours entities have, as `SupportsJoins.neighbor_counts` does."""
        counts: dict[Node, Count] = {}
        nodes = iter([node for node in dict.fromkeys(entities) if self._asker.can_name(node)])
        while batch := tuple(islice(nodes, BATCH)):
            answer = await self._asker.ask_whole(self._queries.neighbor_counts(batch))
            found = [(row.node("e"), row.number("n") or 0, row.number("m") or 0) for row in rows(answer)]
            read = {node: number for node, _, number in found if node is not None}
            cut = cut_short(self._queries.most_counted, batch, read)
            counts |= dict.fromkeys(cut, Count(0, exact=False))
            counts |= {node: Count(number, exact=node not in cut) for node, number, _ in found if node and number}
        return counts

    async def joined(self, source: Node, target: Node, hops: int, *, without: Collection[Iri] = ()) -> Joined:
        """Return the facts on paths between two nodes, as `SupportsJoins.joined` does, by one request."""
        if not (self._asker.can_name(source) and self._asker.can_name(target)):
            return Joined((), whole=True)
        answer = await self._asker.ask(self._queries.joined(source, target, hops, without, MOST_JOINED))
        facts, ways = dict[Triple, None](), Counter[int]()
        for row in rows(answer):
            way = row.number("w") or 0
            ways[way] += 1
            nodes = (source, *(row.node(f"x{place}") for place in range(1, hops)), target)
            for place, (here, there) in enumerate(pairwise(nodes)):
                relation = row.iri(f"p{place}")
                if here is not None and there is not None and relation is not None:
                    ends = (there, here) if way >> place & 1 else (here, there)
                    facts[Triple(ends[0], relation, ends[1])] = None
        whole = not answer.truncated and all(number < MOST_JOINED for number in ways.values())
        return Joined(tuple(facts), whole)
