"""Schema: the graph's definition, as an answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, TypeAlias

from rapidfuzz import fuzz

from kg_adapters.answer_cache import AnswerCache, Question, one
from kg_adapters.errors import InvalidRequest
from kg_adapters.models import ClassSummary, Count, FeatureSummary, GraphSchema, RelationSummary
from kg_adapters.prefixes import USUAL, Position
from kg_adapters.profile import ClassProfile, GraphProfile
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import in_quotes, shown
from kg_server.answers.intermediates import opened, without_label
from kg_server.answers.results import Answer, Line, Over, Piece, SchemaResult, Status, fitted, fitting, terms_of_lines
from kg_server.concurrency import off_loop
from kg_server.names import MAX_LABEL, Names, names_of
from kg_server.naming.meaning import Meaning, near_classes, near_relations
from kg_server.naming.refusals import is_word
from kg_server.schema import (
    MOST_IN_A_LINE,
    Definition,
    ProfileFacts,
    class_lines,
    class_summary,
    facts_of,
    kinds_of_facts,
    limits_of,
    named,
    terms_of_profile,
)

SHARES: Final = {"classes": 0.25, "relations": 0.55, "features": 0.12}


@dataclass(frozen=True, slots=True)
class Part:
    """The classes, relations and features that are shown."""

    classes: Sequence[ClassSummary]
    relations: Sequence[RelationSummary]
    features: Sequence[FeatureSummary]

    @property
    def size(self) -> int:
        """How many these are."""
        return len(self.classes) + len(self.relations) + len(self.features)


def foremost(part: Part, max_tokens: int) -> Part:
    """Return what may fit at all, so that no more names are looked up than can be shown."""
    most = max(1, max_tokens // 5)
    return Part(part.classes[:most], part.relations[:most], part.features[:most])


def lines_of_part(part: Part) -> Mapping[str, Sequence[Line]]:
    """Return a line for every class, relation and feature, by kind."""
    return {
        "features": [_line("feature", Over(each.iri), each.statements, each.example) for each in part.features],
        "classes": [_line("class", each.iri, each.instances, each.example) for each in part.classes],
        "relations": [
            _line("relation", Over(each.iri), each.triples, *((one.head, " -> ", one.tail) if one else ()))
            for each, one in ((each, each.example) for each in part.relations)
        ],
    }


def fitting_part(part: Part, lines: Mapping[str, Sequence[str]], max_tokens: int) -> tuple[Part, list[str]]:
    """Return what fits into a budget, and its lines."""
    counts = {kind: fitting(of, int(max_tokens * SHARES[kind])) for kind, of in lines.items()}
    shown = Part(
        part.classes[: counts["classes"]], part.relations[: counts["relations"]], part.features[: counts["features"]]
    )
    return shown, [line for kind, of in lines.items() for line in of[: counts[kind]]]


def _line(kind: str, what: Piece, count: Count, *example: Piece | None) -> Line:
    pieces = [piece for piece in example if piece is not None]
    return Line((f"{kind} | ", what, " | ", count, *((", e.g. ", *pieces) if pieces else ())), ())


def status_of(part: Part, shown: Part) -> Status:
    """Say whether everything is shown."""
    if part.size == 0:
        return "empty"
    return "ok" if shown.size >= part.size else "truncated"


def sizes_of(part: Part, schema: GraphSchema, *, listed_only: bool = False) -> str:
    """Return how many classes, relations and features these are, in words; `listed_only` leaves out what is not."""
    parts = (
        (len(part.classes), "class", "classes"),
        (len(part.relations), "relation", "relations"),
        (len(part.features), "feature", "features"),
    )
    counted = ((size, one, many) for size, one, many in parts if size or not listed_only)
    return ", ".join(Count(size, exact=schema.complete).of(one, many) for size, one, many in counted)


SchemaSeen: TypeAlias = tuple[GraphSchema, GraphProfile, Answer]
SchemaCache: TypeAlias = AnswerCache[Question, SchemaSeen]
LIKENESS = 90
SHORTEST_PART = 3
MOST_ALIKE = 20
TOKENS_A_CLASS = 10
PREFIX_SHARE = 0.25
PREFIX_TOKENS = 300
MOST_TOLD = 200
"""How many facts a line tells where there is room for all."""


async def schema_view(
    graph: KGAdapter, meaning: Meaning, cache: SchemaCache, *, about: str | None, max_tokens: int
) -> Answer:
    """Answer Schema: the whole definition, the profile of the class that a text names, or what is like the text."""
    schema, profile = await graph.schema(), await graph.profile()

    async def ask() -> SchemaSeen:
        return schema, profile, await _view(graph, meaning, schema, profile, about, max_tokens)

    # What is cached holds both, so that no other schema or profile can have the same id.
    return (await one(cache, (id(schema), id(profile), about, max_tokens), ask))[-1]


async def _view(
    graph: KGAdapter, meaning: Meaning, schema: GraphSchema, profile: GraphProfile, about: str | None, max_tokens: int
) -> Answer:
    if about is None:
        facts = await off_loop(lambda: ProfileFacts.of(profile, graph.vocabulary))
        whole = Part(schema.classes, schema.relations, schema.features)
        if facts.classes:
            return await _by_class(graph, schema, profile, facts, max_tokens)
        return await _listed(graph, schema, whole, None, kinds_of_facts(profile) + limits_of(profile), max_tokens)
    node = _read(graph, about, "entity")
    if node is not None:
        owner = profile.profile_of(node)
    else:
        owner = await off_loop(lambda: named(profile.classes, about))
    if owner is not None and not _is_relation(schema, about):
        return await _of_class(graph, schema, owner, limits_of(profile), max_tokens)
    part = await _about(schema, about, graph)
    if part.size == 0 and (near := await _near(meaning, schema, about)).size:
        return _unnamed(await _listed(graph, schema, near, about, "", max_tokens), in_quotes(about, MAX_LABEL))
    return await _listed(graph, schema, part, about, "", max_tokens)


def _is_relation(schema: GraphSchema, about: str) -> bool:
    """Say whether a text is the label of a relation or feature too, beside a class of that name."""
    wanted = about.casefold().strip()
    labels = (*(each.label for each in schema.relations), *(each.label for each in schema.features))
    return any(label is not None and label.casefold() == wanted for label in labels)


async def _listed(
    graph: KGAdapter, schema: GraphSchema, part: Part, about: str | None, kinds: str, max_tokens: int
) -> Answer:
    """Return an answer with a line for every class, relation and feature."""
    told = lines_of_part(foremost(part, max_tokens))
    lines = list(chain.from_iterable(told.values()))
    names = await names_of(graph, terms_of_lines(lines))
    names = (await opened(graph, without_label(lines, names), names, lambda _, __: False, always=True)).names
    written = await off_loop(lambda: {kind: [line.shown(names, MAX_LABEL) for line in of] for kind, of in told.items()})

    def build(tokens: int) -> Answer:
        prefixes = _prefixes(schema, int(tokens * PREFIX_SHARE)) if about is None else {}
        shown, lines = fitting_part(part, written, tokens)
        summary = _summary(graph.name, schema, about, part, shown)
        result = _result(schema, shown, f"{summary} {kinds}".rstrip(), names, status_of(part, shown), prefixes)
        return Answer(result, (*([_prefix_line(prefixes, schema)] if prefixes else []), *lines))

    return await off_loop(lambda: fitted(build, max_tokens, max_tokens))


async def _by_class(
    graph: KGAdapter, schema: GraphSchema, profile: GraphProfile, facts: ProfileFacts, max_tokens: int
) -> Answer:
    """Return an answer with a line for every class, and one for every relation that several have."""
    foremost = facts.classes[: max(1, max_tokens // TOKENS_A_CLASS)]

    def shown() -> dict[Node, None]:
        outside = [each.relation for each in facts.outside[:MOST_IN_A_LINE]]
        return dict.fromkeys(
            (*(term for each in foremost for term in terms_of_profile(each, graph.vocabulary)), *outside)
        )

    names = await names_of(graph, await off_loop(shown))

    def fit() -> Answer:
        if len(foremost) == len(facts.classes):
            answer = _definition(graph, schema, profile, facts, names, MOST_TOLD)(len(foremost))
            if answer.tokens <= max_tokens:
                return answer
        return fitted(_definition(graph, schema, profile, facts, names, MOST_IN_A_LINE), len(foremost), max_tokens)

    return await off_loop(fit)


def _definition(
    graph: KGAdapter,
    schema: GraphSchema,
    profile: GraphProfile,
    facts: ProfileFacts,
    names: Names,
    most: int,
) -> Callable[[int], Answer]:
    """Return what makes an answer that tells of so many classes, with so many facts a line."""
    every, whole = len(facts.classes), Part(schema.classes, schema.relations, schema.features)
    total = Count(max(every, len(schema.classes)), exact=schema.complete)
    size = f"Graph {in_quotes(graph.name)}: {_extent(schema)}, "
    size = f"{size}{sizes_of(whole, schema)}. {kinds_of_facts(profile)}".rstrip() + limits_of(profile)

    def build(shown: int) -> Answer:
        here = facts.classes[:shown]
        told = Definition.of(profile, facts, here, names, most)
        extent = "" if shown >= every else f" The largest classes are here, {shown} of {total}."
        prefixes = _prefixes(schema, PREFIX_TOKENS)
        own = {prefix: name for prefix, name in prefixes.items() if prefix not in USUAL}
        part = _part_of(schema, [replace(each, properties=tuple(told.facts_of(each))) for each in here], graph)
        status: Status = "ok" if shown >= every else "truncated"
        result = _result(schema, part, f"{size}{extent} {told.legend()}", names, status, prefixes)
        return Answer(result, (_prefix_line(own, schema), *told.lines(here)))

    return build


async def _of_class(graph: KGAdapter, schema: GraphSchema, owner: ClassProfile, limits: str, max_tokens: int) -> Answer:
    """Return an answer with all that is known of one class."""
    names = await names_of(graph, terms_of_profile(owner, graph.vocabulary))
    lines = await off_loop(lambda: class_lines(owner, graph.vocabulary, names))

    def build(shown: int) -> Answer:
        here = facts_of(owner, graph.vocabulary)[:shown]
        cut = "" if shown >= len(lines) else f" The first {shown} of {len(lines)} relations and features are here."
        part = _part_of(schema, [replace(owner, properties=tuple(here))], graph)
        status: Status = "ok" if shown >= len(lines) else "truncated"
        result = _result(schema, part, f"{class_summary(owner, names)}{limits}{cut}", names, status, {})
        return Answer(result, tuple(lines[:shown]))

    return await off_loop(lambda: fitted(build, len(lines), max_tokens))


def _part_of(schema: GraphSchema, classes: Sequence[ClassProfile], graph: KGAdapter) -> Part:
    """Return those of a graph's classes, relations and features that are shown with some classes."""
    owners = {each.iri for each in classes}
    over = {fact.relation for each in classes for fact in facts_of(each, graph.vocabulary)}
    return Part(
        [each for each in schema.classes if each.iri in owners],
        [each for each in schema.relations if each.iri in over],
        [each for each in schema.features if each.iri in over],
    )


