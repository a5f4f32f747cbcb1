"""What Schema says of the profile of a graph: which kinds of values there are, and what each class is known by."""

from collections.abc import Iterator, Sequence
from typing import Final

from kg_adapters.labels import RDF_TYPE, Vocabulary
from kg_adapters.models import Count
from kg_adapters.profile import (
    VALUE_KINDS,
    ClassProfile,
    GraphProfile,
    PropertyProfile,
    ValueKind,
    ValueRange,
    is_unit,
)
from kg_adapters.terms import XSD, Iri, Literal, Node
from kg_adapters.value_order import order_of
from kg_boundary.shown import in_quotes, set_apart, shown_within
from kg_server.answers.coverage import plural
from kg_server.answers.values import plain_value
from kg_server.names import MAX_LABEL, Names

SHOWN_TARGETS: Final = 2
MOST_IN_A_LINE: Final = 8
EXAMPLES: Final = 5
MAX_EXAMPLE: Final = 40
"""The most characters of a name in the instructions of the server."""
MARKS: Final = ",;:<"
"""What separates names in the lines of a definition."""
MOST_UNITS: Final = 3
MAX_ENDS: Final = 24
"""The most characters of a least or greatest value."""
WHOLE: Final = 0.995
_LARGE: Final = 1_000

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


def facts_with_examples(profile: GraphProfile, vocabulary: Vocabulary) -> str:
    """Return the sentence on the kinds of values, with the features that most entities have, in quotation marks."""
    kinds = kinds_of_facts(profile)
    known = (profile.everything, *profile.classes)
    having = [each for owner in known for each in facts_of(owner, vocabulary) if each.values is not None]
    labels = [in_quotes(each.label, MAX_EXAMPLE) for each in having if each.label is not None]
    examples = ", ".join(list(dict.fromkeys(labels))[:EXAMPLES])
    return kinds.replace("besides names", f"besides names, such as {examples}", 1) if examples else kinds


def _counted(values: int, kind: str) -> str:
    return f"{values:,} {kind.removesuffix('s') if values == 1 else kind}"


def telling_classes(profile: GraphProfile) -> list[ClassProfile]:
    """Return the classes that entities are said to be of, without those that only describe the graph itself."""
    return [each for each in profile.classes if each.direct and not _describes_the_graph(each)]


def facts_of(known: ClassProfile, vocabulary: Vocabulary) -> list[PropertyProfile]:
    """Return what a class is known by besides names and types, outgoing first."""
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
        yield from _units(each.values)


def class_lines(known: ClassProfile, vocabulary: Vocabulary, names: Names) -> list[str]:
    """Return all that is known of a class, a line for each relation and feature."""
    return [_long(each, known, names) for each in facts_of(known, vocabulary)]


def class_summary(known: ClassProfile, names: Names) -> str:
    """Return the sentence that sums up a class."""
    owner = "" if known.iri is None else names.entity(known.iri)
    wider = f", a subclass of {', '.join(names.entity(each, ',:') for each in known.broader)}" if known.broader else ""
    of_its_own = (
        "" if known.direct == known.instances else f", {known.direct:,} of them stated to be of this class itself"
    )
    looked = "" if known.looked_at is None else f" Counted over {known.looked_at:,} of them."
    size = Count(known.instances, exact=not known.at_least)
    return f"{owner}{wider}: {size} {plural(label_of(known))}{of_its_own}.{looked}"


def wider_classes(known: ClassProfile, profile: GraphProfile) -> list[ClassProfile]:
    """Return the classes right above one that entities are said to be of."""
    found = (profile.profile_of(iri) for iri in known.broader)
    return [each for each in found if each is not None and each.direct]


def _long(each: PropertyProfile, known: ClassProfile, names: Names) -> str:
    kind = "feature" if each.values is not None and not each.targets else "relation"
    way = "" if each.direction == "out" else ", from them to it"
    many = "" if each.facts == each.instances else f", {each.facts:,} facts"
    return (
        f"{kind} | {names.relation(each.relation)}{way} | {each.instances:,} of {known.counted_over:,}{many}"
        f"{end_of(each, names, SHOWN_TARGETS, short=False)}"
    )


def end_of(each: PropertyProfile, names: Names, most: int, *, short: bool) -> str:
    """Return where a relation leads: to which classes, or to which values."""
    if each.targets:
        classes = [target for target, _ in each.targets[:most]]
        if not short:
            return f" → {', '.join(names.entity(end, ',') for end in classes)}"
        labels = [shown_within(names.labels.get(end, end.local_part), MAX_LABEL) for end in classes]
        return f"→{', '.join(set_apart(label, MARKS) for label in labels)}"
    values = each.values
    if values is None:
        return ""
    if values.least is None or values.greatest is None:
        kinds = "/".join(values.kinds)
        return f" {kinds}" if short else f" ({kinds})"
    unit = "" if values.unit is None or short else f" {shown_within(values.unit, MAX_LABEL)}"
    shown, units = (_year if "date" in values.kinds else _rounded) if short else _plain, _units(values)
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
    return shown_within(f"-{year}" if value.value.startswith("-") else year, MAX_ENDS)


def _rounded(value: Literal) -> str:
    """Return a number as far as it tells the size of others."""
    number = order_of(value)
    if number is None or "." not in value.value:
        return _plain(value)
    return f"{number:.3g}" if abs(number) < _LARGE else f"{number:.0f}"


def _plain(value: Literal) -> str:
    return shown_within(value.value, MAX_ENDS)


def label_of(known: ClassProfile) -> str:
    """Return what a class is called."""
    if known.label is not None:
        return shown_within(known.label, MAX_LABEL)
    return "entity" if known.iri is None else shown_within(known.iri.local_part, MAX_LABEL)


def _describes_the_graph(known: ClassProfile) -> bool:
    return isinstance(known.iri, Iri) and known.iri.value.startswith(ABOUT_ITSELF)


def named(classes: Sequence[ClassProfile], text: str) -> ClassProfile | None:
    """Return the class that bears a name, the largest of several."""
    wanted = text.strip().casefold()
    called = ((each, label_of(each)) for each in classes)
    return next((each for each, name in called if wanted in {name.casefold(), plural(name).casefold()}), None)
