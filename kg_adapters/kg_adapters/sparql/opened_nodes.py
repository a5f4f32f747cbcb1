"""What the blank nodes of answers hold: it came along with them, since no later query can be about them."""

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from typing import Final

from kg_adapters.sparql.queries.edges import MOST_HELD_ROWS
from kg_adapters.sparql.queries.groups import Group, Scope
from kg_adapters.sparql.rows import Around, Texts
from kg_adapters.terms import BlankNode, Iri, Literal, Node, Term

MOST_NODES: Final = 20_000
_ROWS_OF_A_FACT: Final = 2


@dataclass(frozen=True, slots=True)
class _Opened:
    """What one node holds, and what its terms are called."""

    members: Mapping[Group, Set[Term]]
    texts: Mapping[Node, Texts]


class OpenedNodes:
    """Remembers what blank nodes hold; those that were learned first go first.

    Args:
        unspoken: The relations to names and descriptions, which are no facts unless they are asked for.
        most: How many nodes to remember.
    """

    def __init__(self, unspoken: Collection[Iri], most: int = MOST_NODES) -> None:
        self._unspoken = unspoken
        self._most = most
        self._nodes: OrderedDict[BlankNode, _Opened] = OrderedDict()

    def learn(self, found: Around) -> None:
        """Remember the blank nodes that an answer opened, unless some of what they hold may be missing."""
        opened: defaultdict[BlankNode, dict[Group, Set[Term]]] = defaultdict(dict)
        for (entity, group), members in found.members.items():
            if isinstance(entity, BlankNode):
                opened[entity][group] = members
        facts = sum(len(members) for groups in opened.values() for members in groups.values())
        if not found.complete or facts * _ROWS_OF_A_FACT >= MOST_HELD_ROWS:
            return
        for node, groups in opened.items():
            terms = (term for group, members in groups.items() for term in (group.relation, *members))
            nodes = {term for term in terms if not isinstance(term, Literal) and term in found.texts}
            self._nodes[node] = _Opened(groups, {term: found.texts[term] for term in nodes})
        while len(self._nodes) > self._most:
            self._nodes.popitem(last=False)

    def recall(self, nodes: Collection[Node], scope: Scope) -> Around:
        """Return what some nodes hold of what is asked for, as an answer about them would; of others nothing."""
        found = Around()
        for node in nodes:
            opened = self._nodes.get(node) if isinstance(node, BlankNode) else None
            if opened is not None:
                found.known.add(node)
                found.texts.update(opened.texts)
                for group, members in opened.members.items():
                    if self._counts(group, scope):
                        found.members[node, group].update(members)
                        found.counts[node][group] = len(members)
        return found

    def _counts(self, group: Group, scope: Scope) -> bool:
        if scope.relations is None:
            return group.side in scope.sides and not (group.literal and group.relation in self._unspoken)
        return group.side in scope.sides and group.relation in scope.relations
