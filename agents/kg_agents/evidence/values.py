"""What the tools say about a graph, as values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from kg_boundary.drawing import Picture, notebook_html
from kg_boundary.drawing.picture import local_part

Triple: TypeAlias = tuple[str, str, str]
"""Head, relation and tail, by id; a tail may be a literal, in quotes.

Where a server has several graphs, each id carries its graph, as in `Q90 [films]`: the same id in two is two things.
"""
_IN_GRAPH: Final = re.compile(r"(.+) \[([a-z0-9][a-z0-9-]{0,15})\]", re.DOTALL)
_NAME: Final = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^\[\],]+)""")
_LATER: Final = 1e-5
"""How much less a fact counts than the one that is named before it; scores are told in thousandths."""


def in_graph(id: str, graph: str) -> str:
    """Return an id with its graph, or as it is where that has no name."""
    return f"{id} [{graph}]" if graph else id


def split_graph(id: str) -> tuple[str, str]:
    """Return an id without its graph, and the graph; "" where it carries none."""
    found = _IN_GRAPH.fullmatch(id)
    return (id, "") if found is None else (found[1], found[2])


def without_graph(triple: Triple) -> Triple:
    """Return a triple by ids that carry no graph."""
    head, relation, tail = triple
    return split_graph(head)[0], split_graph(relation)[0], split_graph(tail)[0]


def plain_value(end: str) -> str:
    """Return a literal without its quotes, datatype and language, and any other end of a fact as it is."""
    return end[1 : end.rindex('"')] if end.startswith('"') and end.rindex('"') > 0 else end


def quoted(value: str) -> str:
    """Return a value in quotes, as a literal is written."""
    return value if value.startswith('"') else f'"{value}"'


def valued(fact: Triple) -> Triple:
    """Return a fact that ends in a value with the value in quotes."""
    head, relation, value = fact
    return head, relation, quoted(value)


def names_in(expression: str) -> frozenset[str]:
    """Return what an expression of `Compose` may name: the texts between its brackets and commas, or in quotes."""
    return frozenset(each.strip().strip("\"'") for each in _NAME.findall(expression))


@dataclass(frozen=True, slots=True)
class IdLabels:
    """What ids are called."""

    nodes: Mapping[str, str] = field(default_factory=dict[str, str])
    relations: Mapping[str, str] = field(default_factory=dict[str, str])

    def merged(self, other: "IdLabels") -> "IdLabels":
        """Return the labels of both."""
        return IdLabels({**self.nodes, **other.nodes}, {**self.relations, **other.relations})

    def picture(self, facts: Sequence[Triple]) -> Picture:
        """Return facts as a picture; where ids carry graphs, relations show them."""
        ends = (end for head, _, tail in facts for end in (head, tail) if split_graph(end)[1])
        nodes = {**{end: local_part(split_graph(end)[0]) for end in ends}, **self.nodes}
        graphs = {relation: split_graph(relation)[1] for _, relation, _ in facts}
        relations = {each: in_graph(self.relations.get(each, split_graph(each)[0]), graphs[each]) for each in graphs}
        return Picture(tuple(facts), labels=nodes, relations={**self.relations, **relations})

    def node(self, id: str) -> str:
        """Return a node as `label (id)`, or as it is where it has no label."""
        return _called(id, self.nodes)

    def relation(self, id: str) -> str:
        """Return a relation as `label (id)`, or as it is where it has no label."""
        return _called(id, self.relations)

    def pair(self, triple: Triple, near: Sequence[str]) -> str:
        """Return a triple's relation and its end that is none of those that it was found from, in words."""
        head, relation, tail = triple
        far = head if tail in near else tail
        return f"{self.relations.get(relation, relation)} {self.nodes.get(far, plain_value(far))}"

    def triple(self, triple: Triple) -> str:
        """Return a triple on one line; the graph that it is of stands behind its relation alone."""
        head, relation, tail = triple
        ends = self.node(head), self.node(tail)
        if split_graph(relation)[1]:
            ends = split_graph(ends[0])[0], split_graph(ends[1])[0]
        return f"{ends[0]} | {self.relation(relation)} | {ends[1]}"


def _called(id: str, labels: Mapping[str, str]) -> str:
    if id not in labels:
        return id
    bare, graph = split_graph(id)
    return in_graph(f"{labels[id]} ({bare})", graph)


