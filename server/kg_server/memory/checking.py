"""Each triple of a call against the graph: what may be kept, what is refused and why."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kg_adapters.errors import KGError
from kg_adapters.models import NO_FEATURES, Degree, Description, FeaturePage, Role
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import Attribute, Fact, Iri, Literal, Node, Term, Triple
from kg_boundary.shown import clipped, in_quotes, shown_within, visible_line
from kg_server.answers.values import may_mean, plain_value
from kg_server.memory.lines import Written, marked_by, unmarked
from kg_server.memory.statements import Stated, StatedTriples, Value, read_statements
from kg_server.memory.store import KeptFact, MemoryLimits
from kg_server.names import Names, names_of, shown_literal
from kg_server.naming.labelled import is_shown_as
from kg_server.naming.refusals import unknown_entity, unknown_name
from kg_server.naming.relations import relation_of

MAX_VALUES: Final = 1_000
"""How many values of one feature a literal is looked for among."""

SHOWN_TAILS: Final = 3
SHOWN_RELATIONS: Final = 5
SHOWN_PREFIXES: Final = 5
_MAX_REASON: Final = 400
_MAX_WRITTEN: Final = 80
_MAX_NOTED: Final = 60
_MIN_CUT: Final = 20


@dataclass(frozen=True, slots=True)
class RefusedTriple:
    """A triple that may not be kept: its place in the call, from 1, what was written, and why."""

    number: int
    written: str
    reason: str

    def __str__(self) -> str:
        return f"triple {self.number} ({self.written}): {self.reason}"


@dataclass(frozen=True, slots=True)
class Checked:
    """The triples of one call, judged one by one.

    Args:
        facts: What may be kept, in the order it was written.
        refused: Every other triple.
        notes: One line for every label that the graph gives to something else.
        read: The ids that names were read as.
    """

    facts: tuple[KeptFact, ...]
    refused: tuple[RefusedTriple, ...]
    notes: tuple[str, ...]
    read: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Judged:
    """What one graph makes of triples, by their numbers from 0.

    Args:
        facts: What may be kept.
        refused: Why the others may not.
        notes: What is noted of each label that the graph gives to something else.
        read: The ids that names were read as.
        known: How many parts of each fact the graph knows.
    """

    facts: Mapping[int, KeptFact]
    refused: Mapping[int, str]
    notes: Mapping[int, Sequence[str]]
    read: Mapping[str, str]
    known: Mapping[int, int] = field(default_factory=dict[int, int])

    def numbered(self, numbers: Sequence[int], graph: str = "") -> "Judged":
        """Return the same by the numbers that triples have in their call, as facts of a graph."""
        return Judged(
            {numbers[place]: replace(fact, graph=graph) for place, fact in self.facts.items()},
            {numbers[place]: reason for place, reason in self.refused.items()},
            {numbers[place]: notes for place, notes in self.notes.items()},
            self.read,
            {numbers[place]: known for place, known in self.known.items()},
        )

    def joined(self, more: "Judged") -> "Judged":
        """Return these with the facts of triples that were refused and that could be read in another way."""
        return Judged(
            {**self.facts, **more.facts},
            {number: reason for number, reason in self.refused.items() if number not in more.facts},
            {**self.notes, **more.notes},
            {**self.read, **more.read},
            {**self.known, **more.known},
        )

    def checked(self, written: Sequence[Written]) -> Checked:
        """Return the triples of the call, judged one by one."""
        return Checked(
            tuple(self.facts[number] for number in sorted(self.facts)),
            tuple(_refusal(number, written[number], self.refused[number]) for number in sorted(self.refused)),
            tuple(dict.fromkeys(note for number in sorted(self.notes) for note in self.notes[number])),
            self.read,
        )


async def check(
    graph: KGAdapter, written: Sequence[Written], *, limits: MemoryLimits, allow_unverified: bool
) -> Checked:
    """Return the triples of a call as one graph judges them; see `judge`. Its own mark is taken off."""
    plain = [without_mark(each, (graph.name,))[0] for each in written]
    judged = await judge(graph, plain, limits=limits, allow_unverified=allow_unverified)
    unread = [number for number in judged.refused if plain[number] is not written[number]]
    if unread:
        whole = await judge(
            graph, [written[number] for number in unread], limits=limits, allow_unverified=allow_unverified
        )
        judged = judged.joined(whole.numbered(unread))
    refused = {
        number: with_no_graph(reason, written[number], (graph.name,)) for number, reason in judged.refused.items()
    }
    return replace(judged, refused=refused).checked(written)


def without_mark(written: Written, graphs: Collection[str]) -> tuple[Written, str]:
    """Return a triple without the mark of its relation, and the graph that this names; "" where it names none."""
    if isinstance(written, str) or len(written) < 2:
        return written, ""
    relation, mark = unmarked(written[1], graphs)
    return ([written[0], relation, *written[2:]], mark) if mark else (written, "")


def with_no_graph(reason: str, written: Written, graphs: Collection[str]) -> str:
    """Return why a triple is refused; where the mark of its relation names no graph, that is the only reason."""
    name = "" if isinstance(written, str) or len(written) < 2 else marked_by(written[1])
    # A name such as `length [mm]` is no mark: only what is repeated, in quotes, was not known.
    if not name or name in graphs or not any(f"[{name}]{quote}" in reason for quote in "'\""):
        return reason
    no_graph = unknown_name("This server", "graph", name, graphs)
    # One that is not repeated belongs to the name of another relation, which may be meant.
    is_of_a_name = f"[{name}]" in reason.replace(written[1].strip(), "")
    return f"{no_graph} {reason}" if is_of_a_name else no_graph


async def judge(
    graph: KGAdapter, written: Sequence[Written], *, limits: MemoryLimits, allow_unverified: bool
) -> Judged:
    """Read triples and look each of them up; a bad one does not harm the others.

    Args:
        graph: Where they should be.
        written: The triples as a model writes them.
        limits: How long a fact may be: a value may be much longer than what was written of it.
        allow_unverified: Keep what the graph does not hold, marked; what cannot be read is refused all the same.
    """
    return await judge_stated(
        graph, await read_statements(graph, written), limits=limits, allow_unverified=allow_unverified
    )


async def judge_stated(
    graph: KGAdapter, read: StatedTriples, *, limits: MemoryLimits, allow_unverified: bool
) -> Judged:
    """Look triples up that were read; see `judge`."""
    tails, unclear, unchecked = await _look_up(graph, read.stated, read.described)
    refused = {**read.refused, **unclear}
    missing = {number: each for number, each in read.stated.items() if number not in {*tails, *unclear}}
    # A word is taken for a value only where the graph has it; it may as well be a name.
    refused |= {number: each.refusal for number, each in missing.items() if each.refusal}
    if allow_unverified:
        refused |= {
            number: _no_prefix(graph, foreign)
            for number, each in missing.items()
            if (foreign := next((one.id for one in each.mentions if one.id and one.node not in read.described), ""))
        }
    else:
        refused |= {number: reason for number, reason in unchecked.items() if number not in refused}
        absent = {number: each for number, each in missing.items() if number not in refused}
        refused |= dict(zip(absent, await _reasons(graph, list(absent.values()), read.described), strict=True))
    facts = dict[int, KeptFact]()
    for number, each in read.stated.items():
        if number in refused:
            continue
        fact = KeptFact(each.head.node, each.relation_iri, tails.get(number, each.fact.tail), number in tails)
        if fact.bytes <= limits.fact_bytes:
            facts[number] = fact
        else:
            refused[number] = (
                f"its texts take {fact.bytes:,} bytes where a memory keeps at most {limits.fact_bytes:,} of one fact. "
                "Keep another fact that proves the same, such as a shorter value."
            )
    return Judged(
        facts,
        refused,
        {number: _notes(graph, read.stated[number], read.described) for number in facts},
        {name: graph.prefixes.shorten(node, position) for name, (position, node) in read.names.items()},
        {number: sum(one.node in read.described for one in read.stated[number].mentions) for number in facts},
    )


def _no_prefix(graph: KGAdapter, id_: str) -> str:
    """Return why an id is refused whose prefix the graph does not have."""
    known = ", ".join(f"{each}:" for each in list(graph.prefixes.namespaces)[:SHOWN_PREFIXES])
    there = f" It has {known}." if known else ""
    return (
        f"{in_quotes(id_)} has a prefix that this graph does not have.{there} Copy ids as results show them; full IRIs "
        "stand in <…>, literal tails in quotes."
    )


def _refusal(number: int, written: Written, reason: str) -> RefusedTriple:
    parts = (written,) if isinstance(written, str) else written[:3]
    shown = " | ".join(clipped(visible_line(part), _MAX_WRITTEN) for part in parts)
    return RefusedTriple(number + 1, shown, clipped(visible_line(reason), _MAX_REASON))


def _notes(graph: KGAdapter, stated: Stated, described: Mapping[Node, Description]) -> Sequence[str]:
    notes: list[str] = []
    if stated.turned is not None:
        asked, kept = (graph.prefixes.shorten(each.node, "relation") for each in (stated.turned, stated.relation))
        way = "the other way round" if asked == kept else f"the other way, as {kept}"
        notes.append(f"{asked} is stored only {way}, and kept so.")
    for mention in stated.mentions:
        description = described.get(mention.node)
        real = None if description is None else description.label
        if mention.label and real is not None and not is_shown_as(mention.label, real):
            is_relation = mention in (stated.relation, stated.turned)
            short = graph.prefixes.shorten(mention.node, "relation" if is_relation else "entity")
            here, written = shown_within(real, _MAX_NOTED), shown_within(mention.label, _MAX_NOTED)
            notes.append(f"{short} is {here} in this graph, not {written}; the id counts.")
    return notes


async def _look_up(
    graph: KGAdapter, stated: Mapping[int, Stated], described: Mapping[Node, Description]
) -> tuple[dict[int, Term], dict[int, str], dict[int, str]]:
    """Return by number the tails as the graph has them, why some are unclear, and why others cannot be looked up."""
    known = {number: each for number, each in stated.items() if each.head.node in described}
    held = await graph.contains(frozenset(each.fact for each in known.values()))
    tails: dict[int, Term] = {number: each.fact.tail for number, each in known.items() if each.fact in held}
    unclear, unchecked = dict[int, str](), dict[int, str]()
    values = [
        (number, each, each.value) for number, each in known.items() if each.value is not None and number not in tails
    ]
    # Most calls are about one or two features: a request for each answers for all heads.
    for relation in dict.fromkeys(each.relation_iri for _, each, _ in values):
        about = [(number, each.head.node, value) for number, each, value in values if each.relation_iri == relation]
        heads = tuple(dict.fromkeys(head for _, head, _ in about))
        pages = await graph.features(FeatureRequest(heads, frozenset({relation}), MAX_VALUES))
        for number, head, value in about:
            page = pages.get(head, NO_FEATURES)
            alike = _alike(graph, value, page)
            if len({plain_value(each) or shown_literal(each, graph.prefixes) for each in alike}) == 1:
                tails[number] = alike[0]
            elif alike:
                shown = " or ".join(shown_literal(literal, graph.prefixes) for literal in alike[:3])
                unclear[number] = f"several values have this text. Write the one that is meant in full: {shown}."
            elif len(page.features) < page.total.value:
                unchecked[number] = (
                    f"it cannot be checked: the head has more than {MAX_VALUES:,} values of this feature."
                )
    return tails, unclear, unchecked


def _alike(graph: KGAdapter, value: Value, page: FeaturePage) -> Sequence[Literal]:
    """Return the values that may be meant, only one if it is exactly what was written."""
    values = [feature.value for feature in page.features]
    if value.quoted:
        meant = value.literal
        same_kind = [each for each in values if _kind(each) == _kind(meant)]
        if exact := [each for each in same_kind if each.value == meant.value]:
            return exact[:1]
        bare = value.datatype is None and value.language is None
        alike = [each for each in (values if bare else same_kind) if _shows_as(each.value, value)]
    else:
        # Those that are written like this come before all others.
        alike = [each for each in values if plain_value(each) == value.text] or [
            each for each in values if may_mean(value.text, each) or _shows_as(each.value, value)
        ]
    # Answers leave out the language that is expected: where others have the same text, it is meant.
    return [each for each in alike if _kind(each)[1] in graph.vocabulary.languages[:1]] or alike


def _kind(literal: Literal) -> tuple[Iri, str]:
    return literal.datatype, (literal.language or "").lower()


def _shows_as(value: str, meant: Value) -> bool:
    """Return whether a value is written like this: cut as results show long ones, or with blanks for line breaks."""
    line = " ".join(value.split())
    for text in (meant.text, meant.written):
        if text.endswith("…") and len(text) > _MIN_CUT and any(each.startswith(text[:-1]) for each in (value, line)):
            return True
        if text in {value, line}:
            return True
    return False


async def _reasons(graph: KGAdapter, missing: Sequence[Stated], described: Mapping[Node, Description]) -> Sequence[str]:
    """Return why each triple is refused that the graph does not have, a full sentence that names what there is."""
    if not missing:
        return ()
    unknown = [await _unknown(graph, each, described) for each in missing]
    known = [each for each, reason in zip(missing, unknown, strict=True) if reason is None]
    turned = [_turned(each.fact) for each in known]
    reversed_ones = await graph.contains(frozenset(each for each in turned if each is not None))
    tails = await _tails(graph, known)
    bare = list(dict.fromkeys(each.head.node for each in known if not tails[each.head.node, each.relation_iri]))
    degrees: Mapping[Node, Degree] = await graph.degrees(bare, direction="out") if bare else {}
    relations = {node: _most_frequent(degree) for node, degree in degrees.items()}
    unsure = {node for node, degree in degrees.items() if not degree.relations and not degree.is_none}
    shown: list[Node] = [mention.node for each in known for mention in each.mentions]
    shown += [tail for found in tails.values() for tail in found if not isinstance(tail, Literal)]
    shown += [relation for found in relations.values() for relation in found[:SHOWN_RELATIONS]]
    names = await names_of(graph, shown)

    def reason(stated: Stated, backwards: Triple | None) -> str:
        if backwards is not None and backwards in reversed_ones:
            return f"the graph has it only the other way round, {names.fact(backwards)}. Swap head and tail."
        found = tails[stated.head.node, stated.relation_iri]
        rest = "Not all of its relations are known" if stated.head.node in unsure else "It is the head of no triple"
        return _instead(stated, found, relations.get(stated.head.node, ()), names, rest)

    told = iter([reason(each, backwards) for each, backwards in zip(known, turned, strict=True)])
    return [next(told) if each is None else each for each in unknown]


def _instead(stated: Stated, tails: Sequence[Term], relations: Sequence[Iri], names: Names, rest: str) -> str:
    """Return what the graph has in place of a triple: other tails, or else other relations, or the rest."""
    head, relation = names.entity(stated.head.node), names.relation(stated.relation_iri)
    if tails:
        shown = ", ".join(names.term(tail, marks=",") for tail in tails[:SHOWN_TAILS])
        others = " and others" if len(tails) > SHOWN_TAILS else ""
        return f"the graph does not have it. There, {head} has {relation} {shown}{others}."
    has = ", ".join(names.relation(each, ",") for each in relations[:SHOWN_RELATIONS])
    more = len(relations) - SHOWN_RELATIONS
    rest = f"It has {has}{f' and {more} more' if more > 0 else ''}" if has else rest
    return f"the graph does not have it. There, {head} has no {relation}. {rest}; Feature lists its values."


async def _unknown(graph: KGAdapter, stated: Stated, described: Mapping[Node, Description]) -> str | None:
    """Return which part of a triple the graph does not know, or None if it knows them all."""

    def serves_as(node: Node, role: Role) -> bool:
        return node in described and role in described[node].roles

    for mention in (stated.head, stated.tail):
        if mention is not None and not serves_as(mention.node, "entity"):
            return str(await unknown_entity(graph, mention.node, graph.prefixes.shorten(mention.node)))
    if not serves_as(stated.relation.node, "relation"):
        short = graph.prefixes.shorten(stated.relation.node, "relation")
        try:
            await relation_of(graph, short, around=[stated.head.node])
        except KGError as error:
            return str(error)
    return None


async def _tails(graph: KGAdapter, known: Sequence[Stated]) -> Mapping[tuple[Node, Iri], Sequence[Term]]:
    """Return some of what each head has over its relation: entities, or else values."""
    nodes = tuple(dict.fromkeys(each.head.node for each in known))
    relations = frozenset(each.relation_iri for each in known)
    if not nodes:
        return {}
    most = SHOWN_TAILS + 1
    request = NeighborRequest(
        nodes, "out", relations, limit=2 * most * len(relations), limit_per_relation=most, values=True
    )
    entities: defaultdict[tuple[Node, Iri], list[Term]] = defaultdict(list)
    values: defaultdict[tuple[Node, Iri], list[Term]] = defaultdict(list)
    for page in (await graph.neighbors(request)).values():
        for fact in page.facts:
            (values if isinstance(fact, Attribute) else entities)[fact.head, fact.relation].append(fact.tail)
    edges = [(each.head.node, each.relation_iri) for each in known]
    return {edge: entities[edge] or values[edge] for edge in edges}


def _most_frequent(degree: Degree) -> Sequence[Iri]:
    return [each.relation for each in sorted(degree.relations, key=lambda each: (-each.count.value, each.relation))]


def _turned(fact: Fact) -> Triple | None:
    return Triple(fact.tail, fact.relation, fact.head) if isinstance(fact, Triple) else None
