"""What calls give: facts about nodes, how many there are in all, and what is missing."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, TypeAlias

from kg_adapters.errors import KGError
from kg_adapters.models import Count
from kg_adapters.terms import XSD, BlankNode, Iri, Literal, Node
from kg_server.compose.syntax import Call, Kind
from kg_server.lines import Over

Item: TypeAlias = Node | Literal | Count

_NUMBERS: Final = frozenset(
    XSD + name
    for name in (
        *("integer", "decimal", "double", "float", "long", "int", "short", "byte"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One result, and the node that it is about; None where it is about no single node."""

    subject: Node | None
    item: Item


@dataclass(frozen=True, slots=True)
class Edge:
    """A fact together with what was walked to it."""

    fact: Fact
    over: Over


@dataclass(frozen=True, slots=True)
class Failure:
    """A node for which a step failed, and why."""

    node: Node
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call gives.

    Args:
        kind: Of what sort the facts' items are.
        facts: The results, in the order of the nodes that they are about.
        total: How many different items there are (how many facts, for numbers), here or not.
        over: What was walked or read.
        sources: The nodes that it was walked or read from.
        all_sources: Whether these are all that there are.
        without: The sources that have no results.
        failures: The nodes that are not answered for.
        looked_up: Edges that were read one by one to tell whether a set holds a node.
    """

    kind: Kind
    facts: tuple[Fact, ...]
    total: Count
    over: Over | None = None
    sources: tuple[Node, ...] = ()
    all_sources: bool = True
    without: tuple[Node, ...] = ()
    failures: tuple[Failure, ...] = ()
    looked_up: tuple[Edge, ...] = ()

    @property
    def items(self) -> tuple[Item, ...]:
        """The different items, in the order of the facts; numbers are never taken together."""
        if self.kind == "numbers":
            return tuple(fact.item for fact in self.facts)
        return distinct(fact.item for fact in self.facts)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The different nodes among the items."""
        return tuple(item for item in self.items if isinstance(item, Iri | BlankNode))

    @property
    def complete(self) -> bool:
        """Whether every item that there is is here."""
        return self.total.exact and self.total.value == len(self.items)


Note: TypeAlias = tuple[str | Node | Over, ...]
"""A remark: texts, and terms that are shown with their labels."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call that was worked out, what should be known about how, and whether something else may have been meant."""

    call: Call
    outcome: Outcome
    notes: tuple[Note, ...] = ()
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One of the calls that stand side by side: its outcome, or why it has none, and its steps, inner ones first."""

    call: Call
    outcome: Outcome | None
    steps: tuple[Step, ...]
    failure: KGError | None = None


def found_items(
    items: Iterable[Item],
    kind: Kind,
    *,
    exact: bool,
    failures: tuple[Failure, ...] = (),
    looked_up: Iterable[Edge] = (),
) -> Outcome:
    """Return the outcome that consists of items that are about no single node."""
    facts = tuple(Fact(None, item) for item in items)
    total = Count(len(facts), exact=exact)
    return Outcome(kind, facts, total, failures=failures, looked_up=tuple(looked_up))


def distinct(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the different items; of equal ones the first."""
    first: dict[object, Item] = {}
    for item in items:
        first.setdefault(identity(item), item)
    return tuple(first.values())


def identity(item: Item) -> object:
    """Return what makes an item the same as another.

    Nodes are themselves. Values are their text, whatever their language or datatype; numbers their number, so that
    `1` and `1.0` are the same.
    """
    if not isinstance(item, Literal):
        return item
    if item.datatype.value in _NUMBERS:
        try:
            number = Decimal(item.value)
        except InvalidOperation:
            return item.value
        return number if number.is_finite() else item.value
    return item.value