@dataclass(frozen=True, slots=True)
class ComputedResult:
    """What the graph computed.

    Args:
        expression: What was computed, as it was written.
        result: A node by id, a number or a value.
        facts: The triples that were read for it.
        by: The relation by which the result was ranked, by id; empty where it was not.
    """

    expression: str
    result: str
    facts: tuple[Triple, ...] = ()
    by: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """What one result, or one line of a prompt, shows of the graph.

    Args:
        facts: Triples in their true direction, and values.
        computed: What the graph computed.
        counts: How many facts each relation has, as results tell beside what was asked for.
        listed: What it lists: nodes by id, or values.
        labels: The labels of ids.
        denied: Whether the graph denies what was asked for.
        whole: Whether nothing is left out.
        asked: The call in short; empty where it was refused, so that nothing follows from it.
        named: The names in the call, with the ids that they were read as.
        page: The cursor of the call.
        next_page: The cursor of the page after it.
        total: How much there is, shown or not; 0 where that is unknown.
        text: The text that the model reads.
        ahead: Whether it was shown before the model asked for anything: what it asked for is better evidence.
        looks_up: Whether it is about something that the graph has, so that what it lacks is missing there.
        names_nothing: Whether it is a search for what the graph does not have.
    """

    facts: tuple[Triple, ...] = ()
    computed: tuple[ComputedResult, ...] = ()
    counts: tuple[ComputedResult, ...] = ()
    listed: tuple[str, ...] = ()
    labels: IdLabels = field(default_factory=IdLabels)
    denied: bool = False
    whole: bool = True
    asked: str = ""
    named: Mapping[str, str] = field(default_factory=dict[str, str])
    page: str = ""
    next_page: str = ""
    total: int = 0
    text: str = ""
    ahead: bool = False
    looks_up: bool = False
    names_nothing: bool = False

    def joined(self, other: "Shown") -> "Shown":
        """Return what two results show, whose texts stand one below the other."""
        return replace(
            self,
            facts=tuple(dict.fromkeys((*self.facts, *other.facts))),
            computed=tuple(dict.fromkeys((*self.computed, *other.computed))),
            counts=tuple(dict.fromkeys((*self.counts, *other.counts))),
            listed=tuple(dict.fromkeys((*self.listed, *other.listed))),
            labels=self.labels.merged(other.labels),
            whole=self.whole and other.whole,
            named={**self.named, **other.named},
            text=f"{self.text}\n{other.text}",
        )


@dataclass(frozen=True, slots=True)
class FactGroup:
    """The facts of one entity over one relation in one direction.

    Args:
        entity: The entity, by id.
        relation: The relation, by id.
        incoming: Whether the far ends are the heads.
        far: The far ends that were named, best first.
        score: How like the question the group is.
        count: How many far ends there are.
    """

    entity: str
    relation: str
    incoming: bool
    far: tuple[str, ...]
    score: float
    count: int = 0

    @property
    def triples(self) -> tuple[Triple, ...]:
        """The facts that were named."""
        if self.incoming:
            return tuple((far, self.relation, self.entity) for far in self.far)
        return tuple((self.entity, self.relation, far) for far in self.far)


@dataclass(frozen=True, slots=True)
class ObservedFacts:
    """An observation subgraph: groups of facts, best first, and all that its text shows."""

    groups: tuple[FactGroup, ...] = ()
    shown: Shown = field(default_factory=Shown)

    @property
    def labels(self) -> IdLabels:
        """What ids are called."""
        return self.shown.labels

    @property
    def triples(self) -> tuple[Triple, ...]:
        """The facts that were named, each once, those of the best group first."""
        return tuple(dict.fromkeys(triple for group in self.groups for triple in group.triples))

    def _repr_html_(self) -> str:
        best = self.groups[0].triples if self.groups else ()
        seen = tuple(dict.fromkeys(group.entity for group in self.groups))
        return notebook_html(replace(self.labels.picture(self.triples), roots=seen, evidence=frozenset(best)))

    def joined(self, other: "ObservedFacts") -> "ObservedFacts":
        """Return what two observations show, the groups of both by their scores."""
        groups = sorted((*self.groups, *other.groups), key=lambda group: -group.score)
        return ObservedFacts(tuple(groups), self.shown.joined(other.shown))

    def scores(self, triples: Sequence[Triple]) -> dict[Triple, float]:
        """Return how like the question triples are, of those whose group was observed, whether or not they were named.

        Within a group those that were named come first, in their order.
        """
        places = {triple: place for group in self.groups for place, triple in enumerate(group.triples)}
        known = {(group.entity, group.relation, group.incoming): group for group in self.groups}
        scores: dict[Triple, float] = {}
        for triple in triples:
            head, relation, tail = triple
            groups = [known.get((head, relation, False)), known.get((tail, relation, True))]
            of = [group.score - _LATER * places.get(triple, len(group.far)) for group in groups if group is not None]
            if of:
                scores[triple] = max(of)
        return scores


