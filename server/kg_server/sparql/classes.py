"""Classes in a query: one by name is taken with its subclasses, over the relations that type the things of the graph.

An id stays plain SPARQL. Where the two differ, the answer gives both numbers.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Final

from kg_adapters.errors import InvalidRequest
from kg_adapters.labels import RDF_TYPE, Vocabulary
from kg_adapters.profile import ClassProfile
from kg_adapters.protocol import KGAdapter, known_profile
from kg_adapters.terms import Iri
from kg_boundary.shown import counted, in_quotes
from kg_server.names import MAX_LABEL, names_of
from kg_server.naming.refusals import MisreadExpression
from kg_server.sparql.outline import outline_of
from kg_server.sparql.syntax import Edits, Outline, Span, Statement, either

_TAKES_IN: Final = "A class by name takes in its subclasses, and an instance of two of them would count twice here."


@dataclass(frozen=True)
class ClassStatements:
    """Writes the statements of a query that something is an instance of a class by name.

    Args:
        query: The query.
        outline: Its structure.
        vocabulary: The relations that type the things of the graph.
        named: The classes that such statements name, by the statement.
        narrow: The classes that stand for themselves alone, or are known to have all their instances directly.
    """

    query: str
    outline: Outline
    vocabulary: Vocabulary
    named: Mapping[Statement, Sequence[Iri]]
    narrow: frozenset[Iri]

    def check(self) -> None:
        """Refuse a class with subclasses where an instance could only be counted once for each of its classes.

        Raises:
            MisreadExpression: The subject is no variable and no id, or the query has no groups.
        """
        for each in self.named:
            if each.verb not in self._wide or self.outline.in_condition(each.subject[0]):
                continue
            at = self.outline.tokens[each.tail[0]].at
            if self.outline.is_short_construct:
                raise MisreadExpression(self.query, at, f"{_TAKES_IN} Write CONSTRUCT {{ … }} WHERE {{ … }}.")
            if not self._has_plain_subject(each):
                raise MisreadExpression(self.query, at, f"{_TAKES_IN} Write a variable in place of the brackets.")

    def put_paths(self, edits: Edits) -> None:
        """Put paths over the typing relations in place of the verbs; an instance of two subclasses matches twice."""
        for each in self.named:
            if each.verb not in self._shared:
                below = f"/{_path(self.vocabulary.subclasses)}*" if each.verb in self._wide else ""
                edits.instead[each.verb[0]] = f"{_path(self.vocabulary.types)}{below}"

    @cached_property
    def once(self) -> tuple[Statement, ...]:
        """The statements that a path would match too often, or that share their verb with an id."""
        return tuple(
            each
            for each in self.named
            if each.verb in self._shared or (each.verb in self._wide and not self.outline.in_condition(each.subject[0]))
        )

    @cached_property
    def _wide(self) -> frozenset[Span]:
        """The verbs of statements with classes that may have instances over subclasses."""
        return frozenset(each.verb for each, iris in self.named.items() if not self.narrow.issuperset(iris))

    @cached_property
    def _shared(self) -> frozenset[Span]:
        """Those verbs that have other objects too, which are no classes by name."""
        return self._wide & {each.verb for each in self.outline.statements if each not in self.named}

    def count_once(self, edits: Edits) -> None:
        """Put groups in place of those statements, in which an instance counts once."""
        bound: set[tuple[int, str]] = set()
        replaced = {(each.subject[0], each.tail[0]) for each in self.once}
        edits.parts = [each for each in edits.parts if each not in replaced]
        for subject in dict.fromkeys(each.subject for each in self.once):
            self._put([each for each in self.outline.statements if each.subject == subject], bound, edits)

    def _put(self, about: Sequence[Statement], bound: set[tuple[int, str]], edits: Edits) -> None:
        """Replace statements about one subject."""
        chosen = [each for each in about if each in self.once]
        first, _ = about[0].subject
        subject = edits.instead.get(first, self.outline.tokens[first].text)
        written = [self._written(each, subject, bound) for each in chosen]
        for verb in dict.fromkeys(each.verb for each in chosen):
            self._leave_out(verb, [each for each in about if each.verb == verb], edits)
        edits.instead[first] = " ".join((*written, *([subject] if len(chosen) < len(about) else ())))

    def _leave_out(self, verb: Span, about: Sequence[Statement], edits: Edits) -> None:
        """Leave out of a list of objects those classes; the verb and what ends the list too where none remains."""
        kept = [self.outline.text(each.tail, edits.texts(self.outline)) for each in about if each not in self.once]
        end = about[-1].tail[1]
        if kept:
            edits.drop((verb[1], end))
            edits.instead[verb[1]] = ", ".join(kept)
            return
        while end < len(self.outline.tokens) and self.outline.tokens[end].text == ";":
            end += 1
        edits.drop((verb[0], end))

    def _written(self, statement: Statement, subject: str, bound: set[tuple[int, str]]) -> str:
        kind, owner = self._unused("kind"), self._unused("class")
        iris = self.named[statement]
        listed = f"VALUES {owner} {{ {' '.join(f'<{iri}>' for iri in iris)} }} " if len(iris) > 1 else ""
        target = owner if len(iris) > 1 else f"<{iris[0]}>"
        types, below = _path(self.vocabulary.types), _path(self.vocabulary.subclasses)
        pattern = f"{{ {listed}{subject} {types} {kind} . {kind} {below}* {target} }}"
        place = self._group(statement), subject
        if subject.startswith(("?", "$")) and place not in bound and not self._bound_otherwise(statement):
            bound.add(place)
            return f"{{ SELECT DISTINCT {subject} {pattern} }}"
        return f"FILTER EXISTS {pattern}"

    def _has_plain_subject(self, statement: Statement) -> bool:
        """Say whether the subject of a statement is a variable or an id, and no bracket or blank node."""
        first, end = statement.subject
        return end - first == 1 and self.outline.tokens[first].kind in {"variable", "name", "iri", "prefixed"}

    def _bound_otherwise(self, statement: Statement) -> bool:
        """Say whether another statement of the same group gives a value to the subject."""
        variable, group = self.outline.tokens[statement.subject[0]].text[1:], self._group(statement)
        others = (each for each in self.outline.statements if each not in self.named and self._group(each) == group)
        return any(variable in self.outline.variables((each.subject[0], each.tail[1])) for each in others)

    def _group(self, statement: Statement) -> int:
        return next(self.outline.openings(statement.subject[0]), -1)

    def _unused(self, word: str) -> str:
        return next(name for number in count(1) if (name := f"?{word}{number}") not in self.query)


def _path(relations: Sequence[Iri]) -> str:
    return either([f"<{relation}>" for relation in relations])


async def instances_in(
    query: str,
    outline: Outline,
    graph: KGAdapter,
    classes: Mapping[int, Sequence[Iri]],
    verbs: Collection[int],
    by_id: Collection[Iri],
) -> ClassStatements:
    """Return the statements of a query with classes by name.

    Args:
        query: The query.
        outline: Its structure.
        graph: The graph that it asks.
        classes: What the names of classes stand for, by their tokens.
        verbs: The tokens of names that stand for typing relations.
        by_id: The classes whose names hold their ids, which stand for themselves alone.
    """
    named = {each: classes[each.tail[0]] for each in typed_by(outline, graph, verbs) if each.tail[0] in classes}
    if not named:
        return ClassStatements(query, outline, graph.vocabulary, named, frozenset())
    profile = await known_profile(graph)
    found = {each: profile.profile_of(each) for iris in named.values() for each in iris}
    narrow = {iri for iri, known in found.items() if iri in by_id or (known is not None and is_narrow(known))}
    return ClassStatements(query, outline, await _typing(graph), named, frozenset(narrow))


async def _typing(graph: KGAdapter) -> Vocabulary:
    """Return the vocabulary of a graph with those relations that type its things; a remote one is not asked."""
    vocabulary = graph.vocabulary.written_with(graph.prefixes)
    if graph.remote:
        return vocabulary
    used = {iri for iri, each in (await graph.describe(vocabulary.unwalked)).items() if "relation" in each.roles}
    types, subclasses = (
        tuple(each for each in relations if each in used) or relations
        for relations in (vocabulary.types, vocabulary.subclasses)
    )
    return replace(vocabulary, types=types, subclasses=subclasses)


def is_narrow(known: ClassProfile) -> bool:
    """Say whether a class has all its instances directly."""
    return known.instances == known.direct and not known.at_least


def typed_by(outline: Outline, graph: KGAdapter, verbs: Collection[int] = ()) -> Iterator[Statement]:
    """Yield the statements that give a class over one typing relation alone: its id, `a`, or one of some tokens."""
    types = {RDF_TYPE, *graph.vocabulary.types}
    for each in outline.statements:
        (first, end), (tail, behind) = each.verb, each.tail
        token = outline.tokens[first]
        if end - first == 1 == behind - tail and (
            token.text == "a" or first in verbs or outline.iri(token, graph.prefixes) in types
        ):
            yield each


async def with_subclasses(graph: KGAdapter, instances: ClassStatements, names: Mapping[int, str]) -> Sequence[str]:
    """Return for each class by name that has subclasses how many instances it has with them, and how many itself.

    Args:
        graph: The graph.
        instances: The statements that name the classes.
        names: The names, by their tokens.
    """
    wide = {each: iris for each, iris in instances.named.items() if not instances.narrow.issuperset(iris)}
    if not wide:
        return ()
    profile = await known_profile(graph)
    notes: list[str] = []
    for each, iris in wide.items():
        known = profile.profile_of(iris[0]) if len(iris) == 1 else None
        numbers = "" if known is None else f": {_instances(known)}, {known.direct:,} of it directly"
        notes.append(f"{in_quotes(names[each.tail[0]], MAX_LABEL)} takes in its subclasses{numbers}.")
    return list(dict.fromkeys(notes))


async def without_subclasses(graph: KGAdapter, query: str) -> str:
    """Return `alone` for the classes that a query gives by their ids."""
    try:
        outline = outline_of(query)
    except InvalidRequest:
        # The guard has read it, so this is a text of a kind that is not looked into here.
        return ""
    tails = (outline.iri(outline.tokens[each.tail[0]], graph.prefixes) for each in typed_by(outline, graph))
    return await alone(graph, filter(None, tails), "by its id")


async def alone(graph: KGAdapter, classes: Iterable[Iri], why: str) -> str:
    """Return for each class that stands for itself how many instances it has with its subclasses, if that is more.

    Args:
        graph: The graph.
        classes: The classes.
        why: Why each stands for itself.
    """
    asked = dict.fromkeys(classes)
    if not asked:
        return ""
    profile = await known_profile(graph)
    wide = {iri: known for iri in asked if (known := profile.profile_of(iri)) is not None and not is_narrow(known)}
    names = await names_of(graph, wide)
    return " ".join(
        f"{names.entity(iri)}, {why}, is that class alone ({known.direct:,} of it); with its subclasses there are "
        f"{_instances(known)}, as its name behind a type would mean."
        for iri, known in wide.items()
    )


def _instances(known: ClassProfile) -> str:
    return f"{'at least ' if known.at_least else ''}{counted(known.instances, 'instance')}"
