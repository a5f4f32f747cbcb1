"""The lines of Schema: the kinds of values in a graph, its classes, and the facts of each."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Self

from kg_adapters.folding import fold
from kg_adapters.labels import RDF_TYPE, Vocabulary
from kg_adapters.models import Count
from kg_adapters.profile import (
    COMPARED,
    VALUE_KINDS,
    ClassProfile,
    GraphProfile,
    PropertyProfile,
    ValueKind,
    ValueRange,
    compared_by,
    is_unit,
)
from kg_adapters.terms import XSD, Iri, Literal, Node
from kg_adapters.values import number_order, order_of, unit_of
from kg_boundary.shown import in_quotes, listed, set_apart, shown_within
from kg_server.answers.values import plain_value
from kg_server.names import MAX_LABEL, Names, plural, shown_label

SHOWN_TARGETS: Final = 2

MOST_IN_A_LINE: Final = 8

EXAMPLES: Final = 2

MAX_EXAMPLE: Final = 40
"""The most characters of a name in the instructions of the server."""

MARKS: Final = ",;:<"
"""What separates names in the lines of a definition."""

MOST_UNITS: Final = 3

MAX_ENDS: Final = 24
"""The most characters of a least or greatest value."""

WHOLE: Final = 0.995

LEGEND: Final = (
    "How to read a line: class | instances: relation ⇄inverse, % of instances that have it (none: all), "
    "→class or range of values. Names work as ids; Schema(about=class) shows the ids."
)
"""How the lines of a definition are read."""

_LARGE: Final = 1_000
_LONG: Final = 1e15

# Classes of the description itself; what they have is no fact about the world.
ABOUT_ITSELF: Final = (
    RDF_TYPE.value.removesuffix("type"),
    "http://www.w3.org/2000/01/rdf-schema#",
    "http://www.w3.org/2002/07/owl#",
)

_KINDS: Final[dict[ValueKind, str]] = {
    "date": "dates",
    "number": "numbers",
    "boolean": "booleans",
    "coordinates": "coordinates",
    "text": "texts",
}


def limits_of(profile: GraphProfile) -> str:
    """Return a sentence on what was left out of a profile that is approximate, after a space; nothing otherwise."""
    if not profile.approximate:
        return ""
    return (
        " Counts are approximate: of an entity's many classes only the rarest are counted as targets, of a class's "
        "many superclasses only the nearest, and entities linked by very many relations are left out of inverses."
    )


def kinds_of_facts(profile: GraphProfile) -> str:
    """Return a sentence on the kinds of values that a graph has and has not; nothing where that is not known."""
    there = {each.kind: each.values for each in profile.values}
    if profile.sampled:
        kinds = ", ".join(_KINDS[kind] for kind in VALUE_KINDS if kind in there)
        return f"Literals besides names, in a sample: {kinds}." if kinds else ""
    if not profile.everything.instances:
        return ""
    if not there:
        return "Literals are names and descriptions only: no dates, no numbers."
    counted = [_counted(there[kind], _KINDS[kind]) for kind in VALUE_KINDS if kind in there]
    missing = [f"no {_KINDS[kind]}" for kind in ("date", "number") if kind not in there]
    return f"Literals besides names: {', '.join((*counted, *missing))}."


MOST_IN_BRIEF: Final = 3
"""How many classes are named where a graph is described on one line."""


def in_brief(profile: GraphProfile, *, classes: bool) -> str:
    """Return how large a graph is, perhaps its largest classes, and the kinds of its values, in few words."""
    labels = [each.label for each in stated_classes(profile) if each.label is not None][:MOST_IN_BRIEF]
    among = f" ({shown_within(', '.join(labels), MAX_LABEL)})" if labels and classes else ""
    kinds = ", ".join(_KINDS[each.kind] for each in profile.values if each.kind in COMPARED)
    size = Count(profile.everything.instances, exact=not profile.sampled).of("thing")
    return f"{size}{among}; {kinds or 'no dates, no numbers'}"


def facts_with_examples(profile: GraphProfile, vocabulary: Vocabulary) -> str:
    """Return the sentence on the kinds of values, with the features that most entities have, in quotation marks."""
    kinds = kinds_of_facts(profile)
    known, silent = (profile.everything, *profile.classes), _silent(vocabulary)
    having = (each for owner in known for each in owner.properties if each.relation not in silent)
    labels = dict.fromkeys(each.label for each in having if each.values is not None and each.label is not None)
    examples = ", ".join(in_quotes(label, MAX_EXAMPLE) for label in list(labels)[:EXAMPLES])
    return kinds.replace("besides names", f"besides names, such as {examples}", 1) if examples else kinds


def _counted(values: int, kind: str) -> str:
    return f"{values:,} {kind.removesuffix('s') if values == 1 else kind}"


def stated_classes(profile: GraphProfile) -> list[ClassProfile]:
    """Return the stated classes of entities, without those that only describe the graph itself."""
    return [each for each in profile.classes if each.direct and not describes_the_graph(each.iri)]


def facts_of(known: ClassProfile, vocabulary: Vocabulary) -> list[PropertyProfile]:
    """Return what a class is known by besides names and types, outgoing first."""
    silent = _silent(vocabulary)
    return [each for each in known.properties if each.relation not in silent]


def _silent(vocabulary: Vocabulary) -> frozenset[Iri]:
    """Return the relations that give names and types: they are in no line about a class."""
    return vocabulary.texts | vocabulary.unwalked


@dataclass(frozen=True, slots=True)
class ProfileFacts:
    """What the definition shows of a profile, computed once for all the sizes that are tried for an answer.

    Args:
        classes: The classes that entities are stated to be of, the largest first.
        own: By class, the outgoing facts of its instances that none of its wider classes has.
        outside: The outgoing facts that only entities of no class have.
    """

    classes: Sequence[ClassProfile]
    own: Mapping[Node | None, Sequence[PropertyProfile]]
    outside: Sequence[PropertyProfile]

    @classmethod
    def of(cls, profile: GraphProfile, vocabulary: Vocabulary) -> Self:
        """Return the facts of a profile, in time linear in its size."""
        silent, classes = _silent(vocabulary), stated_classes(profile)
        relations = {each.iri: {fact.relation for fact in each.properties} for each in profile.classes if each.direct}

        def without(owner: ClassProfile, seen: Set[Iri]) -> list[PropertyProfile]:
            return [each for each in owner.properties if each.direction == "out" and each.relation not in seen]

        own: dict[Node | None, list[PropertyProfile]] = {}
        for each in classes:
            own[each.iri] = without(each, silent.union(*(relations[iri] for iri in each.broader if iri in relations)))
        outside = without(profile.everything, silent.union(*(relations[each.iri] for each in classes)))
        return cls(classes, own, [each for each in outside if not each.relation.value.startswith(ABOUT_ITSELF)])


def terms_of_profile(known: ClassProfile, vocabulary: Vocabulary) -> Iterator[Node]:
    """Yield everything that the lines about a class name."""
    if known.iri is not None:
        yield known.iri
    yield from known.broader
    for each in facts_of(known, vocabulary):
        yield each.relation
        yield from (target for target, _ in each.targets[:SHOWN_TARGETS])
        yield from _units(each.values)


def class_lines(known: ClassProfile, profile: GraphProfile, vocabulary: Vocabulary, names: Names) -> list[str]:
    """Return all that is known of a class, a line for each relation and feature."""
    return [_long(each, known, profile, names) for each in facts_of(known, vocabulary)]


def class_summary(known: ClassProfile, names: Names) -> str:
    """Return the sentence that sums up a class."""
    owner = "" if known.iri is None else names.entity(known.iri)
    wider = f", a subclass of {', '.join(names.entity(each, ',:') for each in known.broader)}" if known.broader else ""
    of_its_own = (
        "" if known.direct == known.instances else f", {known.direct:,} of them stated to be of this class itself"
    )
    all_but = "But for outgoing relations, counted" if any(each.of for each in known.properties) else "Counted"
    looked = "" if known.looked_at is None else f" {all_but} over {known.looked_at:,} of them."
    size = Count(known.instances, exact=not known.at_least)
    return f"{owner}{wider}: {size} {plural(label_of(known))}{of_its_own}.{looked}"


def wider_classes(known: ClassProfile, profile: GraphProfile) -> list[ClassProfile]:
    """Return the classes directly above one that are stated for entities."""
    found = (profile.profile_of(iri) for iri in known.broader)
    return [each for each in found if each is not None and each.direct]


def _long(each: PropertyProfile, known: ClassProfile, profile: GraphProfile, names: Names) -> str:
    inverse = profile.inverse_of(each.relation) if each.direction == "out" else None
    pair = "" if inverse is None else " ⇄" if inverse == each.relation else f" ⇄ {names.relation(inverse)}"
    kind = "feature" if each.values is not None and not each.targets else "relation"
    way = "" if each.direction == "out" else ", from them to it"
    many = "" if each.facts == each.instances else f", {each.facts:,} facts"
    having = f"{each.instances:,} of {known.looked_at_for(each):,}{many}"
    end = end_of(each, names, SHOWN_TARGETS, short=False)
    return f"{kind} | {names.relation(each.relation)}{pair}{way} | {having}{end}"


def end_of(each: PropertyProfile, names: Names, most: int, *, short: bool) -> str:
    """Return where a relation leads: to which classes, or to which values."""
    if each.targets:
        classes = [target for target, _ in each.targets[:most]]
        others = len(each.targets) > most and sum(edges for _, edges in each.targets[:most]) < each.facts
        if not short:
            return f" → {', '.join(names.entity(end, ',') for end in classes)}{' and others' if others else ''}"
        labels = [shown_within(names.labels.get(end, end.local_part), MAX_LABEL) for end in classes]
        return f"→{', '.join(set_apart(label, MARKS) for label in labels)}{', …' if others else ''}"
    values = each.values
    if values is None:
        return ""
    if values.least is None or values.greatest is None:
        kinds = "/".join(values.kinds)
        return f" {kinds}" if short else f" ({kinds})"
    unit = "" if values.unit is None or short else f" {shown_within(values.unit, MAX_LABEL)}"
    dates, units = "date" in values.kinds, _units(values)
    shown = (_year if dates else _rounded) if short else (_date if dates else _plain)
    if units:
        shown, unit = _quantity, f" {', also '.join(map(names.unit, units[:MOST_UNITS]))}"
    least, greatest = map(shown, (values.least, values.greatest))
    return f" {least}{'' if least == greatest else f'…{greatest}'}{unit}"


def _units(values: ValueRange | None) -> list[Iri]:
    """Return the units of quantities, that of the least and the greatest first."""
    if values is None or values.least is None or not is_unit(values.least.datatype):
        return []
    return list(dict.fromkeys((values.least.datatype, *filter(is_unit, values.datatypes))))


def _quantity(value: Literal) -> str:
    return plain_value(Literal(value.value, Iri(f"{XSD}decimal")), quantity=True) or _plain(value)


def _year(value: Literal) -> str:
    year, _, _ = value.value.lstrip("-").partition("-")
    year = year.lstrip("0") or "0"
    return shown_within(f"-{year}" if value.value.startswith("-") else year, MAX_ENDS)


def _date(value: Literal) -> str:
    return shown_within(plain_value(value) or value.value, MAX_ENDS)


def _rounded(value: Literal) -> str:
    """Return a number as far as it tells the size of others."""
    number = order_of(value)
    if number is None or "." not in value.value or abs(number) >= _LONG:
        return _plain(value)
    return f"{number:.3g}" if abs(number) < _LARGE else f"{number:.0f}"


def _plain(value: Literal) -> str:
    number = number_order(value.value) if len(value.value) > MAX_ENDS else None
    return shown_within(value.value, MAX_ENDS) if number is None else f"{number:.6g}"


def label_of(known: ClassProfile) -> str:
    """Return what a class is called."""
    if known.label is not None:
        return shown_within(known.label, MAX_LABEL)
    return "entity" if known.iri is None else shown_within(known.iri.local_part, MAX_LABEL)


def describes_the_graph(owner: Node | None) -> bool:
    """Return whether a class is from a vocabulary that describes graphs, such as `owl:Class`."""
    return isinstance(owner, Iri) and owner.value.startswith(ABOUT_ITSELF)


def named(classes: Sequence[ClassProfile], text: str) -> ClassProfile | None:
    """Return the class that bears a name, the largest of several."""
    wanted = text.strip().casefold()
    called = ((each, label_of(each)) for each in classes)
    return next((each for each, name in called if wanted in {name.casefold(), plural(name).casefold()}), None)


MAIN_TARGET: Final = 0.8
"""From which part of the edges on the largest class of their far ends is named alone."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A graph by its classes: each relation and feature is shown once.

    Args:
        profile: What is known of the graph.
        names: The names of all that is shown.
        most: The most facts in a line; with `MOST_IN_A_LINE` each class lists all of its facts, shared or not.
        own: The facts that only one of the shown classes has, by class.
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
        cls, profile: GraphProfile, facts: ProfileFacts, classes: Sequence[ClassProfile], names: Names, most: int
    ) -> Self:
        """Return the definition that shows some classes."""
        found: defaultdict[tuple[Iri, Node | None], list[tuple[ClassProfile, PropertyProfile]]] = defaultdict(list)
        for known in classes:
            for each in facts.own[known.iri]:
                found[each.relation, None if most > MOST_IN_A_LINE else known.iri].append((known, each))
        own: defaultdict[Node | None, list[PropertyProfile]] = defaultdict(list)
        for ((known, each),) in (having for having in found.values() if len(having) == 1):
            own[known.iri].append(each)
        shared = {relation: having for (relation, _), having in found.items() if len(having) > 1}
        with_others: defaultdict[Node | None, list[PropertyProfile]] = defaultdict(list)
        for known, each in chain.from_iterable(shared.values()):
            with_others[known.iri].append(each)
        owners = dict.fromkeys(each.iri for each in classes if each.iri is not None)
        relations = dict.fromkeys((*(relation for relation, _ in found), *(each.relation for each in facts.outside)))
        repeated = _repeated(names, owners) | _repeated(names, relations)
        return cls(profile, names, most, own, shared, with_others, facts.outside, repeated)

    def facts_of(self, known: ClassProfile) -> list[PropertyProfile]:
        """Return the facts that the lines show of a class."""
        return [*self.own.get(known.iri, ())[: self.most], *self.with_others.get(known.iri, ())]

    def lines(self, classes: Sequence[ClassProfile]) -> Iterator[str]:
        """Yield a line for every class with facts that only it has, one for the other classes, and those for facts."""
        yield from (self._class(each, " | ") for each in classes if each.iri in self.own)
        plain = [self._class(each, " ") for each in classes if each.iri not in self.own]
        if plain:
            yield f"others | {'; '.join(plain)}"
        yield from self._shared_lines()
        if self.outside:
            facts = [f"{self._relation(each.relation)} {each.instances:,}" for each in self.outside]
            yield f"of no class | {listed(facts, '; ', self.most)}"

    def _class(self, known: ClassProfile, mark: str) -> str:
        """Return the line of a class: its size, and the facts that only its instances have."""
        wider = wider_classes(known, self.profile)
        above = f" < {', '.join(set_apart(label_of(each), MARKS) for each in wider)}" if wider else ""
        size = f"{Count(known.instances, exact=not known.at_least)}"
        looked = "" if known.looked_at is None else f", {known.looked_at:,} looked at"
        facts = listed((self._fact(each, known) for each in self.own.get(known.iri, ())), "; ", self.most)
        owner = "" if known.iri is None else self._named(known.iri, self.names.entity_id(known.iri))
        return f"{owner}{above}{mark}{size}{looked}{': ' if facts else ''}{facts}"

    def _shared_lines(self) -> Iterator[str]:
        """Yield a line for every fact that instances of several classes have."""
        for relation, having in self.shared.items():
            owners = (f"{set_apart(label_of(known), MARKS)}{_share(each, known)}" for known, each in having)
            classes = listed(owners, ", ", self.most)
            leads_to = end_of(_merged(each for _, each in having), self.names, SHOWN_TARGETS, short=True)
            yield f"{self._relation(relation)}{leads_to} | {classes}"

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
    """Return whether showing only the largest class of the far ends would hide a class that it does not contain."""
    edges = [count for _, count in each.targets]
    return bool(edges) and edges[0] < MAIN_TARGET * each.facts and sum(edges) <= each.facts


def _merged(facts: Iterable[PropertyProfile]) -> PropertyProfile:
    """Return one fact that leads to whatever some do, with the widest range."""
    first, *rest = facts
    targets = Counter(dict(first.targets))
    values = first.values
    for each in rest:
        targets.update(dict(each.targets))
        values = each.values if values is None or each.values is None else _wider_range(values, each.values)
    edges = first.facts + sum(each.facts for each in rest)
    return replace(first, facts=edges, targets=tuple(targets.most_common()), values=values)


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
    share = each.instances / max(1, known.looked_at_for(each))
    return "" if share >= WHOLE else f" {max(1, round(share * 100))}%"
