"""Find the entities that a question names."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from kg_agents.evidence.ledger import Resolve
from kg_agents.evidence.values import EntityMatch, NameMatch, are_one, plain_value
from kg_agents.llm.dialogue import Dialogue, FailedReply, RunEnded, Task, Unreadable, whole
from kg_agents.tools.client import ToolError, ToolRefusal
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_boundary.shown import in_quotes
from kg_prompts.oda import LinkingPrompt, MentionsPrompt

MAX_WORDS: Final = 40

_WORD: Final = re.compile(r"[^\W_]+(?:['.\u2019-][^\W_]+)*\.?|&", re.UNICODE)
_POSSESSIVE: Final = re.compile(r"['\u2019]s?$")
_QUOTED: Final = re.compile('[\u201c"]([^\u201c\u201d"\n]{2,200})[\u201d"]')
_ARTICLES: Final = frozenset(("a", "an", "the"))
_INSIDE_NAMES: Final = frozenset(("of", "the", "de", "von", "van", "la"))
_SMALL: Final = frozenset(
    "a about all an and any are as at be been born by can did do does find for from give had has have he her his how i "  # noqa: SIM905 - a list of words reads best as words
    "in into is it its list many me much name of off on or she show so tell than that the their them then there they "
    "this through to under up was were what when where which who whom whose why will with you your".split()
)


@dataclass(frozen=True, slots=True)
class QuestionParts:
    """A question in words."""

    question: str
    words: Sequence[re.Match[str]]

    @classmethod
    def of(cls, question: str) -> Self:
        """Return the first words of a question."""
        return cls(question, list(_WORD.finditer(question))[:MAX_WORDS])

    def names_of(self, length: int, taken: Collection[range]) -> Mapping[str, range]:
        """Return what may be names of so many words, with the places of these, where none of them is taken."""
        spans = (range(first, first + length) for first in range(len(self.words) - length + 1))
        free = (span for span in spans if not any(overlap(span, each) for each in taken))
        return {self._text(span): span for span in free if self._may_be_name(span)}

    @property
    def has_capitals(self) -> bool:
        """Whether names are written as such."""
        return any(map(self._is_capital, range(len(self.words))))

    def unknown_names(self, known: Collection[range]) -> Mapping[str, range]:
        """Return the names that are written as such, in quotes or with capitals, and are not known as a whole."""
        return {
            self._text(span): span
            for span in (*self._quoted(), *self._capitals())
            if not any(each.start <= span.start and span.stop <= each.stop for each in known)
        }

    def _quoted(self) -> list[range]:
        found: list[range] = []
        for quoted in _QUOTED.finditer(self.question):
            places = [place for place, word in enumerate(self.words) if quoted.start() < word.start() < quoted.end()]
            found += [range(places[0], places[-1] + 1)] if places else []
        return found

    def _capitals(self) -> list[range]:
        """Return the longest parts of words with capitals, joined by what stands inside names."""
        found: list[range] = []
        place = 0
        while place < len(self.words):
            end = place
            for at in range(place, len(self.words)):
                if at > place and not self._joined(at):
                    break
                if self._is_capital(at):
                    end = at + 1
                elif at == place or self.words[at][0].lower() not in _INSIDE_NAMES:
                    break
            found += [range(place, end)] if end > place else []
            place = max(end, place + 1)
        return found

    def _joined(self, place: int) -> bool:
        """Return whether nothing but a blank stands before a word, and no possessive."""
        before, word = self.words[place - 1], self.words[place]
        return not self.question[before.end() : word.start()].strip() and not _POSSESSIVE.search(before[0])

    def _is_capital(self, place: int) -> bool:
        word = self.words[place][0]
        return place > 0 and word[0].isupper() and not self._is_small(place)

    def _text(self, span: range) -> str:
        end = self.words[span[-1]].end()
        text = _POSSESSIVE.sub("", self.question[self.words[span[0]].start() : end].rstrip("."))
        return f"{text})" if text.count("(") > text.count(")") and self.question[end : end + 1] == ")" else text

    def _may_be_name(self, span: range) -> bool:
        """Return whether a part of a question may be a name: neither its first nor its last word is a small one."""
        begins = span[0] + 1 if len(span) > 1 and self.words[span[0]][0].lower() in _ARTICLES else span[0]
        return not any(self._is_small(place) for place in (begins, span[-1]))

    def _is_small(self, place: int) -> bool:
        """Return whether no name begins or ends with a word; one with a capital in a question may be part of a name."""
        word = self.words[place][0]
        return word.lower() in _SMALL and (place == 0 or word[0].islower())


def overlap(one: range, other: range) -> bool:
    """Return whether two parts of a question share a word."""
    return one.start < other.stop and other.start < one.stop


def other_forms(name: str) -> list[str]:
    """Return a name without what may be too much in it: an article, quotes, what is in brackets, a possessive."""
    plain = " ".join(name.strip(" \t'\"\u201c\u201d").split())
    unbracketed = " ".join(re.sub(r"\([^()]*\)", " ", plain).split())
    led = re.sub(r"^(?:the|a|an)\s+", "", plain, flags=re.IGNORECASE)
    forms = (plain, unbracketed, led, _POSSESSIVE.sub("", plain))
    return [form for form in dict.fromkeys(forms) if form and form != name]


MAX_ENTITIES: Final = 5
LONGEST_NAME: Final = 8
"""How many words of a question are tried as one name."""

_REPLY_TOKENS: Final = 200
_AS_IT_IS: Final = ("label ", "id ")
"""How a candidate matched whose name or id the text is."""
_SHOWN: Final = 3
_MOST_RESOLVED: Final = 50
_TELLING: Final = 3
"""How many relations, those most like the question, tell candidates apart."""
_TOLD_APART: Final = 20
"""How many candidates are compared, in one call."""


@dataclass(frozen=True, slots=True)
class LinkedPart:
    """A part of a question, and the entity that it is taken for."""

    mention: str
    entity: EntityMatch

    def __str__(self) -> str:
        return f"{in_quotes(self.mention)} is {self.entity.named}"

    @property
    def is_corrected(self) -> bool:
        """Whether the mention is neither its label nor its id: an alias, a misspelling or what is merely near."""
        return not self.entity.matched.startswith(_AS_IT_IS)


@dataclass(frozen=True, slots=True)
class Linking:
    """The entities that a question is about, and why what else was named stands for none."""

    linked: tuple[LinkedPart, ...] = ()
    passed_over: tuple[str, ...] = ()

    @property
    def read(self) -> str:
        """Sentences on what was read as something else; nothing where every mention is a label or an id."""
        corrected = (each for each in self.linked if each.is_corrected)
        return " ".join(f"Read {in_quotes(each.mention)} as {each.entity.named}." for each in corrected)


def resolver(graph: KnowledgeGraph) -> Resolve:
    """Return what finds the entities that answers name; nothing where the server or the time does not allow it."""

    async def resolve(texts: Sequence[str]) -> Sequence[NameMatch]:
        try:
            return await graph.identify(texts[:_MOST_RESOLVED], limit=_SHOWN)
        except (ToolError, RunEnded):
            # An answer in other words than those shown then counts as what it is: unproven.
            return ()

    return resolve


async def link_given(graph: KnowledgeGraph, texts: Sequence[str]) -> Linking:
    """Return the entities that ids, IRIs or names stand for, by the short ids that the tools show, each once.

    What stands for nothing, or for several things, is passed over and said.

    Args:
        graph: The graph.
        texts: What was given.

    Raises:
        ToolError: The server does not answer.
    """
    found: dict[str, LinkedPart] = {}
    passed_over: list[str] = []
    for named in await graph.identify([text.strip() for text in texts], limit=_SHOWN):
        if named.is_one:
            for each in named.meant:
                found.setdefault(each.id, LinkedPart(named.text, each))
        else:
            passed_over.append(_refusal(named))
    return Linking(tuple(found.values()), tuple(passed_over))


async def link_by_names(graph: KnowledgeGraph, question: str) -> Linking:
    """Return the entities that parts of a question name, exactly or misspelt, the longest parts first tried.

    Names with a capital letter in them are what a question is about; where there are none, other names count. Who
    shares a name is found under it. A name inside a longer one that the graph does not have is not taken.
    """
    parts = QuestionParts.of(question)
    found: list[tuple[range, LinkedPart]] = []
    for length in range(min(LONGEST_NAME, len(parts.words)), 0, -1):
        spans = parts.names_of(length, [taken for taken, _ in found])
        for named in await graph.identify(list(spans), limit=_SHOWN):
            if named.meant and not any(overlap(spans[named.text], taken) for taken, _ in found):
                found += [(spans[named.text], LinkedPart(named.text, entity)) for entity in named.meant]
    unknown = parts.unknown_names([taken for taken, _ in found])
    sure = [each for taken, each in found if not any(overlap(taken, name) for name in unknown.values())]
    names = [each for each in sure if _is_proper(each, parts)]
    return Linking(tuple((names or ([] if unknown else sure))[:MAX_ENTITIES]), tuple(map(_unknown, unknown)))


async def link_by_model(graph: KnowledgeGraph, question: str, talk: Dialogue) -> Linking:
    """Return the entities that a model finds named in a question; by names alone where its reply cannot be read.

    A name that the graph does not have is looked up again in other forms.

    Raises:
        RunEnded: The model fails.
    """
    prompt = MentionsPrompt(question=question, most=MAX_ENTITIES)
    try:
        mentions = await talk.ask(Task("mentions", whole(prompt, "the question"), _REPLY_TOKENS, 0.0), _mentions)
    except FailedReply:
        return await link_by_names(graph, question)
    looked_up = await graph.identify(mentions)
    named = [each if each.meant else await _otherwise(graph, each) for each in looked_up]
    sure, unsure = _by_verdict(named)
    if unsure:
        sure += await _chosen(question, await _told_apart(graph, question, unsure), talk)
    found = {each.entity.id: each for each in sure}
    linked = tuple(found.values())[:MAX_ENTITIES]
    taken = {each.mention for each in linked}
    passed_over = tuple(_refusal(each) for each in named if each.text not in taken)
    return Linking(linked, passed_over) if linked or unsure else await link_by_names(graph, question)


def _by_verdict(named: Sequence[NameMatch]) -> tuple[list[LinkedPart], list[LinkedPart]]:
    """Return what one entity alone bears the name of, and what may be meant besides.

    Namesakes may be; where nothing else is sure, so may what is near a name. What has no label of its own never is.
    """
    labelled = {each.text: [of for of in each.candidates if of.is_labelled] for each in named}
    certain = [each for each in named if each.meant and are_one(labelled[each.text])]
    sure = [LinkedPart(each.text, entity) for each in certain for entity in labelled[each.text]]
    several = [each for each in named if each.meant and labelled[each.text] and each not in certain]
    unsure = [each for each in named if each in several or not (each.meant or sure)]
    return sure, [LinkedPart(each.text, entity) for each in unsure for entity in labelled[each.text]]


async def _told_apart(graph: KnowledgeGraph, question: str, unsure: Sequence[LinkedPart]) -> Sequence[LinkedPart]:
    """Return candidates with what the question's words point to: the relation most like it over which they differ."""
    ids = tuple(dict.fromkeys(each.entity.id for each in unsure))[:_TOLD_APART]
    if len(ids) < 2:
        return unsure
    try:
        seen = await graph.observe(question, ids, hops=1)
    except ToolRefusal:
        # Another server may not have this tool; its candidates have a fact already.
        return unsure
    ends: dict[tuple[str, bool], dict[str, tuple[str, ...]]] = {}
    for group in sorted(seen.groups, key=lambda group: -group.score):
        if group.entity in ids and group.far:
            ends.setdefault((group.relation, group.incoming), {})[group.entity] = group.far[:_SHOWN]
    found = [each for each in ends.items() if len({each[1].get(entity) for entity in ids}) > 1][:_TELLING]

    def told(linked: LinkedPart) -> LinkedPart:
        facts: list[str] = []
        for (relation, incoming), of in found:
            name = f"{'-' if incoming else ''}{seen.labels.relations.get(relation, relation)}"
            far = ", ".join(seen.labels.nodes.get(each, plain_value(each)) for each in of.get(linked.entity.id, ()))
            facts += [f"{name}: {far}"] if far else []
        return replace(linked, entity=replace(linked.entity, fact="; ".join(facts) or linked.entity.fact))

    return list(map(told, unsure))


