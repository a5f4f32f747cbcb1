"""What Schema says of a whole graph: a line for every class, in which each relation and feature is told once."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Self

from kg_adapters.labels import Vocabulary
from kg_adapters.local.names.folding import fold
from kg_adapters.models import Count
from kg_adapters.profile import ClassProfile, GraphProfile, PropertyProfile, ValueRange, compared_by
from kg_adapters.terms import Iri, Node
from kg_adapters.value_order import order_of, unit_of
from kg_boundary.shown import set_apart
from kg_server.names import Names, shown_label
from kg_server.schema_profile import (
    ABOUT_ITSELF,
    MARKS,
    MOST_IN_A_LINE,
    SHOWN_TARGETS,
    WHOLE,
    end_of,
    facts_of,
    label_of,
    telling_classes,
    wider_classes,
)

MAIN_TARGET: Final = 0.8
"""From which part of the edges on the largest class of their far ends is named alone."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A graph by its classes: each relation and feature is told once.

    Args:
        profile: What is known of the graph.
        names: The names of all that is told.
        most: How many facts a line tells; where these are but the first, each class has all of its own in its line.
        own: The facts of every class that is told that no other one has.
        shared: The facts that instances of several classes have, with these.
        with_others: The same facts by class.
        outside: The facts that only entities of no class have.
        repeated: The labels, folded, that several classes or several relations bear, which need their ids.
    """

    profile: GraphProfile
    names: Names
    most: int
    own: Mapping[Node | None, Sequence[PropertyProfile]]
    shared: Mapping[Iri, Sequence[tuple[ClassProfile, PropertyProfile]]]
    with_others: Mapping[Node | None, Sequence[PropertyProfile]]
    outside: Sequence[PropertyProfile]
    repeated: frozenset[str]

    @classmethod
    def of(
        cls, profile: GraphProfile, classes: Sequence[ClassProfile], vocabulary: Vocabulary, names: Names, most: int
    ) -> Self:
        """Return the definition that tells of some classes."""
        found: defaultdict[tuple[Iri, Node | None], list[tuple[ClassProfile, PropertyProfile]]] = defaultdict(list)
        for known in classes:
            for each in own_facts(known, profile, vocabulary):
                found[each.relation, None if most > MOST_IN_A_LINE else known.iri].append((known, each))
        own: defaultdict[Node | None, list[PropertyProfile]] = defaultdict(list)
        for ((known, each),) in (having for having in found.values() if len(having) == 1):
            own[known.iri].append(each)
        shared = {relation: having for (relation, _), having in found.items() if len(having) > 1}
        with_others: defaultdict[Node | None, list[PropertyProfile]] = defaultdict(list)
        for known, each in chain.from_iterable(shared.values()):
            with_others[known.iri].append(each)
        outside = outside_facts(profile, vocabulary)
        owners = dict.fromkeys(each.iri for each in classes if each.iri is not None)
        relations = dict.fromkeys((*(relation for relation, _ in found), *(each.relation for each in outside)))
        repeated = _repeated(names, owners) | _repeated(names, relations)
        return cls(profile, names, most, own, shared, with_others, outside, repeated)

    def legend(self) -> str:
        """Return how the lines are read."""
        return (
            "Lines: class | size: fact ⇄inverse, share if not all →class or range. "
            "Names serve as ids; Schema(about=class) tells ids."
        )

    def facts_of(self, known: ClassProfile) -> list[PropertyProfile]:
        """Return what the lines tell of a class."""
        return [*self.own.get(known.iri, ())[: self.most], *self.with_others.get(known.iri, ())]

    def lines(self, classes: Sequence[ClassProfile]) -> Iterator[str]:
        """Yield a line for every class that has facts of its own, one for the other classes, and those for facts."""
        yield from (self._class(each, " | ") for each in classes if each.iri in self.own)
        plain = [self._class(each, " ") for each in classes if each.iri not in self.own]
        if plain:
            yield f"others | {'; '.join(plain)}"
        yield from self._shared_lines()
        if self.outside:
            facts = [f"{self._relation(each.relation)} {each.instances:,}" for each in self.outside]
            yield f"of no class | {self._listed(facts)}"

    def _class(self, known: ClassProfile, mark: str) -> str:
        """Return what is told of a class: its size, and the facts that only its instances have."""
        wider = wider_classes(known, self.profile)
        above = f" < {', '.join(set_apart(label_of(each), MARKS) for each in wider)}" if wider else ""
        size = f"{Count(known.instances, exact=not known.at_least)}"
        looked = "" if known.looked_at is None else f", {known.looked_at:,} looked at"
        facts = self._listed([self._fact(each, known) for each in self.own.get(known.iri, ())])
        owner = "" if known.iri is None else self._named(known.iri, self.names.entity_id(known.iri))
        return f"{owner}{above}{mark}{size}{looked}{': ' if facts else ''}{facts}"

    def _shared_lines(self) -> Iterator[str]:
        """Yield a line for every fact that instances of several classes have."""
        for relation, having in self.shared.items():
            classes = self._listed(
                [f"{set_apart(label_of(known), MARKS)}{_share(each, known)}" for known, each in having], ", "
            )
            leads_to = end_of(_merged(each for _, each in having), self.names, SHOWN_TARGETS, short=True)
            yield f"{self._relation(relation)}{leads_to} | {classes}"

    def _listed(self, facts: Sequence[str], mark: str = "; ") -> str:
        more = f"{mark}and {len(facts) - self.most} more" if len(facts) > self.most else ""
        return mark.join(facts[: self.most]) + more

    def _fact(self, each: PropertyProfile, known: ClassProfile) -> str:
        leads_to = end_of(each, self.names, SHOWN_TARGETS if _leads_apart(each) else 1, short=True)
        return f"{self._relation(each.relation)}{_share(each, known)}{leads_to}"

    def _relation(self, relation: Iri) -> str:
        name = self._named(relation, self.names.relation_id(relation))
        pair = self.profile.inverses_of(relation)
        if pair is None or (relation == pair.inverse and not pair.symmetric):
            return name
        label = self.names.labels.get(pair.inverse)
        other = self.names.relation_id(pair.inverse) if label is None else set_apart(shown_label(label), MARKS)
        return f"{name} ⇄" if pair.symmetric else f"{name} ⇄{other}"

    def _named(self, term: Node, id: str) -> str:
        label = self.names.labels.get(term)
        if label is None:
            return id
        name = set_apart(shown_label(label), MARKS)
        return f"{name} {id}" if fold(label) in self.repeated else name


def _leads_apart(each: PropertyProfile) -> bool:
    """Say whether the largest class of the far ends would hide another one, of far ends that are none of its own."""
    edges = [count for _, count in each.targets]
    return bool(edges) and edges[0] < MAIN_TARGET * each.facts and sum(edges) <= each.facts


def own_facts(known: ClassProfile, profile: GraphProfile, vocabulary: Vocabulary) -> list[PropertyProfile]:
    """Return what the instances of a class have, outgoing, that those of its wider classes have not."""
    said = {each.relation for above in wider_classes(known, profile) for each in facts_of(above, vocabulary)}
    return [each for each in facts_of(known, vocabulary) if each.direction == "out" and each.relation not in said]


def outside_facts(profile: GraphProfile, vocabulary: Vocabulary) -> list[PropertyProfile]:
    """Return what only entities of no class have, outgoing, without what only describes the graph itself."""
    said = {each.relation for known in telling_classes(profile) for each in facts_of(known, vocabulary)}
    facts = facts_of(profile.everything, vocabulary)
    return [
        each
        for each in facts
        if each.direction == "out" and each.relation not in said and not each.relation.value.startswith(ABOUT_ITSELF)
    ]


def _merged(facts: Iterable[PropertyProfile]) -> PropertyProfile:
    """Return one fact that leads to whatever some do, with the widest range."""
    first, *rest = facts
    targets = Counter(dict(first.targets))
    values = first.values
    for each in rest:
        targets.update(dict(each.targets))
        values = each.values if values is None or each.values is None else _wider_range(values, each.values)
    return replace(first, targets=tuple(targets.most_common()), values=values)


def _wider_range(one: ValueRange, other: ValueRange) -> ValueRange:
    ends = [end for each in (one, other) for end in (each.least, each.greatest) if end is not None]
    ordered = sorted(ends, key=lambda end: order_of(end) or 0.0)
    units = {unit_of(end) for end in ends}
    if len(ordered) < 4 or len(units) > 1 or compared_by((*one.datatypes, *other.datatypes)) == ():
        return replace(one, least=None, greatest=None)
    return replace(one, least=ordered[0], greatest=ordered[-1])


def _repeated(names: Names, terms: Iterable[Node]) -> frozenset[str]:
    """Return the labels that several terms bear."""
    found = Counter(fold(names.labels[term]) for term in terms if term in names.labels)
    return frozenset(label for label, number in found.items() if number > 1)


def _share(each: PropertyProfile, known: ClassProfile) -> str:
    share = each.instances / max(1, known.counted_over)
    return "" if share >= WHOLE else f" {max(1, round(share * 100))}%"