def _result(
    schema: GraphSchema, shown: Part, summary: str, names: Names, status: Status, prefixes: dict[str, str]
) -> SchemaResult:
    return SchemaResult(
        status=status,
        summary=summary,
        entities=schema.entities.value,
        triples=schema.triples.value,
        classes={names.entity_id(each.iri): each.instances.value for each in shown.classes},
        relations={names.relation_id(each.iri): each.triples.value for each in shown.relations},
        features={names.relation_id(each.iri): each.statements.value for each in shown.features},
        labels=_labels(shown, names),
        prefixes=prefixes,
    )


async def _about(schema: GraphSchema, about: str, graph: KGAdapter) -> Part:
    """Return the classes that are called like a text, and the relations and features that are like it."""
    wanted = about.casefold().strip()
    meant = {_read(graph, about, "entity"), _read(graph, about, "relation")}
    meant |= {each.relation for each in await graph.find_relations(about, limit=MOST_ALIKE)}

    def fits(iri: Node, label: str | None) -> bool:
        return iri in meant or any(_alike(wanted, name.casefold()) for name in _names(iri, label))

    def fitting() -> Part:
        return Part(
            [each for each in schema.classes if fits(each.iri, each.label)],
            [each for each in schema.relations if fits(each.iri, each.label)],
            [each for each in schema.features if fits(each.iri, each.label)],
        )

    return await off_loop(fitting)


