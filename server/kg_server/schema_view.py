"""Schema: the graph's definition, as an answer."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import Final, Self, TypeAlias
from typing import Literal as Choice

from rapidfuzz import fuzz

from kg_adapters.answer_cache import AnswerCache, Question, one
from kg_adapters.models import Count, GraphSchema
from kg_adapters.prefixes import USUAL
from kg_adapters.profile import MAX_CLASSES, ClassProfile, GraphProfile
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import in_quotes, shown
from kg_server.answers.columns import by_class, owners_of
from kg_server.answers.coverage import folded
from kg_server.answers.intermediates import opened, without_label
from kg_server.answers.results import Answer, Line, Over, Piece, SchemaResult, fitted, fitting, terms_of_lines
from kg_server.concurrency import off_loop
from kg_server.names import MAX_LABEL, Names, names_of, terms_of
from kg_server.naming.entities import how_read, identify
from kg_server.naming.labelled import with_ids
from kg_server.naming.meaning import Meaning, near_classes, near_relations
from kg_server.naming.refusals import id_of, is_word
from kg_server.naming.relations import preferred_relations, relation_behind_label, relation_of, without_unused
from kg_server.naming.valued import MOST_NAMED, ValueText, read_as_value, said_of_value
from kg_server.notes import MARK, Notes
from kg_server.ontology import Declared, class_count
from kg_server.ontology_view import OntologyView
from kg_server.schema import (
    LEGEND,
    MOST_IN_A_LINE,
    WHOLE,
    Definition,
    ProfileFacts,
    class_lines,
    class_summary,
    describes_the_graph,
    facts_of,
    kinds_of_facts,
    limits_of,
    named,
    terms_of_profile,
)

Kind: TypeAlias = Choice["feature", "class", "relation"]
MOST_ANSWERS: Final = 20
"""How many answers about one state of a graph are cached."""
LIKENESS = 90
SHORTEST_PART = 3
MOST_ALIKE = 20
TOKENS_A_CLASS = 10
TOKENS_A_CLASS_WITH_FACTS = 40
TOKENS_A_LINE = 5
DRAWN_TOKENS: Final = 10_000
"""An answer that may be so long is drawn, not read."""
MOST_DRAWN: Final = 150
"""How many links, those of most triples, such an answer has where not all have room."""
PREFIX_SHARE = 0.25
PREFIX_TOKENS = 300
NOTES_SHARE = 0.25
"""The part of an answer that notes may take."""
MOST_TOLD = 200
"""How many facts a line tells where there is room for all."""
_PLURALS: Final[Mapping[Kind, str]] = {"class": "classes", "relation": "relations", "feature": "features"}


@dataclass(frozen=True, slots=True)
class SchemaSeen:
    """The definition and profile of one state of a graph, and what was computed from them.

    Args:
        schema: The definition.
        profile: The profile.
        answers: Answers by their text and budget.
        classes: Classes with each relation and its inverse counted as one, which takes a query for each such pair.
    """

    schema: GraphSchema
    profile: GraphProfile
    answers: AnswerCache[Question, Answer] = field(default_factory=lambda: AnswerCache(MOST_ANSWERS, math.inf))
    classes: AnswerCache[Question, ClassProfile] = field(default_factory=lambda: AnswerCache(MAX_CLASSES, math.inf))


SchemaCache: TypeAlias = AnswerCache[Question, SchemaSeen]


@dataclass(frozen=True, slots=True)
class SchemaEntry:
    """A class, relation or feature, how often it occurs, in which of several classes, and an example."""

    kind: Kind
    iri: Node
    label: str | None
    count: Count
    example: tuple[Piece, ...]
    owners: tuple[Piece, ...] = ()

    @property
    def line(self) -> Line:
        """The line that shows it."""
        what = Over(self.iri) if self.kind != "class" and isinstance(self.iri, Iri) else self.iri
        example = (", e.g. ", *self.example) if self.example else ()
        owners = (": ", *self.owners) if self.owners else ()
        return Line((f"{self.kind} | ", what, " | ", self.count, *owners, *example))

    def with_owners(self, profile: GraphProfile) -> Self:
        """Return the entry with how often the instances of each class have it, where several have."""
        if self.kind == "class" or not isinstance(self.iri, Iri):
            return self
        owners, whole = owners_of(profile, self.iri), profile.everything.property(self.iri)
        if whole is None or any(each.looked_at is not None for each in owners):
            return self
        counts = {each.iri: Count(known.facts) for each in owners if (known := each.property(self.iri)) and each.iri}
        overlap = sum(count.value for count in counts.values()) > whole.facts
        return replace(self, owners=by_class(counts, overlap=overlap)) if counts else self


def entries_of(schema: GraphSchema) -> list[SchemaEntry]:
    """Return all that a definition lists, by kind, of each the most frequent first."""
    return [
        *(_entry("feature", each.iri, each.label, each.statements, each.example) for each in schema.features),
        *(_entry("class", each.iri, each.label, each.instances, each.example) for each in schema.classes),
        *(
            _entry(
                "relation",
                each.iri,
                each.label,
                each.triples,
                *((shows.head, " -> ", shows.tail) if (shows := each.example) else ()),
            )
            for each in schema.relations
        ),
    ]


def _entry(kind: Kind, iri: Node, label: str | None, count: Count, *example: Piece | None) -> SchemaEntry:
    return SchemaEntry(kind, iri, label, count, tuple(piece for piece in example if piece is not None))


def sizes_of(entries: Iterable[SchemaEntry], schema: GraphSchema, *, listed_only: bool = False) -> str:
    """Return how many classes, relations and features these are, in words; `listed_only` leaves out what is not."""
    sizes = Counter(each.kind for each in entries)
    return ", ".join(
        Count(sizes[kind], exact=schema.complete).of(kind, many)
        for kind, many in _PLURALS.items()
        if sizes[kind] or not listed_only
    )


async def schema_view(
    graph: KGAdapter,
    meaning: Meaning,
    cache: SchemaCache,
    *,
    about: str | None,
    max_tokens: int,
    notes: Notes | None = None,
) -> Answer:
    """Answer Schema: the whole definition, the profile of the class that a text names, or what is like the text.

    What the notes say of it comes first.
    """
    about, read_as = (None, "") if about is None else await _without_label(graph, about)
    notes = None if notes is None else await without_unused(graph, notes)
    for_notes = 0 if notes is None else notes.tokens(int(max_tokens * NOTES_SHARE))
    answer = await _without_notes(graph, meaning, cache, about, max_tokens - for_notes)
    if read_as:
        summary = f"{read_as} {answer.result.summary}"
        answer = replace(answer, result=answer.result.model_copy(update={"summary": summary}))
    if notes is None or not for_notes:
        return answer
    assert isinstance(answer.result, SchemaResult)  # noqa: S101 - Schema has no other
    found = answer.result
    names = (*found.classes, *found.relations, *found.features, *found.labels.values())
    lines = await off_loop(lambda: notes.fitting(about, names, for_notes))
    result = found.model_copy(update={"notes": [line.removeprefix(MARK) for line in lines]})
    return replace(answer, result=result, lines=(*lines, *answer.lines))


async def _without_label(graph: KGAdapter, text: str) -> tuple[str, str]:
    """Return the id alone of a text that has one behind a label, and what to say of the label; else the text."""
    if not with_ids(text):
        return text, ""
    (found,) = await identify(graph, [text])
    if found.named and found.named[0].matched_by == "id":
        return graph.prefixes.shorten(found.nodes[0]), await how_read(graph, found)
    if await relation_behind_label(graph, text) is None:
        return text, ""
    chosen = await relation_of(graph, text)
    names = await names_of(graph, chosen.relations)
    return names.relation_id(chosen.relation), chosen.said(names).strip()


async def _without_notes(
    graph: KGAdapter, meaning: Meaning, cache: SchemaCache, about: str | None, max_tokens: int
) -> Answer:
    schema, profile = await graph.schema(), await graph.profile()

    async def first_seen() -> SchemaSeen:
        return SchemaSeen(schema, profile)

    # What is cached holds both, so that no other schema or profile can have the same id.
    seen = await one(cache, (id(schema), id(profile)), first_seen)
    view = _View(graph, meaning, schema, profile, seen.classes, max_tokens)
    if about is None:
        return await one(seen.answers, (about, max_tokens), view.whole)
    preferred = await preferred_relations(graph, about)
    return await one(seen.answers, (about, max_tokens, preferred), lambda: view.about(about, preferred))


@dataclass(frozen=True, slots=True)
class _View:
    """One look at a definition."""

    graph: KGAdapter
    meaning: Meaning
    schema: GraphSchema
    profile: GraphProfile
    classes: AnswerCache[Question, ClassProfile]
    max_tokens: int

    @property
    def declared(self) -> Declared:
        """What the definition counts of an ontology."""
        return Declared.of(self.schema)

    async def whole(self) -> Answer:
        """Return the answer by class, with a line for every class and for every relation that several have."""
        graph = self.graph
        if self.declared.is_ontology:
            view = await OntologyView.of(graph, self.schema, self.max_tokens)
            return await (view.whole() if self.declared.classes else view.whole(await self._facts(), LEGEND))
        every, most = self.profile.classes, max(1, self.max_tokens // TOKENS_A_CLASS_WITH_FACTS)
        counted = [await self._folded(each, 1 - WHOLE) for each in every[:most]]
        profile = replace(self.profile, classes=(*counted, *every[most:]))
        facts = await off_loop(lambda: ProfileFacts.of(profile, graph.vocabulary))
        if not facts.classes:
            size = f"Graph {in_quotes(graph.name)}: {_extent(self.schema)}, "
            known = kinds_of_facts(profile) + limits_of(profile)
            return await self._listed(entries_of(self.schema), size, f"{known} {self.schema.note}".strip())
        foremost = facts.classes[: max(1, self.max_tokens // TOKENS_A_CLASS)]

        def terms() -> dict[Node, None]:
            known = (term for each in foremost for term in terms_of_profile(each, graph.vocabulary))
            return dict.fromkeys((*known, *(each.relation for each in facts.outside[:MOST_IN_A_LINE])))

        names = await names_of(graph, await off_loop(terms))
        ontology = await self._ontology()

        def fit() -> Answer:
            if len(foremost) == len(facts.classes):
                answer = self._definition(facts, names, MOST_TOLD, ontology)(len(foremost))
                if answer.tokens <= self.max_tokens:
                    return answer
            return fitted(self._definition(facts, names, MOST_IN_A_LINE, ontology), len(foremost), self.max_tokens)

        return await off_loop(lambda: self._with_links(fit(), foremost, names))

    def _with_links(self, answer: Answer, classes: Sequence[ClassProfile], names: Names) -> Answer:
        """Return an answer with what links its classes, most triples first, where there is room for it."""
        assert isinstance(answer.result, SchemaResult)  # noqa: S101 - built here
        ids = {each.iri: names.entity_id(each.iri) for each in classes if each.iri is not None}
        shown = {iri: each for iri, each in ids.items() if each in answer.result.classes}
        counted = [
            (edges, fact.relation, [shown[owner.iri], names.relation_id(fact.relation), shown[target]])
            for owner in classes
            for fact in facts_of(owner, self.graph.vocabulary)
            for target, edges in fact.targets
            if owner.iri in shown and fact.direction == "out" and target in shown
        ]
        counted.sort(key=lambda each: each[0], reverse=True)
        result = answer.result

        def linked(most: int) -> Answer:
            labels = result.labels | names.relation_labels([relation for _, relation, _ in counted[:most]])
            links = [link for *_, link in counted[:most]]
            return replace(answer, result=result.model_copy(update={"links": links, "labels": labels}))

        drawn = linked(len(counted))
        if drawn.tokens > self.max_tokens >= DRAWN_TOKENS:
            drawn = linked(MOST_DRAWN)
        return drawn if drawn.tokens <= self.max_tokens else answer

    async def about(self, text: str, preferred: Sequence[Iri]) -> Answer:
        """Return all of the class that a text names, or what is like the text, or else near in meaning.

        The relations that it means by the notes of the graph come first among what is like it.
        """
        node, profile = id_of(self.graph, text), self.profile
        if node is not None:
            owner = profile.profile_of(node)
        else:
            owner = await off_loop(lambda: named(profile.classes, text))
        nodes: Sequence[Node] = () if node is None else (node,)
        declared = self.declared
        if not self.graph.remote and (owner is None or declared.is_ontology):
            (identity,) = await identify(self.graph, [text])
            nodes = () if identity.is_part else identity.nodes
            owner = owner or next(filter(None, map(profile.profile_of, nodes)), None)
        # A definition that is not complete may have missed the classes that are declared.
        may_declare = declared.terms > 0 or not self.schema.complete
        if may_declare and (owner is None or declared.is_ontology):
            answer = await (await OntologyView.of(self.graph, self.schema, self.max_tokens, nodes)).about(text, nodes)
            if answer is not None:
                return answer
        every, quoted, wanted = entries_of(self.schema), in_quotes(text, MAX_LABEL), text.casefold().strip()
        is_relation = any(each.kind != "class" and (each.label or "").casefold() == wanted for each in every)
        if owner is not None and not is_relation:
            return await self._of_class(owner)
        meant = {node, id_of(self.graph, text, "relation"), *preferred}
        meant |= {each.relation for each in await self.graph.find_relations(text, limit=MOST_ALIKE)}
        like = await off_loop(lambda: [each for each in every if each.iri in meant or _is_like(wanted, each)])
        like.sort(key=lambda each: each.iri not in preferred)
        if like:
            return await self._listed([each.with_owners(profile) for each in like], f"Like {quoted}: ")
        (identity,) = await identify(self.graph, [text])
        if identity.uses:
            return await self._of_value(await read_as_value(self.graph, text, identity.uses))
        relations = {each.entity for each in await near_relations(self.meaning, self.schema, text)}
        classes = {each.entity for each in await near_classes(self.meaning, self.schema, text)}
        near = [each for each in every if each.iri in (classes if each.kind == "class" else relations)]
        if not near:
            summary = f"No class, relation or feature matches {quoted}. Schema() shows what there is."
            return Answer(self._result("empty", summary, [], Names(self.graph.prefixes, {})))
        answer = await self._listed(near, f"No class, relation or feature is called {quoted}. Nearest in meaning: ")
        return replace(answer, result=answer.result.model_copy(update={"knowledge": "unnamed"}))

    async def _of_value(self, value: ValueText) -> Answer:
        """Return an answer with the relations that have a text as value, their classes, and who has it."""
        shown = {term for each in value.readings for term in (each.owner, each.use.relation) if term is not None}
        entries = [each for each in entries_of(self.schema) if each.iri in shown]
        facts = [fact for each in value.readings for fact in each.facts[:MOST_NAMED]]
        names = await names_of(self.graph, (*shown, *terms_of(facts)))
        summary = f"No class, relation or feature is called so. {said_of_value(value)}"
        lines = [*(each.line.shown(names, MAX_LABEL) for each in entries), *map(names.fact, facts)]
        return Answer(self._result("ok", summary, entries, names), tuple(lines[: fitting(lines, self.max_tokens)]))

    async def _listed(self, entries: Sequence[SchemaEntry], size: str, kinds: str | None = None) -> Answer:
        """Return an answer with a line for every class, relation and feature; `kinds` is what a whole one adds."""
        foremost = _by_turns(entries)[: max(1, self.max_tokens // TOKENS_A_LINE)]
        lines = [each.line for each in foremost]
        names = await names_of(self.graph, terms_of_lines(lines))
        # What nodes hold is no part of a definition, and a slow endpoint takes long to find it.
        unnamed = () if self.schema.note else without_label(lines, names)
        names = await opened(self.graph, unnamed, names, lambda _, __: False, always=True)
        written = await off_loop(lambda: {each: each.line.shown(names, MAX_LABEL) for each in foremost})
        extent = f"{size}{sizes_of(entries, self.schema, listed_only=kinds is None)}"
        part = "that is known of it " if kinds is not None and not self.schema.complete else ""
        more = "" if kinds is None else " Schema(about=…) finds others by label."
        prefixes = {} if kinds is None else self._prefixes(int(self.max_tokens * PREFIX_SHARE))

        def build(most: int) -> Answer:
            chosen = set(foremost[:most])
            here = [each for each in entries if each in chosen]
            cut = len(here) < len(entries)
            summary = f"{extent}; the most frequent here.{more}" if cut else f"{extent}; all {part}here."
            result = self._result(
                "truncated" if cut else "ok", f"{summary} {kinds or ''}".rstrip(), here, names, prefixes
            )
            return Answer(result, (*self._prefix_lines(prefixes), *(written[each] for each in here)))

        return await off_loop(lambda: fitted(build, len(foremost), self.max_tokens))

    async def _folded(self, known: ClassProfile, off: float = 0.0) -> ClassProfile:
        return await one(self.classes, (known.iri, off), lambda: folded(self.graph, known, off=off))

    async def _facts(self) -> Sequence[str]:
        """Return the lines about what the instances of each class have."""
        profile, vocabulary = self.profile, self.graph.vocabulary
        facts = await off_loop(lambda: ProfileFacts.of(profile, vocabulary))
        here = facts.classes[:MOST_IN_A_LINE]
        terms = (term for each in here for term in terms_of_profile(each, vocabulary))
        names = await names_of(self.graph, (*terms, *(each.relation for each in facts.outside[:MOST_IN_A_LINE])))
        return await off_loop(lambda: [*Definition.of(profile, facts, here, names, MOST_IN_A_LINE).lines(here)])

    async def _ontology(self) -> str:
        """Return the line on the ontology that a graph of data has; nothing where it declares no classes."""
        if not self.declared.classes:
            return ""
        size = await class_count(self.graph, self.declared)
        return f"ontology | {size.of('class', 'classes')} declared"

    def _definition(self, facts: ProfileFacts, names: Names, most: int, ontology: str) -> Callable[[int], Answer]:
        """Return a function that builds an answer with a number of classes and of facts per line."""
        schema, profile, every = self.schema, self.profile, len(facts.classes)
        # What only describes the graph itself, such as owl:Ontology, has no line.
        counted = [each for each in entries_of(schema) if not (each.kind == "class" and describes_the_graph(each.iri))]
        total = Count(max(every, sum(each.kind == "class" for each in counted)), exact=schema.complete)
        size = f"Graph {in_quotes(self.graph.name)}: {_extent(schema)}, {sizes_of(counted, schema)}. "
        size = f"{size}{kinds_of_facts(profile)}".rstrip() + limits_of(profile)
        prefixes = self._prefixes(PREFIX_TOKENS)
        own = {prefix: name for prefix, name in prefixes.items() if prefix not in USUAL}

        def build(shown: int) -> Answer:
            here = facts.classes[:shown]
            told = Definition.of(profile, facts, here, names, most)
            is_cut = shown < every or not profile.complete
            extent = "" if not is_cut else f" The largest classes are here, {shown} of {total}."
            entries = self._entries_of([replace(each, properties=tuple(told.facts_of(each))) for each in here])
            summary = f"{size}{extent} {LEGEND}"
            result = self._result("truncated" if is_cut else "ok", summary, entries, names, prefixes)
            return Answer(result, (*self._prefix_lines(own), *told.lines(here), *((ontology,) if ontology else ())))

        return build

    async def _of_class(self, owner: ClassProfile) -> Answer:
        """Return an answer with all that is known of one class."""
        vocabulary, profile = self.graph.vocabulary, self.profile
        owner = await self._folded(owner)
        inverses = [profile.inverse_of(each.relation) for each in owner.properties]
        names = await names_of(self.graph, (*terms_of_profile(owner, vocabulary), *filter(None, inverses)))
        lines = await off_loop(lambda: class_lines(owner, profile, vocabulary, names))
        summary = f"{class_summary(owner, names)}{limits_of(self.profile)}"

        def build(shown: int) -> Answer:
            here = replace(owner, properties=tuple(facts_of(owner, vocabulary)[:shown]))
            is_cut = shown < len(lines)
            cut = f" The first {shown} of {len(lines)} relations and features are here." if is_cut else ""
            status: Choice["truncated", "ok"] = "truncated" if is_cut else "ok"
            result = self._result(status, f"{summary}{cut}", self._entries_of([here]), names)
            return Answer(result, tuple(lines[:shown]))

        return await off_loop(lambda: fitted(build, len(lines), self.max_tokens))

    def _entries_of(self, classes: Sequence[ClassProfile]) -> list[SchemaEntry]:
        """Return those of a graph's classes, relations and features that are shown with some classes."""
        shown: set[Node | None] = {each.iri for each in classes}
        shown |= {fact.relation for each in classes for fact in facts_of(each, self.graph.vocabulary)}
        return [each for each in entries_of(self.schema) if each.iri in shown]

    def _result(
        self,
        status: Choice["ok", "truncated", "empty"],
        summary: str,
        shown: Sequence[SchemaEntry],
        names: Names,
        prefixes: Mapping[str, str] | None = None,
    ) -> SchemaResult:
        classes = {each.iri: each.count.value for each in shown if each.kind == "class"}
        relations, features = (
            {each.iri: each.count.value for each in shown if each.kind == kind and isinstance(each.iri, Iri)}
            for kind in ("relation", "feature")
        )
        return SchemaResult(
            status=status,
            summary=summary,
            entities=self.schema.entities.value,
            triples=self.schema.triples.value,
            classes={names.entity_id(node): count for node, count in classes.items()},
            relations={names.relation_id(iri): count for iri, count in relations.items()},
            features={names.relation_id(iri): count for iri, count in features.items()},
            labels=names.entity_labels(classes) | names.relation_labels((*relations, *features)),
            prefixes=dict(prefixes or {}),
        )

    def _prefixes(self, max_tokens: int) -> dict[str, str]:
        pairs = [(shown(prefix), shown(namespace)) for prefix, namespace in self.schema.prefixes.namespaces.items()]
        return dict(pairs[: fitting((f"{prefix}: <{namespace}>, " for prefix, namespace in pairs), max_tokens)])

    def _prefix_lines(self, prefixes: Mapping[str, str]) -> Sequence[str]:
        if not prefixes:
            return ()
        pairs = ", ".join(f"{prefix}: <{namespace}>" for prefix, namespace in prefixes.items())
        hidden = len(self.schema.prefixes.namespaces) - len(prefixes)
        return (f"prefixes | {pairs}{f' and {hidden} more' if hidden else ''}",)


def _by_turns(entries: Sequence[SchemaEntry]) -> list[SchemaEntry]:
    """Return entries so that the first of every kind come before any second."""
    kinds = ([each for each in entries if each.kind == kind] for kind in _PLURALS)
    return [each for each in chain.from_iterable(zip_longest(*kinds)) if each is not None]


def _is_like(wanted: str, entry: SchemaEntry) -> bool:
    """Say whether a text is a name of an entry but for a typo, begins a word of it, or holds it as a phrase."""
    names = [] if entry.label is None else [entry.label]
    # A local part may be a mere number.
    if entry.label is None or is_word(entry.iri.local_part):
        names.append(entry.iri.local_part)
    return any(_is_alike(wanted, name.casefold()) for name in names)


def _is_alike(wanted: str, name: str) -> bool:
    begun = len(wanted) >= SHORTEST_PART and any(word.startswith(wanted) for word in name.split())
    return begun or f" {name} " in f" {wanted} " or fuzz.ratio(wanted, name) >= LIKENESS


def _extent(schema: GraphSchema) -> str:
    return f"{schema.entities.of('entity', 'entities')}, {schema.triples.of('triple')}"
