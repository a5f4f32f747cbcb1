"""The structured answers of tools, checked, and the rows that they hold."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from kg_agents.evidence.values import (
    EntityMatch,
    FactGroup,
    IdLabels,
    Remembered,
    Triple,
    in_graph,
    split_graph,
    valued,
)
from kg_agents.tools.client import ToolCall, UnreadableReply
from kg_agents.tools.several import Owners

COUNTED, GROUP = 4, 6
"""How many columns a group has that is only counted, and how many before the far ends."""
ROW: Final = 3
"""How many columns a triple has; what follows it in a row says more about it."""
VERDICT: Final = 4
"""Where the row of a fact in a memory says whether it is verified."""
ALSO: Final = "also in "
"""What the cell begins with that says which other graphs have a candidate."""
NUMBER: Final = 7
"""Where the row of a candidate has the number of its text."""

Rows: TypeAlias = list[list[str]]


class ToolResult(BaseModel):
    """What the structured answers of all tools hold; other servers may add to it.

    Rows of `candidates` hold id, label, description, types, score, how it matched, telling fact, and number of the
    text; those of `groups` entity, relation, direction, count, score, hop, and far ends; those of `results` part, node,
    relation, result, and kind; those of `card`, and of `cards` by entity, direction, relation, count, and tails; those
    of `facts` number of the path, head, relation, tail, and whether it is verified; those of `details` a fact's head,
    relation and tail, kind, number, property, and value; those of `tree` a class and those below it, and those of
    `properties` a property, a class that has it, and where it leads.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    status: str = "ok"
    knowledge: str = ""
    read: dict[str, str] = {}
    labels: dict[str, str] = {}
    relations: dict[str, str | int] = {}
    total: int | None = None
    exact: bool = True
    cursor: str = ""
    triples: Rows = []
    values: Rows = []
    held: Rows = []
    details: Rows = []
    outgoing: dict[str, int] = {}
    incoming: dict[str, int] = {}
    paths: list[Rows] = []
    groups: Rows = []
    match: str = "none"
    matches: dict[str, str] = {}
    candidates: Rows = []
    card: Rows = []
    cards: dict[str, Rows] = {}
    features: Rows | dict[str, int] = []
    classes: dict[str, int] = {}
    tree: Rows = []
    properties: Rows = []
    neighbors: int | None = None
    parts: Rows = []
    results: Rows = []
    evidence: Rows = []
    rows: Rows = []
    truth: bool | None = None
    memory: str = ""
    facts: Rows = []
    cosines: list[float] = []

    @field_validator("triples", mode="before")
    @classmethod
    def _rows_alone(cls, triples: object) -> object:
        """Return no rows where Schema has the number of triples in their place."""
        return [] if isinstance(triples, int) else triples

    @classmethod
    def of(cls, call: ToolCall, needed: str = "", graphs: Sequence[str] = ()) -> Self:
        """Return the structured answer of a call; its ids carry their graphs where the server serves several.

        Args:
            call: The call.
            needed: What it has to hold.
            graphs: The graphs of the server; none where it serves one.

        Raises:
            UnreadableAnswer: It has another form.
        """
        try:
            result = cls.model_validate({name: each for name, each in call.data.items() if each is not None})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise UnreadableReply.of(call.tool, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        if needed and needed not in result.model_fields_set:
            raise UnreadableReply.of(call.tool, f"{needed}: Field required")
        return result.located(Owners.of(call.tool, call.arguments, graphs), call) if graphs else result

    def located(self, owners: Owners, call: ToolCall) -> Self:
        """Return the answer with ids that carry their graphs."""
        self._learn(owners, str(call.arguments.get("entity", "")))
        node, relation = owners.node, owners.relation
        read = {name: relation(key) if key in self.relations else node(key) for name, key in self.read.items()}
        ids = {
            "read": {**owners.subject, **read},
            "labels": {node(key): label for key, label in self.labels.items()},
            "relations": {own: each for key, each in self.relations.items() for own in owners.relations(key)},
            "outgoing": {relation(key): count for key, count in self.outgoing.items()},
            "incoming": {relation(key): count for key, count in self.incoming.items()},
            "classes": {node(key): count for key, count in self.classes.items()},
        }
        return self.model_copy(update={**ids, **self._facts(owners), **self._found(owners)})

    def _facts(self, owners: Owners) -> dict[str, Rows | list[Rows]]:
        """Return the rows that begin with facts, with ids that carry their graphs."""

        def fact(row: Sequence[str]) -> list[str]:
            if len(row) < ROW:
                return [*row]
            return [owners.node(row[0]), owners.relation(row[1], row), owners.far(row[2]), *row[ROW:]]

        return {
            "triples": [*map(fact, self.triples)],
            "values": [*map(fact, self.values)],
            "held": [*map(fact, self.held)],
            "details": [*map(fact, self.details)],
            "evidence": [*map(fact, self.evidence)],
            "facts": [[*row[:1], *fact(row[1:])] for row in self.facts],
            "paths": [[*map(fact, path)] for path in self.paths],
        }

    def _found(self, owners: Owners) -> dict[str, Rows | dict[str, Rows] | dict[str, int]]:
        """Return all other rows with ids that carry their graphs."""
        node, relation, far = owners.node, owners.relation, owners.far

        def over(row: Sequence[str], graph: Sequence[str] = ()) -> list[str]:
            ends = (owners.of_row(each, graph) if graph and each in self.labels else far(each) for each in row[3:])
            return [*row[:1], *(relation(each, graph) for each in row[1:2]), *row[2:3], *ends]

        features = self.features
        return {
            "groups": [
                [node(row[0]), relation(row[1]), *row[2:GROUP], *map(far, row[GROUP:])]
                for row in self.groups
                if len(row) >= COUNTED
            ],
            "candidates": [[owners.of_row(row[0], row), *row[1:]] for row in self.candidates if row],
            "card": [*map(over, self.card)],
            "cards": {
                owners.of_card(key): [over(row, split_graph(key)[1:]) for row in rows]
                for key, rows in self.cards.items()
            },
            "features": {relation(key): count for key, count in features.items()}
            if isinstance(features, dict)
            else [[relation(row[0]), *row[1:]] for row in features if row],
            "tree": [[*map(far, row)] for row in self.tree],
            "properties": [[*map(relation, row[:1]), *map(far, row[1:])] for row in self.properties],
            "results": [
                [row[0], node(row[1]) if row[1] else "", relation(row[2], row), far(row[3]), *row[4:]]
                for row in self.results
                if len(row) > ROW
            ],
            "rows": [[*map(far, row)] for row in self.rows],
        }

    def _learn(self, owners: Owners, subject: str) -> None:
        """Take note of all nodes of the answer, with the rows that may name their graphs first."""
        for node, row in chain(self._in_facts(), self._in_results(), self._in_cards()):
            owners.note(node, row)
        memory = (row[1:] for row in self.facts)
        for row in (*self.triples, *self.values, *self.evidence, *chain.from_iterable(self.paths), *memory):
            owners.walk(row[1] if len(row) >= ROW else "", row)
        for row in self.results:
            owners.walk(row[2] if len(row) > ROW else "", row)
        owners.ask_about(subject, self.read)
        for key in (*self.labels, *self.classes, *(row[0] for row in self.groups if row)):
            owners.note(key)

    def _in_facts(self) -> Iterator[tuple[str, Sequence[str]]]:
        for row in (*self.triples, *chain.from_iterable(self.paths)):
            if len(row) >= ROW:
                yield from ((row[0], row), (row[2], row))
        for row in (*self.values, *self.held, *self.details, *self.evidence, *(row[1:] for row in self.facts)):
            if len(row) >= ROW:
                yield row[0], row

    def _in_results(self) -> Iterator[tuple[str, Sequence[str]]]:
        for row in self.results:
            if len(row) > ROW:
                yield from ((end, row) for end in (row[1], row[3] if row[4:5] == ["node"] else ""))
        yield from ((row[0], row) for row in self.candidates if row)

    def _in_cards(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield the nodes of cards, whose keys may carry their graphs."""
        for key, rows in self.cards.items():
            card, *graph = split_graph(key)
            for end in (card, *chain.from_iterable(row[ROW:] for row in rows)):
                if end == card or end in self.labels:
                    yield end, graph

    @property
    def named(self) -> IdLabels:
        """The labels of ids."""
        candidates = {row[0]: row[1] for row in self.candidates if len(row) > 1}
        relations = {each: label for each, label in self.relations.items() if isinstance(label, str)}
        return IdLabels(self.labels | candidates, relations)

    @property
    def seen(self) -> tuple[FactGroup, ...]:
        """The groups of an observation, and the relations that a card counts."""
        return tuple(map(group_of, self.groups))

    @property
    def held_facts(self) -> tuple[Triple, ...]:
        """What nodes without a name hold; a value is in quotes already, or is no known id."""
        facts = map(triple_of, self.held)
        return tuple(fact if {fact[0], fact[2]} & self.labels.keys() else valued(fact) for fact in facts)


def remembered_of(call: ToolCall, memory: str, graphs: Sequence[str] = ()) -> Remembered:
    """Return what a memory tool says of a memory."""
    found = ToolResult.of(call, "facts", graphs)
    facts = tuple((int(row[0]), triple_of(row[1:])) for row in found.facts if len(row) > ROW and row[0].isdecimal())
    unverified = frozenset(triple_of(row[1:]) for row in found.facts if row[VERDICT : VERDICT + 1] == ["unverified"])
    return Remembered(found.memory or memory, facts, found.named, call.text, found.cursor, unverified)


def candidate_of(row: Sequence[str]) -> EntityMatch:
    """Return the entity that a row describes, which has as many columns as `ToolResult` says but the last."""
    entity, label, description, types, score, matched, fact = row[:NUMBER]
    also = next((each for each in row[NUMBER + 1 :] if each.startswith(ALSO)), "")
    return EntityMatch(entity, label, description, _score(score), matched, types, fact, tuple(ids_elsewhere(also)))


def ids_elsewhere(text: str) -> Iterator[str]:
    """Yield the ids in `also in wikidata as Q937, films as ex:a and ex:b`, each with its graph."""
    for place in text.removeprefix(ALSO).split(", ") if text.startswith(ALSO) else ():
        graph, _, ids = place.partition(" as ")
        yield from (in_graph(each, graph) for each in ids.split(" and "))


def group_of(row: Sequence[str]) -> FactGroup:
    """Return the group that a row describes.

    Raises:
        UnreadableAnswer: The row is too short.
    """
    if len(row) < COUNTED:
        raise UnreadableReply(f"A group of the answer has {len(row)} parts instead of at least {COUNTED}.")
    entity, relation, direction, count, score, _, *far = (*row, "", "")[: max(GROUP, len(row))]
    return FactGroup(entity, relation, direction == "in", tuple(far), _score(score), int(_score(count)))


def triple_of(row: Sequence[str]) -> Triple:
    """Return the triple that a row begins with.

    Raises:
        UnreadableAnswer: The row is too short.
    """
    if len(row) < ROW:
        raise UnreadableReply(f"A triple of the answer has {len(row)} parts instead of three.")
    return row[0], row[1], row[2]


def _score(text: str) -> float:
    """Return a score that is written as text; 0 where it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0
