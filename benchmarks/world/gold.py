"""What an answer must hold: the statements of the graph that a question's query rests on."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyoxigraph as ox
from rdflib import BNode, Literal, URIRef
from rdflib.paths import AlternativePath, InvPath, MulPath, Path, SequencePath
from rdflib.term import Variable

from benchmarks.world.graph import NAMING, End, World, end_of
from benchmarks.world.patterns import Pattern, read_patterns
from benchmarks.world.questions import ABSENT, NO_SUCH_ENTITY, Asked, full_iri, short_id

_Walk: TypeAlias = tuple[End, tuple[ox.Triple, ...]]

_ENTITY: Final = re.compile(r"http://world\.example/E\d+")
# What a query for something absent compares labels with.
_QUOTED: Final = re.compile(r'(?:REGEX\([^,]*, | = )"([^"]+)"')
_FORM: Final = re.compile(r"\b(?:SELECT|ASK)\b.*?(?=\{)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Gold:
    """The entities that a question is about, and the statements that answer it.

    Args:
        topics: Short ids.
        facts: Without repetition, in the order of the query.
    """

    topics: tuple[str, ...]
    facts: tuple[ox.Triple, ...]


def gold_of(world: World, asked: Asked) -> Gold:
    """Return what a question's query rests on: its patterns, filled with the solutions that give the answers."""
    patterns, compared = read_patterns(asked.sparql)
    # What is compared answers together with what loses.
    answers = set[str]() if compared else {full_iri(answer) for answer in asked.answer_ids}
    facts: dict[ox.Triple, None] = {}
    ends = (end for pattern in patterns for end in (pattern.head, pattern.tail))
    topics = {short_id(str(end)) for end in (*ends, *compared) if _names_entity(end)}
    described = _described(patterns)
    for solution in world.solutions(_every_variable(asked.sparql)):
        if answers and "x" in solution and _text(solution["x"]) not in answers:
            continue
        topics.update(short_id(_text(solution[name])) for name in described)
        for pattern in patterns:
            facts.update(dict.fromkeys(_filled(world, pattern, solution)))
    return Gold(tuple(sorted(topics)), tuple(fact for fact in facts if fact.predicate not in NAMING))


def completed(world: World, asked: Asked) -> Asked:
    """Return a question that the graph cannot answer with what its query looks for in vain, as the question says it."""
    if asked.wanted or asked.kind not in ABSENT:
        return asked
    (quoted,) = _QUOTED.findall(asked.sparql)
    if asked.kind == NO_SUCH_ENTITY:
        start = asked.question.lower().index(quoted)
        return asked.model_copy(update={"wanted": asked.question[start : start + len(quoted)]})
    name = max((name for name in world.bearers if name in asked.question), key=len)
    topic = min(world.bearers[name])
    return asked.model_copy(update={"wanted": quoted.partition("|")[0], "topic": topic})


def _every_variable(sparql: str) -> str:
    """Return the query that shows every variable of a pattern, without order or limit."""
    form = _FORM.search(sparql)
    assert form is not None, sparql
    return f"{sparql[: form.start()]}SELECT * WHERE {sparql[form.end() : sparql.rindex('}') + 1]}"


def _described(patterns: Sequence[Pattern]) -> set[str]:
    """Return the variables that stand for what a question calls by name and describes."""
    named = {str(each.head) for each in patterns if isinstance(each.tail, Literal) and isinstance(each.head, Variable)}
    tails = {str(each.tail) for each in patterns if isinstance(each.tail, Variable)}
    return named - tails


def _filled(world: World, pattern: Pattern, solution: Mapping[str, End]) -> Iterator[ox.Triple]:
    """Yield the statements that a pattern stands for in one solution; none where an end is not bound."""
    head, tail = _bound(pattern.head, solution), _bound(pattern.tail, solution)
    relation = pattern.relation
    if isinstance(relation, Variable):
        bound = solution.get(str(relation))
        relation = None if bound is None else URIRef(_text(bound))
    if head is None or tail is None or not isinstance(relation, Path | URIRef):
        return
    for end, walked in _walks(world, head, relation):
        if end == tail:
            yield from walked


def _walks(world: World, start: End, path: object) -> Iterator[_Walk]:
    """Yield each end that a property path leads to, with the statements on the way."""
    match path:
        case URIRef():
            for triple in world.outgoing(start, ox.NamedNode(str(path))):
                yield end_of(triple.object), (triple,)
        case InvPath():
            for triple in world.incoming(start, ox.NamedNode(str(path.arg))):
                yield end_of(triple.subject), (triple,)
        case AlternativePath():
            for way in path.args:
                yield from _walks(world, start, way)
        case SequencePath():
            first, *rest = path.args
            yield from _onwards(world, _walks(world, start, first), SequencePath(*rest) if len(rest) > 1 else rest[0])
        case MulPath():
            walks = list(_walks(world, start, path.path))
            yield from walks
            yield from _onwards(world, walks, path)
        case _:
            raise TypeError(f"{path!r} is no property path of these questions")


def _onwards(world: World, walks: Iterable[_Walk], path: object) -> Iterator[_Walk]:
    """Yield the walks that go on from the ends of others."""
    for middle, walked in walks:
        yield from ((end, walked + further) for end, further in _walks(world, middle, path))


def _bound(end: object, solution: Mapping[str, End]) -> End | None:
    match end:
        case Variable() | BNode():
            return solution.get(str(end))
        case URIRef():
            return ox.NamedNode(str(end))
        case Literal():
            if end.language:
                return ox.Literal(str(end), language=end.language)
            return ox.Literal(str(end), datatype=ox.NamedNode(str(end.datatype)) if end.datatype else None)
        case _:
            raise TypeError(f"{end!r} is no term of these questions")


def _text(term: End) -> str:
    return term.value


def _names_entity(end: object) -> bool:
    return isinstance(end, URIRef) and _ENTITY.fullmatch(str(end)) is not None