async def _near(meaning: Meaning, schema: GraphSchema, about: str) -> Part:
    """Return the classes, relations and features that are near a text in meaning."""
    relations = {each.entity for each in await near_relations(meaning, schema, about)}
    classes = {each.entity for each in await near_classes(meaning, schema, about)}
    return Part(
        [each for each in schema.classes if each.iri in classes],
        [each for each in schema.relations if each.iri in relations],
        [each for each in schema.features if each.iri in relations],
    )


def _unnamed(answer: Answer, about: str) -> Answer:
    """Return an answer on what is near a text in meaning that says so."""
    summary = answer.result.summary.replace(
        f"Like {about}: ", f"No class or relation is called {about}. Nearest in meaning: ", 1
    )
    told = {"knowledge": "unnamed", "summary": summary}
    return replace(answer, result=answer.result.model_copy(update=told))


def _names(iri: Node, label: str | None) -> list[str]:
    """Return what people may call a class or relation: its label, and its local part where that is no mere number."""
    names = [] if label is None else [label]
    return [*names, iri.local_part] if label is None or is_word(iri.local_part) else names


def _alike(wanted: str, name: str) -> bool:
    """Say whether a text is a name but for a typo, begins a word of it, or holds it as a phrase."""
    begun = len(wanted) >= SHORTEST_PART and any(word.startswith(wanted) for word in name.split())
    return begun or f" {name} " in f" {wanted} " or fuzz.ratio(wanted, name) >= LIKENESS


