"""Groups of facts as lines: `John Lennon (Q1203) | occupation (P106) | 15: writer (Q36180), actor (Q33999), …`."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kg_adapters.terms import Iri, Literal, Node, Term
from kg_server.names import Names
from kg_server.observation.groups import Group

_FORM: Final = re.compile(r"(\)|\A\d+\+?)([,:]) ")
"""What gives a list of far ends its form: a label that holds it is escaped, as `kg_boundary.shown` escapes."""
_PLAIN: Final = re.compile(r"[^,;:…()\d\\]+")
"""A label that can stand in a list without its id."""
_CLEAR: Final = re.compile(r"(?!\d+\+?: )[^()\\]+")
"""A label that can stand in a column without its id: it neither counts anything nor looks like an id."""
_MOST_TEXT: Final = 80


class _Said:
    """What was named already, so that its id need not be said again.

    Args:
        names: The ids and labels.
        terms: Everything that will be named.
    """

    def __init__(self, names: Names, terms: Iterable[Term]) -> None:
        self._names = names
        self._namesakes = Counter(names.shown_label(term) for term in set(terms) if not isinstance(term, Literal))
        self._said: set[Node] = set()

    def far(self, term: Term) -> str:
        """Return a value, or an entity with its id, or by its label alone where both were said without a namesake."""
        if isinstance(term, Literal):
            return _FORM.sub(_escaped, self._names.plain(term) or self._names.literal(term, _MOST_TEXT))
        return _FORM.sub(_escaped, self._once(term, self._names.entity(term)))

    def relation(self, iri: Iri) -> str:
        """Return a relation in the same manner."""
        return self._once(iri, self._names.relation(iri))

    def near(self, node: Node) -> str:
        """Return the entity that a line is about in the same manner; in a column of its own more labels are clear."""
        return self._once(node, self._names.entity(node), _CLEAR)

    def _once(self, node: Node, whole: str, clear: re.Pattern[str] = _PLAIN) -> str:
        label = self._names.shown_label(node) if node in self._names.labels else None
        if node in self._said and label is not None and self._namesakes[label] == 1 and clear.fullmatch(label):
            return label
        self._said.add(node)
        return whole


def lines_of(groups: Sequence[Group], names: Names) -> Iterator[str]:
    """Yield a line for each group, in the real direction of its facts; ids stand where something is first named."""
    said = _Said(names, (term for group in groups for term in (group.near, group.relation, *group.far)))
    return (_line(group, said) for group in groups)


def _line(group: Group, said: _Said) -> str:
    # In the order of the columns, so that an id stands where something is first named.
    if group.inverse:
        return f"{_far_ends(group, said)} | {said.relation(group.relation)} | {said.near(group.near)}"
    return f"{said.near(group.near)} | {said.relation(group.relation)} | {_far_ends(group, said)}"


def _far_ends(group: Group, said: _Said) -> str:
    far = ", ".join(map(said.far, group.far))
    if group.count == 1 and group.whole:
        return far
    return f"{counted(group)}: {far}{', …' if group.count > len(group.far) or not group.whole else ''}"


def counted(group: Group) -> str:
    """Return how many far ends a group has, as in `200+` where more may be there."""
    return str(group.count) if group.whole else f"{group.count}+"


def also(groups: Sequence[Group], names: Names) -> Iterator[str]:
    """Yield a line for each entity that says which groups it has beside those written out, and how large they are."""
    for near in dict.fromkeys(group.near for group in groups):
        out, into = (
            ", ".join(
                f"{_short(group.relation, names)} {counted(group)}"
                for group in groups
                if group.near == near and group.inverse == inverse
            )
            for inverse in (False, True)
        )
        parts = [f"{direction}: {listed}" for direction, listed in (("out", out), ("in", into)) if listed]
        yield " | ".join((f"Also around {names.entity(near)}", *parts))


def _short(relation: Iri, names: Names) -> str:
    """Return a relation by its label alone where that can stand in a list."""
    label = names.labels.get(relation)
    return names.shown_label(relation) if label is None or _PLAIN.fullmatch(label) else names.relation_id(relation)


def _escaped(found: re.Match[str]) -> str:
    return f"{found[1]}\\u{ord(found[2]):04x} "
