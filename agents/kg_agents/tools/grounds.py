"""Where each answer comes from: the results that it cites, others that show it, or the model alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg_agents.answers import Answer
from kg_agents.graph_values import Labels, Triple
from kg_agents.grounding import concluded, folded, other_sides, shown, terms_named
from kg_agents.support import named_in, sources
from kg_agents.tools.final import FinalAnswer
from kg_agents.tools.readings import Reading

_TRUTH: Final[Mapping[str, str]] = {"yes": "true", "no": "false", "true": "true", "false": "false"}
_BESIDE: Final = 5
"""How many facts about what the question names are given of a result that is cited and does not name the answer."""


@dataclass(frozen=True, slots=True)
class _Known:
    """All that results state, and what of it the question is about.

    Args:
        question: The question, with the labels of what it names in another way.
        labels: What ids are called.
        facts: The facts.
        starts: What the question names, by id.
    """

    question: str
    labels: Labels
    facts: Sequence[Triple]
    starts: frozenset[str]


def answers_of(final: FinalAnswer, readings: Mapping[int, Reading], question: str) -> tuple[Answer, ...]:
    """Return what a model answers, each with where it comes from.

    Args:
        final: What it answers.
        readings: What the results state, by their numbers.
        question: The question, which names what it is about.
    """
    every = list(readings.values())
    known = _known(question, every)
    lists = listing(final, readings)
    written = [(shown(each, known.labels), [listed]) for listed in lists for each in listed.listed]
    for each in final.answers:
        cited = [readings[number] for number in dict.fromkeys(each.results) if number in readings]
        written += ((each.text, cited),)
    found = (_cited(text, cited, known) or _uncited(text, every, known) for text, cited in written)
    return tuple({each.text: each for each in found}.values())


def _known(question: str, every: Sequence[Reading]) -> _Known:
    labels = labels_of(every)
    words = folded(question)
    read = {entity for each in every for name, entity in each.named.items() if folded(name) in words}
    topic = "\n".join((question, *(labels.nodes.get(each, each) for each in sorted(read))))
    facts = [fact for reading in every for fact in reading.read.facts]
    return _Known(topic, labels, facts, named_in(topic, facts, labels))


def listing(final: FinalAnswer, readings: Mapping[int, Reading]) -> Sequence[Reading]:
    """Return what the results state whose whole lists are the answers."""
    return [readings[number] for number in dict.fromkeys(final.all_of) if number in readings]


def labels_of(readings: Iterable[Reading]) -> Labels:
    """Return what ids are called in all results."""
    labels = Labels()
    for each in readings:
        labels = labels.merged(each.labels)
    return labels


def _cited(text: str, cited: Sequence[Reading], known: _Known) -> Answer | None:
    """Return an answer that the cited results state, or that follows from them."""
    found = _shown(text, cited, known)
    if found is None:
        return _follows(text, cited)
    if found.source == "computed":
        return found
    # A comparison rests on both sides, and names one.
    others = [reading for reading in cited if _shown(text, [reading], known) is None]
    beside = (fact for reading in others for fact in _about(reading, known))
    sides = other_sides(found.facts, terms_named(text, found.facts, known.labels), known.starts, known.facts)
    return replace(found, facts=tuple(dict.fromkeys((*found.facts, *beside, *sides))))


def _uncited(text: str, every: Sequence[Reading], known: _Known) -> Answer:
    """Return an answer that any result states; a yes or no is none, for it may be the value of anything."""
    found = None if text.strip(" .").casefold() in _TRUTH else _shown(text, every, known)
    return found or Answer(shown(text, known.labels), "model")


def _shown(text: str, readings: Sequence[Reading], known: _Known) -> Answer | None:
    """Return an answer that results state, or that was worked out for them."""
    truth = _TRUTH.get(text.strip(" .").casefold(), text)
    reads = [reading.read for reading in readings]
    found = sources([truth], known.question, reads, known.labels, confirmed=False)[0]
    if found.source == "model":
        return None
    return found if truth == text else replace(found, text=text)


def _follows(text: str, cited: Sequence[Reading]) -> Answer | None:
    """Return a number, or a yes or no, that a model works out from facts, or a no to what the graph denies."""
    denied = next((reading for reading in cited if reading.denied), None)
    if denied is not None and _TRUTH.get(text.strip(" .").casefold()) == "false":
        return Answer(text, "computed", (), (f"{denied.said}: denied by the graph",))
    return concluded(text, [fact for reading in cited for fact in reading.read.facts])


def _about(reading: Reading, known: _Known) -> Sequence[Triple]:
    """Return a few facts of a result about what the question names."""
    facts = reading.read.facts
    return [fact for fact in facts if fact[0] in known.starts or fact[2] in known.starts][:_BESIDE]
