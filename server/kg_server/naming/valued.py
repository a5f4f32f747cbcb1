"""Texts that are values: which entities have them, and which condition finds these."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from kg_adapters.algebra import Instances
from kg_adapters.errors import BackendError
from kg_adapters.models import Candidate, Count, ValueUse
from kg_adapters.profile import GraphProfile
from kg_adapters.protocol import KGAdapter, SupportsValueSearch, known_profile
from kg_adapters.set_requests import Listed, SetRequest
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import Attribute, Iri, Node, node_key
from kg_adapters.values import value_kind
from kg_boundary.shown import counted, in_quotes, listed, shown_within
from kg_server.names import MAX_LABEL, Names, names_of, plural, shown_label
from kg_server.naming.having import instances_among

MOST_USES: Final = 3
"""How many relations are named that have a value."""
MOST_NAMED: Final = 10
"""How many of those that have a value are named."""
_MOST_BEARERS: Final = 1_000
_MOST_REMOTE: Final = 100
_COUNTED_S: Final = 2.0
_IDENTIFIER_FROM: Final = 4
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_IDENTIFIES: Final = frozenset(
    "accession barcode code doi ean gtin iban id identifier inventory isbn issn no notation number orcid plate "  # noqa: SIM905 - a list of words reads best as words
    "registration serial sku uuid vin".split()
)
"""Words in the names of relations whose values belong to one thing each."""
_BARE: Final = frozenset({"number", "date", "boolean"})
_MARKS: Final = frozenset(",[]\"'")


async def uses_of(graph: KGAdapter, texts: Sequence[str], type: Node | None) -> Mapping[str, Sequence[ValueUse]]:
    """Return which entities have texts as values, by relation; among the instances of a type where one is given."""
    if not texts or not isinstance(graph, SupportsValueSearch):
        return {}
    found = await graph.uses_of_values(texts, limit=_MOST_REMOTE if graph.remote else _MOST_BEARERS)
    if type is None:
        return found
    nodes = list(dict.fromkeys(node for uses in found.values() for use in uses for node in use.bearers))
    among = frozenset(await instances_among(graph, nodes, type)) if nodes else frozenset[Node]()
    kept = {text: [_among(use, among) for use in uses] for text, uses in found.items()}
    return {text: some for text, uses in kept.items() if (some := [use for use in uses if use.bearers])}


def _among(use: ValueUse, nodes: frozenset[Node]) -> ValueUse:
    bearers = tuple(node for node in use.bearers if node in nodes)
    return ValueUse(use.relation, use.value, bearers, Count(len(bearers), exact=use.count.at_most(len(use.bearers))))


def bearers_of_value(text: str, uses: Sequence[ValueUse]) -> tuple[Candidate, ...]:
    """Return those who have a text as a value, each once."""
    nodes = dict.fromkeys(node for use in uses for node in use.bearers)
    return tuple(Candidate(node, 1.0, "value", text) for node in nodes)


def identifier_among(text: str, uses: Sequence[ValueUse]) -> Iri | None:
    """Return the relation over which a text identifies the only one who has it; None where it does not."""
    if len(text) < _IDENTIFIER_FROM or not any(map(str.isdigit, text)):
        return None
    if not all(use.count.at_most(1) for use in uses) or len(bearers_of_value(text, uses)) != 1:
        return None
    return next((use.relation for use in uses if _identifies(use.relation)), None)


def _identifies(relation: Iri) -> bool:
    return not _IDENTIFIES.isdisjoint(map(str.lower, _WORD.findall(relation.local_part)))


@dataclass(frozen=True, slots=True)
class ValueReading:
    """How a text is a value over one relation.

    Args:
        use: Who has it.
        owner: The class of all of them who are known; None where they have none in common.
        instances: How many instances the class has; None where that is not known.
    """

    use: ValueUse
    owner: Node | None
    instances: int | None

    def condition(self, names: Names) -> str:
        """Return the expression of Compose that finds who has it; empty where they have no class in common."""
        if self.owner is None:
            return ""
        text = self.use.value.value
        value = text if value_kind(self.use.value) in _BARE else _quoted(text)
        return f"Where[Type[{_name(self.owner, names)}], {_written(names.called(self.use.relation, ''))} = {value}]"

    def clause(self, names: Names) -> str:
        """Return `Customer in 3 of 10 orders: 1001, 1003, 1008`."""
        use = self.use
        shown = listed([_named(node, names) for node in use.bearers], ", ", MOST_NAMED)
        return f"{_spoken(use.relation, names)} in {self._counted(names)}: {shown}"

    def _counted(self, names: Names) -> str:
        count = self.use.count
        if self.owner is None or not count.at_most(len(self.use.bearers)):
            return count.of("entity", "entities")
        owner = _spoken(self.owner, names)
        if self.instances is None or self.instances < count.value:
            return count.of(owner, plural(owner))
        return f"{count} of {counted(self.instances, owner, plural(owner))}"

    @property
    def facts(self) -> tuple[Attribute, ...]:
        """What states it."""
        return tuple(Attribute(node, self.use.relation, self.use.value) for node in self.use.bearers)


@dataclass(frozen=True, slots=True)
class ValueText:
    """A text as a value, over the relations that most entities have it by.

    Args:
        text: The text.
        readings: How it is one.
        names: What is shown.
        others: How many further relations have it.
    """

    text: str
    readings: Sequence[ValueReading]
    names: Names
    others: int = 0

    def __str__(self) -> str:
        """Return which relations have it in which entities, and which conditions find these."""
        more = f"; and of {self.others} more" if self.others else ""
        clauses = "; of ".join(each.clause(self.names) for each in self.readings)
        conditions = list(dict.fromkeys(filter(None, (each.condition(self.names) for each in self.readings))))
        many = "it" if len(conditions) == 1 and self.readings[0].use.count.at_most(1) else "them"
        found = f" {' or '.join(conditions)} finds {many}." if conditions else ""
        return f"value of {clauses}{more}.{found}"

    def further(self, relation: str | None) -> str:
        """Return how to ask for what those who have it have over a relation; nothing without one."""
        condition = next(filter(None, (each.condition(self.names) for each in self.readings)), "")
        if relation is None or not condition:
            return ""
        over = shown_within(relation, MAX_LABEL)
        return (
            f" For what they have over it, ask Compose: Neighbor[{condition}, {over}] or Feature[{condition}, {over}]."
        )

    @property
    def ids(self) -> Sequence[str]:
        """The ids of those who have it, as many as are named."""
        nodes = dict.fromkeys(node for each in self.readings for node in each.use.bearers[:MOST_NAMED])
        return list(map(self.names.entity_id, nodes))

    @property
    def rows(self) -> list[list[str]]:
        """The readings for programs: text, relation, how many have it, class, of how many, and the condition."""
        return [
            [
                self.text,
                self.names.relation_id(each.use.relation),
                str(each.use.count.value),
                "" if each.owner is None else self.names.entity_id(each.owner),
                "" if each.instances is None else str(each.instances),
                each.condition(self.names),
            ]
            for each in self.readings
        ]


async def read_as_value(graph: KGAdapter, text: str, uses: Sequence[ValueUse]) -> ValueText:
    """Return how a text is a value."""
    profile = await known_profile(graph)
    readings = [await _reading(graph, use, profile) for use in uses[:MOST_USES]]
    shown = [node for each in readings for node in each.use.bearers[:MOST_NAMED]]
    owners = [each.owner for each in readings if each.owner is not None]
    names = await names_of(graph, (*shown, *owners, *(each.use.relation for each in readings)))
    return ValueText(text, readings, names, len(uses) - len(readings))


async def _reading(graph: KGAdapter, use: ValueUse, profile: GraphProfile) -> ValueReading:
    described = await graph.describe(use.bearers)
    common: frozenset[Node] = frozenset()
    for place, bearer in enumerate(described.values()):
        kinds = _with_broader(bearer.types, profile)
        common = kinds & common if place else kinds
    known = {kind: each for kind in common if (each := profile.profile_of(kind)) is not None}

    def rank(kind: Node) -> tuple[int, int, tuple[int, str] | str]:
        """Return how well a class tells who has the relation: by how many of its instances have it, and few others."""
        owner = known.get(kind)
        having = None if owner is None else owner.property(use.relation)
        return -(0 if having is None else having.instances), 0 if owner is None else owner.instances, node_key(kind)

    owner = min(common, key=rank, default=None)
    if owner is None or (owner in known and known[owner].at_least):
        return ValueReading(use, owner, None)
    return ValueReading(use, owner, known[owner].instances if owner in known else await _instances(graph, owner))


async def _instances(graph: KGAdapter, owner: Node) -> int | None:
    """Return how many instances a class has; None where it takes too long to count them."""
    request = SetRequest(Listed(Instances(owner)), limit=0, witnesses=0, timeout_s=_COUNTED_S)
    try:
        count = (await compute_sets(graph, request)).count
    except BackendError:
        return None
    return count.value if count.exact else None


def _with_broader(types: Sequence[Node], profile: GraphProfile) -> frozenset[Node]:
    """Return classes with their superclasses."""
    found = dict.fromkeys(types)
    left = list(types)
    while left:
        known = profile.profile_of(left.pop())
        new = [kind for kind in (() if known is None else known.broader) if kind not in found]
        found.update(dict.fromkeys(new))
        left += new
    return frozenset(found)


def _spoken(term: Node, names: Names) -> str:
    """Return what a class or relation is called in a sentence: by its label, or else the local part of its IRI."""
    return shown_within(names.labels.get(term) or unquote(term.local_part), MAX_LABEL)


def _named(node: Node, names: Names) -> str:
    """Return what an entity is called in a list; of one that is called like its id, nothing but that."""
    label = names.labels.get(node, "")
    return shown_label(label) if label and label == unquote(node.local_part) else names.alone(node, ",;:")


def _name(owner: Node, names: Names) -> str:
    return _written(names.alone(owner, ""))


def _written(name: str) -> str:
    """Return a name as an expression holds it."""
    return _quoted(name) if _MARKS.intersection(name) else name


def _quoted(text: str) -> str:
    escaped = shown_within(text, 2 * MAX_LABEL).replace('"', r"\"")
    return f'"{escaped}"'


def said_of_value(found: ValueText) -> str:
    """Return the sentence that a text is a value, and which conditions find it."""
    return f"{in_quotes(found.text, MAX_LABEL)}: {found}"
