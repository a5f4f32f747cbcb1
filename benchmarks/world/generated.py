"""More questions of some kinds, made from the graph by template: the same in every run."""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Final, TypeVar

import pyoxigraph as ox
from rapidfuzz import fuzz, process

from benchmarks.world import templates
from benchmarks.world.graph import World, end_of, named, prologue, str_of
from benchmarks.world.questions import (
    INVERSE,
    LITERAL,
    NO_SUCH_ENTITY,
    NO_SUCH_FACT,
    NO_VALUE,
    ONE_HOP,
    TWO_HOP,
    Asked,
    short_id,
)

_Value = TypeVar("_Value")

SEED: Final = 12
PER_KIND: Final = 60
# A list is asked for only where it fits a sentence.
_MOST_ANSWERS: Final = 5
# A made-up name is as far from every name as this share of letters, so that nothing here is a misspelling of it.
_MOST_ALIKE: Final = 80.0
_SYLLABLES: Final = re.compile(r"[^aeiouyáéíóúýäöüěů]*[aeiouyáéíóúýäöüěů]+(?:[^aeiouyáéíóúýäöüěů]*$)?")


def generated(world: World, per_kind: int = PER_KIND) -> list[Asked]:
    """Return so many questions of each kind that templates are written for."""
    dice = random.Random(SEED)  # noqa: S311 - the same questions in every run are the point
    makers: Mapping[str, Callable[[], Iterator[Asked]]] = {
        LITERAL: partial(_outgoing, world, dice, LITERAL, templates.LITERALS),
        ONE_HOP: partial(_outgoing, world, dice, ONE_HOP, templates.ONE_HOPS),
        TWO_HOP: partial(_two_hops, world, dice),
        INVERSE: partial(_inverse, world, dice),
        NO_SUCH_FACT: partial(_not_known, world, dice),
        NO_VALUE: partial(_without, world, dice),
        NO_SUCH_ENTITY: partial(_made_up, world, dice),
    }
    return [
        asked.model_copy(update={"id": f"{kind}-{number}", "kind": kind})
        for kind, make in makers.items()
        for number, asked in zip(range(per_kind), make(), strict=False)
    ]


def _outgoing(world: World, dice: random.Random, kind: str, texts: Mapping[str, str]) -> Iterator[Asked]:
    heads = {relation: sorted({_subject(each) for each in world.over(relation)}) for relation in texts}
    for relation in _in_turn(dice, list(texts)):
        topic = dice.choice(heads[relation])
        if label := _only(world, topic):
            yield _asked(kind, texts[relation].format(label), topic, relation)


def _two_hops(world: World, dice: random.Random) -> Iterator[Asked]:
    heads = {
        pair: sorted({_subject(each) for each in world.over(pair[0]) if any(_over(world, each, pair[1]))})
        for pair in templates.TWO_HOPS
    }
    for pair in _in_turn(dice, [pair for pair in heads if heads[pair]]):
        topic = dice.choice(heads[pair])
        if label := _only(world, topic):
            yield _asked(TWO_HOP, templates.TWO_HOPS[pair].format(label), topic, "/".join(pair))


def _inverse(world: World, dice: random.Random) -> Iterator[Asked]:
    tails = {relation: sorted({_object(each) for each in world.over(relation)}) for relation in templates.INVERSES}
    for relation in _in_turn(dice, list(tails)):
        topic = dice.choice(tails[relation])
        label = _only(world, topic)
        if label and len(list(world.incoming(named(topic), named(relation)))) <= _MOST_ANSWERS:
            yield _asked(INVERSE, templates.INVERSES[relation].format(label), topic, f"^{relation}")


def _not_known(world: World, dice: random.Random) -> Iterator[Asked]:
    heads = {kind: world.instances(kind) for kind in templates.NOT_KNOWN}
    for kind in _in_turn(dice, list(heads)):
        topic, word = dice.choice(heads[kind]), dice.choice(templates.NOT_KNOWN[kind])
        if label := _only(world, topic):
            question = templates.NOT_KNOWN_PUT.format(wanted=word, name=label)
            yield Asked(id="", kind="", question=question, topic=topic, wanted=word)


def _without(world: World, dice: random.Random) -> Iterator[Asked]:
    heads: dict[tuple[str, str], list[str]] = {}
    for kind, relation in templates.VALUES_MISSING:
        stated = {_subject(each) for each in world.over(relation)}
        if inverse := world.inverses.get(named(relation).value):
            stated |= {_object(each) for each in world.over(short_id(inverse))}
        heads[kind, relation] = [each for each in world.instances(kind) if each not in stated]
    for pair in _in_turn(dice, list(heads)):
        topic = dice.choice(heads[pair])
        label, word = _only(world, topic), world.label(pair[1])
        if label and word:
            question = templates.VALUES_MISSING[pair].format(label)
            yield Asked(id="", kind="", question=question, topic=topic, wanted=word)


def _made_up(world: World, dice: random.Random) -> Iterator[Asked]:
    names = sorted(world.bearers)
    labels = {
        kind: [label for each in world.instances(kind) if (label := world.label(each))] for kind in templates.NO_ENTITY
    }
    towns = [name for name in labels["w:K54"] if " " not in name]
    for kind in _in_turn(dice, list(labels)):
        words = dice.choice(labels[kind]).split()
        place = max(range(len(words)), key=lambda at: len(words[at]))
        words[place] = _new_word(dice, towns)
        name = " ".join(words)
        nearest = process.extractOne(name, names, scorer=fuzz.ratio)
        if nearest[1] <= _MOST_ALIKE:
            yield Asked(id="", kind="", question=templates.NO_ENTITY[kind].format(name), wanted=name)


def _new_word(dice: random.Random, towns: Sequence[str]) -> str:
    """Return a word that sounds like a town's name, of the beginning of one and the end of another."""
    first, second = (_SYLLABLES.findall(dice.choice(towns).lower()) for _ in range(2))
    return "".join((*first[: max(1, len(first) - 1)], *second[-2:])).capitalize()


def _in_turn(dice: random.Random, values: Sequence[_Value]) -> Iterator[_Value]:
    """Yield the values in turn, in an order that is drawn for each round, for ever."""
    for _ in count():
        yield from dice.sample(values, len(values))


def _only(world: World, topic: str) -> str | None:
    """Return the label of an entity that no other one bears."""
    label = world.label(topic)
    return label if label and world.bearers[label] == {topic} else None


def _asked(kind: str, question: str, topic: str, path: str) -> Asked:
    sparql = f"{prologue()} SELECT DISTINCT ?x WHERE {{ {topic} {path} ?x }}"
    return Asked(id="", kind=kind, question=question, sparql=sparql)


def _over(world: World, triple: ox.Triple, relation: str) -> Iterator[ox.Triple]:
    return world.outgoing(end_of(triple.object), named(relation))


def _subject(triple: ox.Triple) -> str:
    return short_id(str_of(triple.subject))


def _object(triple: ox.Triple) -> str:
    return short_id(str_of(triple.object))