async def _chosen(question: str, unsure: Sequence[LinkedPart], talk: Dialogue) -> list[LinkedPart]:
    """Have the model choose among entities by what tells them apart; all namesakes where its reply cannot be read.

    Raises:
        RunEnded: The model fails.
    """
    lines = (f"{number}. {each.entity.described}" for number, each in enumerate(unsure, start=1))
    prompt = LinkingPrompt(question=question, candidates="\n".join(lines))
    task = Task("linking", whole(prompt, "the question and the candidates"), _REPLY_TOKENS, 0.0)
    try:
        numbers = await talk.ask(task, lambda reply: _numbers(reply, len(unsure)))
    except FailedReply:
        return [each for each in unsure if each.entity.label.casefold() == each.mention.casefold()]
    return [unsure[number - 1] for number in numbers]


def _numbers(reply: str, most: int) -> tuple[int, ...] | Unreadable:
    numbers = [int(each) for each in re.findall(r"\d{1,3}", reply)]
    if wrong := [each for each in numbers if not 1 <= each <= most]:
        return Unreadable(f"there is no candidate {wrong[0]}. Write numbers from 1 to {most}, or none.")
    if not numbers and not re.search(r"\bnone\b", reply, re.IGNORECASE):
        return Unreadable("it holds no number. Write the numbers of candidates, or none.")
    return tuple(dict.fromkeys(numbers))