def _read(graph: KGAdapter, text: str, position: Position) -> Node | None:
    try:
        return graph.prefixes.expand(text, position)
    except InvalidRequest:
        return None


def _prefixes(schema: GraphSchema, max_tokens: int) -> dict[str, str]:
    pairs = [(shown(prefix), shown(namespace)) for prefix, namespace in schema.prefixes.namespaces.items()]
    lines = [f"{prefix}: <{namespace}>, " for prefix, namespace in pairs]
    return dict(pairs[: fitting(lines, max_tokens)])


def _prefix_line(shown: Mapping[str, str], schema: GraphSchema) -> str:
    pairs = ", ".join(f"{prefix}: <{namespace}>" for prefix, namespace in shown.items())
    hidden = len(schema.prefixes.namespaces) - len(shown)
    return f"prefixes | {pairs}{f' and {hidden} more' if hidden else ''}"


def _labels(part: Part, names: Names) -> dict[str, str]:
    relations: list[Iri] = [each.iri for each in part.relations]
    relations.extend(each.iri for each in part.features)
    return names.entity_labels(each.iri for each in part.classes) | names.relation_labels(relations)


def _summary(name: str, schema: GraphSchema, about: str | None, part: Part, shown: Part) -> str:
    if about is not None:
        return _summary_about(in_quotes(about, MAX_LABEL), schema, part, shown)
    size = f"Graph {in_quotes(name)}: {_extent(schema)}, {sizes_of(part, schema)}"
    if shown.size >= part.size:
        return f"{size}; all {'that is known of it ' if not schema.complete else ''}here."
    return f"{size}; the most frequent here. Schema(about=…) finds others by label."


def _extent(schema: GraphSchema) -> str:
    return f"{schema.entities.of('entity', 'entities')}, {schema.triples.of('triple')}"


def _summary_about(about: str, schema: GraphSchema, part: Part, shown: Part) -> str:
    if part.size == 0:
        return f"No class or relation matches {about}. Schema() shows what there is."
    found = f"Like {about}: {sizes_of(part, schema, listed_only=True)}"
    return f"{found}; all here." if shown.size >= part.size else f"{found}; the most frequent here."
