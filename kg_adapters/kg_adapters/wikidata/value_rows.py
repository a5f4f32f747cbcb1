"""What the rows about truthy values say: texts as they are, dates as far as they are known, amounts with their unit."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.rows import Row
from kg_adapters.terms import Iri, Literal, Node
from kg_adapters.wikidata import values
from kg_adapters.wikidata.namespaces import ENTITY
from kg_adapters.wikidata.queries import MAX_ROWS

_NO_UNIT: Final = Iri(ENTITY + "Q199")


@dataclass
class _Stated:
    """What is said about one entity: values by relation, and better ones for dates and quantities."""

    plain: set[tuple[Iri, Literal]] = field(default_factory=set[tuple[Iri, Literal]])
    dates: set[tuple[Iri, Literal]] = field(default_factory=set[tuple[Iri, Literal]])
    amounts: set[tuple[Iri, str, Node]] = field(default_factory=set[tuple[Iri, str, Node]])


class StatedValues:
    """Takes in the rows that `ValueQueries` asks for.

    Args:
        vocabulary: Its languages are those in which units are named.

    Attributes:
        rows: How many rows were values as they are; dates and amounts come once more.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.rows = 0
        self._vocabulary = vocabulary
        self._stated: defaultdict[Node, _Stated] = defaultdict(_Stated)
        self._units: defaultdict[Node, set[Literal]] = defaultdict(set)

    def take(self, entity: Node, row: Row) -> None:
        """Take in one row about an entity."""
        about, value, stated = row.iri("p"), row.term("o"), self._stated[entity]
        if about is None or value is None:
            return
        precision, unit = row.number("precision"), row.node("unit")
        if not isinstance(value, Literal):
            self.rows += 1
            stated.plain.add((about, values.link(value)))
        elif precision is not None:
            date = values.date(value.value, precision)
            stated.dates |= {(about, date)} if date is not None else set()
        elif unit is not None:
            stated.amounts.add((about, value.value, unit))
            self._units[unit] |= {name for name in (row.literal("name"),) if name is not None}
        else:
            self.rows += 1
            stated.plain.add((about, values.plain(value)))

    @property
    def is_cut(self) -> bool:
        """Whether there may be more rows than were asked for."""
        return self.rows >= MAX_ROWS

    def said(self) -> Mapping[Node, set[tuple[Iri, Literal]]]:
        """Return the relations and values of each entity that has any."""
        units = {unit: self._unit(unit) for unit in self._units}
        return {entity: found for entity, stated in self._stated.items() if (found := _best(stated, units))}

    def _unit(self, unit: Node) -> str | None:
        if unit == _NO_UNIT:
            return None
        name = self._vocabulary.label({self._vocabulary.labels[0]: self._units[unit]})
        return unit.local_part if name is None else name.value


def _best(stated: _Stated, units: Mapping[Node, str | None]) -> set[tuple[Iri, Literal]]:
    better = {(about, values.quantity(amount, units[unit])) for about, amount, unit in stated.amounts} | stated.dates
    replaced = {about for about, _ in better}
    return {each for each in stated.plain if each[0] not in replaced} | better