async def _otherwise(graph: KnowledgeGraph, named: NameMatch) -> NameMatch:
    """Return what a name stands for in another form, or the name as it was found where none helps."""
    forms = other_forms(named.text)
    tried = await graph.identify(forms)
    return next((replace(each, text=named.text) for each in tried if each.meant), named)


def _is_proper(linked: LinkedPart, parts: QuestionParts) -> bool:
    """Return whether a name is written as one, there and here; in a question without capitals it need not be here."""
    here = not parts.has_capitals or linked.mention.lower() != linked.mention
    return here and linked.entity.label.lower() != linked.entity.label


def _unknown(name: str) -> str:
    return f"Nothing in the graph is named {in_quotes(name)}."


def _refusal(named: NameMatch) -> str:
    """Return why a text stands for no single entity."""
    shown = "; ".join(each.named for each in named.candidates)
    asked = in_quotes(named.text)
    if named.meant:
        return f"{asked} names several things: {shown}. Give the id of the one that is meant."
    return f"Nothing in the graph is named {asked}.{f' Near, not the same: {shown}.' if shown else ''}"


def _mentions(reply: str) -> list[str] | Unreadable:
    lines = [re.sub(r"^\s*(?:[-*]\s+|\d+[.)]\s+)", "", line).strip(" \t'\"*`") for line in reply.splitlines()]
    names = [line for line in dict.fromkeys(lines) if line and len(line) <= 200]
    return names[:MAX_ENTITIES] or Unreadable("it holds no name. Write one name on each line.")