@dataclass(frozen=True, slots=True)
class Found:
    """What a call found: triples, facts that end in a value, and all that its text shows.

    `held` is what nodes without a name hold, such as the role and the years of a career entry; `totals` says how many
    facts there are of a relation, by whether it leads to what was asked about.
    """

    triples: tuple[Triple, ...]
    shown: Shown
    values: tuple[Triple, ...] = ()
    held: tuple[Triple, ...] = ()
    totals: Mapping[tuple[str, bool], int] = field(default_factory=dict[tuple[str, bool], int])

    @property
    def labels(self) -> IdLabels:
        """What ids are called."""
        return self.shown.labels

    @property
    def facts(self) -> tuple[Triple, ...]:
        """All that may be kept."""
        return *self.triples, *self.values

    def _repr_html_(self) -> str:
        values = map(valued, self.values)
        return notebook_html(self.labels.picture((*self.triples, *values, *self.held)))


@dataclass(frozen=True, slots=True)
class EntityMatch:
    """An entity that a text may name: `score` from 0 to 1, and how it matched; `types` and `fact` help to tell it.

    `also` are the ids under which other graphs have it.
    """

    id: str
    label: str
    description: str
    score: float
    matched: str
    types: str = ""
    fact: str = ""
    also: tuple[str, ...] = ()

    @property
    def described(self) -> str:
        """The entity in a line: its label, its id, and what tells it from others."""
        more = ", ".join(each for each in (self.description or self.types, self.fact) if each)
        return f"{self.named}{f': {more}' if more else ''}"

    @property
    def is_labelled(self) -> bool:
        """Whether it has a label."""
        return bool(self.label) and self.label != split_graph(self.id)[0]

    @property
    def named(self) -> str:
        """Its label and its id."""
        return IdLabels({self.id: self.label}).node(self.id)


@dataclass(frozen=True, slots=True)
class NameMatch:
    """What a text names: `match` is exact, close, loose or none, and only of the first two is anything meant.

    Args:
        text: The text.
        match: The verdict of the server.
        candidates: Who bears the name, or what is near it.
        shown: The facts that tell them apart.
    """

    text: str
    match: str
    candidates: tuple[EntityMatch, ...]
    shown: Shown = field(default_factory=Shown)

    @property
    def meant(self) -> tuple[EntityMatch, ...]:
        """Those whose name the text is, or misspells."""
        return self.candidates if self.match in {"exact", "close"} else ()

    @property
    def is_one(self) -> bool:
        """Whether it means one thing, which several graphs may have."""
        return are_one(self.meant)


def are_one(candidates: Sequence[EntityMatch]) -> bool:
    """Return whether candidates are one thing, which several graphs may have; nothing is none."""
    known = {each for candidate in candidates[:1] for each in (candidate.id, *candidate.also)}
    return bool(candidates) and all(each.id in known or known & {*each.also} for each in candidates)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a memory holds: its handle, its facts with the number of their path, and the text.

    The cursor leads to what follows; it is empty where nothing does. Unverified are those that the graph does not hold.
    """

    memory: str
    facts: tuple[tuple[int, Triple], ...]
    labels: IdLabels
    text: str
    cursor: str = ""
    unverified: frozenset[Triple] = frozenset()

    @property
    def picture(self) -> Picture:
        """Its facts as a picture, path by path."""
        facts = tuple(fact for _, fact in sorted(self.facts, key=lambda each: each[0]))
        return replace(self.labels.picture(facts), doubtful=self.unverified)

    def _repr_html_(self) -> str:
        return notebook_html(self.picture)

    def joined(self, following: "Remembered") -> "Remembered":
        """Return this page and the one that follows it as one."""
        body = following.text.partition("\n")[2]
        return Remembered(
            self.memory,
            (*self.facts, *following.facts),
            self.labels.merged(following.labels),
            f"{self.text}\n{body}",
            following.cursor,
            self.unverified | following.unverified,
        )
