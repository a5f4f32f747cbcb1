"""What Schema says of the profile of a graph: which kinds of values there are, and what each class is known by."""

from collections.abc import Iterator, Sequence
from typing import Final

from kg_adapters.labels import RDF_TYPE, Vocabulary
from kg_adapters.profile import VALUE_KINDS, ClassProfile, GraphProfile, PropertyProfile, ValueKind
from kg_adapters.terms import Iri, Literal, Node
from kg_boundary.shown import shown_within
from kg_server.coverage import plural
from kg_server.names import MAX_LABEL, Names, shown_label

SHOWN_TARGETS: Final = 2
MOST_IN_A_LINE: Final = 8
MAX_ENDS: Final = 24
"""The most characters of a least or greatest value."""
WHOLE: Final = 0.995

# Classes of the description itself; what they have is no fact about the world.
_ABOUT_ITSELF: Final = (
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


def kinds_of_facts(profile: GraphProfile) -> str:
    """Return a sentence on the kinds of values that a graph has and has not; nothing where that is not known."""
    if not profile.everything.instances:
        return ""
    there = {each.kind: each.values for each in profile.values}
    if not there:
        return "Literals are names and descriptions only: no dates, no numbers."
    counted = [_counted(there[kind], _KINDS[kind]) for kind in VALUE_KINDS if kind in there]
    missing = [f"no {_KINDS[kind]}" for kind in ("date", "number") if kind not in there]
    return f"Literals beside names: {', '.join((*counted, *missing))}."


def _counted(values: int, kind: str) -> str:
    return f"{values:,} {kind.removesuffix('s') if values == 1 else kind}"


def telling_classes(profile: GraphProfile) -> list[ClassProfile]:
    """Return the classes that entities are said to be of, without those that only describe the graph itself."""
    return [each for each in profile.classes if each.direct and not _describes_the_graph(each)]


def facts_of(known: ClassProfile, vocabulary: Vocabulary) -> list[PropertyProfile]:
    """Return what a class is known by beside names and types, outgoing first."""
    silent = vocabulary.texts | vocabulary.unwalked
    return [each for each in known.properties if each.relation not in silent]


def terms_of_profile(known: ClassProfile, vocabulary: Vocabulary) -> Iterator[Node]:
    """Yield everything that the lines about a class name."""
    if known.iri is not None:
        yield known.iri
    yield from known.broader
    for each in facts_of(known, vocabulary):
        yield each.relation
        yield from (target for target, _ in each.targets[:SHOWN_TARGETS])


def own_facts(known: ClassProfile, profile: GraphProfile, vocabulary: Vocabulary) -> list[PropertyProfile]:
    """Return what the instances of a class have, outgoing, that those of its wider classes have not."""
    said = {each.relation for above in _wider(known, profile) for each in facts_of(above, vocabulary)}
    return [each for each in facts_of(known, vocabulary) if each.direction == "out" and each.relation not in said]


def class_line(known: ClassProfile, profile: GraphProfile, vocabulary: Vocabulary, names: Names) -> str:
    """Return one line about a class: its size, and the first of its own facts."""
    own, wider = own_facts(known, profile, vocabulary), _wider(known, profile)
    above = f" (also {', '.join(_label(each) for each in wider)})" if wider else ""
    facts = "; ".join(_short(each, known, names) for each in own[:MOST_IN_A_LINE])
    facts += f"; and {len(own) - MOST_IN_A_LINE} more" if len(own) > MOST_IN_A_LINE else ""
    owner = "" if known.iri is None else names.entity(known.iri)
    return f"class | {owner}{above} | {known.instances:,}{': ' if facts else ''}{facts}"


def outside_facts(profile: GraphProfile, vocabulary: Vocabulary) -> list[PropertyProfile]:
    """Return what only entities of no class have, outgoing."""
    said = {each.relation for known in telling_classes(profile) for each in facts_of(known, vocabulary)}
    facts = facts_of(profile.everything, vocabulary)
    return [each for each in facts if each.direction == "out" and each.relation not in said]


def outside_line(facts: Sequence[PropertyProfile], names: Names) -> str:
    """Return one line about what only entities of no class have: how many have it."""
    shown = "; ".join(f"{names.relation(each.relation)} {each.instances:,}" for each in facts[:MOST_IN_A_LINE])
    more = f"; and {len(facts) - MOST_IN_A_LINE} more" if len(facts) > MOST_IN_A_LINE else ""
    return f"of no class | {shown}{more}"


def class_lines(known: ClassProfile, vocabulary: Vocabulary, names: Names) -> list[str]:
    """Return all that is known of a class, a line for each relation and feature."""
    return [_long(each, known, names) for each in facts_of(known, vocabulary)]


def class_summary(known: ClassProfile, names: Names) -> str:
    """Return the sentence that sums up a class."""
    owner = "" if known.iri is None else names.entity(known.iri)
    wider = f", a subclass of {', '.join(names.entity(each) for each in known.broader)}" if known.broader else ""
    of_its_own = "" if known.direct == known.instances else f", {known.direct:,} of them said to be of this very class"
    return f"{owner}{wider}: {known.instances:,} {plural(_label(known))}{of_its_own}."


def _wider(known: ClassProfile, profile: GraphProfile) -> list[ClassProfile]:
    """Return the classes right above one that entities are said to be of."""
    found = (profile.profile_of(iri) for iri in known.broader)
    return [each for each in found if each is not None and each.direct]


def _short(each: PropertyProfile, known: ClassProfile, names: Names) -> str:
    share = each.instances / known.instances
    part = "" if share >= WHOLE else f" {max(1, round(share * 100))}%"
    label = names.labels.get(each.relation)
    name = names.relation(each.relation) if label is None else shown_label(label)
    return f"{name}{part}{_leads_to(each, names, 1, short=True)}"


def _long(each: PropertyProfile, known: ClassProfile, names: Names) -> str:
    kind = "feature" if each.values is not None and not each.targets else "relation"
    way = "" if each.direction == "out" else ", from them to it"
    many = "" if each.facts == each.instances else f", {each.facts:,} facts"
    return (
        f"{kind} | {names.relation(each.relation)}{way} | {each.instances:,} of {known.instances:,}{many}"
        f"{_leads_to(each, names, SHOWN_TARGETS, short=False)}"
    )


def _leads_to(each: PropertyProfile, names: Names, most: int, *, short: bool) -> str:
    if each.targets:
        classes = [target for target, _ in each.targets[:most]]
        shown = [names.labels.get(end, end.local_part) if short else names.entity(end) for end in classes]
        return f" → {', '.join(shown_within(end, MAX_LABEL) for end in shown)}"
    values = each.values
    if values is None:
        return ""
    if values.least is None or values.greatest is None:
        return f" ({'/'.join(values.kinds)})"
    unit = "" if values.unit is None or short else f" {shown_within(values.unit, MAX_LABEL)}"
    ends = (values.least, values.greatest)
    least, greatest = (_year(end) if short and "date" in values.kinds else _plain(end) for end in ends)
    return f" {least}{'' if least == greatest else f'…{greatest}'}{unit}"


def _year(value: Literal) -> str:
    year, _, _ = value.value.lstrip("-").partition("-")
    return shown_within(f"-{year}" if value.value.startswith("-") else year, MAX_ENDS)


def _plain(value: Literal) -> str:
    return shown_within(value.value, MAX_ENDS)


def _label(known: ClassProfile) -> str:
    if known.label is not None:
        return shown_within(known.label, MAX_LABEL)
    return "entity" if known.iri is None else shown_within(known.iri.local_part, MAX_LABEL)


def _describes_the_graph(known: ClassProfile) -> bool:
    return isinstance(known.iri, Iri) and known.iri.value.startswith(_ABOUT_ITSELF)


def named(classes: Sequence[ClassProfile], text: str) -> ClassProfile | None:
    """Return the class that bears a name, the largest of several."""
    wanted = text.strip().casefold()
    called = ((each, _label(each)) for each in classes)
    return next((each for each, name in called if wanted in {name.casefold(), plural(name).casefold()}), None)
