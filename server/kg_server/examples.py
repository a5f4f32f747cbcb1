"""Examples of how questions about a graph are answered: those of its notes, solved ones, and relations that may fit."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from typing import Annotated, Final, TypeAlias, TypeVar

from mcp.types import CallToolResult
from pydantic import Field

from kg_adapters.errors import KGError
from kg_adapters.profile import COMPARED, ClassProfile, GraphProfile, PropertyProfile
from kg_adapters.protocol import KGAdapter, known_profile
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import counted, shown_within, visible_line
from kg_server.answers.results import Answer, Result, fitted
from kg_server.concurrency import load, off_loop
from kg_server.graphs import GraphSet, OpenedGraph
from kg_server.mcp_server import SextantServer, reading
from kg_server.memory.experience import MAX_QUESTION, ExperienceStore, Solved
from kg_server.names import MAX_LABEL, in_graph, names_of
from kg_server.schema import end_of, facts_of, label_of, stated_classes

MAX_TOKENS: Final = 1_000
MOST_QUESTIONS: Final = 2
"""How many questions are shown."""
MOST_RELATIONS: Final = 5
"""How many relations are shown."""
_COMPARED: Final = 200
"""How many questions, those with the most words in common, and how many relations are compared by meaning."""
_SHOWN: Final = 3
"""How many answers and triples are shown of each question."""
SAME: Final = 0.9
"""From which share of common letters on two questions count as the same."""
_MORE_WORDS: Final = 3
"""How many words a question may have beside those of another and still be the same."""
_MISSPELT: Final = 2
"""How many words may be misspelt."""
_SPELLING: Final = 0.8
_LONG: Final = 60
_LETTERS: Final = 3
_WORD: Final = re.compile(r"\w+")
_OPENING: Final = "\"'“„«(["

T = TypeVar("T")
Asked: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION)]


class SolvedResult(Result):
    """Examples as rows: `[number, question, graph, call, answer, evidence or relation, text]`."""

    solved: list[list[str]]


class Likened:
    """A question in the form in which it is compared with others.

    Args:
        question: The question.
    """

    def __init__(self, question: str) -> None:
        plain = unicodedata.normalize("NFKD", question.casefold())
        words = _WORD.findall("".join(letter for letter in plain if not unicodedata.combining(letter)))
        text = f" {' '.join(words)} "
        self.words = Counter(words)
        self.letters = Counter(text[at : at + _LETTERS] for at in range(len(text) - _LETTERS + 1))

    def to(self, other: "Likened") -> float:
        """Return how like two questions are, from 0 to 1: half by words, half by letters."""
        return (_share(self.words, other.words) + _share(self.letters, other.letters)) / 2

    def is_same(self, other: "Likened") -> bool:
        """Say whether two questions are the same but for case, accents, order, a typing error or words around."""
        here, there = self.words - other.words, other.words - self.words
        around = not (here and there) and max(here.total(), there.total()) <= _MORE_WORDS
        return around or _misspelt(here, there) or _share(self.letters, other.letters) >= SAME


def _misspelt(here: Counter[str], there: Counter[str]) -> bool:
    """Say whether a few words are spelt in two ways."""
    if not here.total() == there.total() <= _MISSPELT:
        return False
    one, two = (" ".join(sorted(words.elements()))[:_LONG] for words in (here, there))
    return SequenceMatcher(None, one, two).ratio() >= _SPELLING


def _share(one: Counter[str], other: Counter[str]) -> float:
    """Return the share of what two have in common (Dice)."""
    both = one.total() + other.total()
    return 2 * (one & other).total() / both if both else 1.0


def without_names(question: str) -> str:
    """Return a question with `it` in place of what looks like a name: words with a capital, unless one begins it."""
    words: list[str] = []
    capitals = [word.lstrip(_OPENING)[:1].isupper() for word in question.split()]
    for number, word in enumerate(question.split()):
        if not capitals[number] or (number == 0 and capitals[1:2] != [True]):
            words.append(word)
        elif words[-1:] != ["it"]:
            words.append("it")
    return " ".join(words)


@dataclass(frozen=True, slots=True)
class _Fact:
    """A relation of the class of which most instances have it."""

    owner: ClassProfile
    known: PropertyProfile
    text: str


@dataclass(frozen=True, slots=True)
class _Found:
    """What fits a question in one graph: questions and lines about relations, each with how well it fits."""

    questions: Sequence[tuple[float, Solved]] = ()
    relations: Sequence[tuple[float, str]] = ()


class Examples:
    """What is shown as examples for a question: of all graphs that are open, the best of any of them.

    Args:
        graphs: The graphs.
        store: Where solved questions are kept; None where none are.
        max_tokens: How long an answer may be, at most `MAX_TOKENS`.
    """

    def __init__(self, graphs: GraphSet, store: ExperienceStore | None, max_tokens: int) -> None:
        self._max_tokens = min(max_tokens, MAX_TOKENS)
        self._graphs = graphs
        self._store = store
        self._facts: dict[str, tuple[GraphProfile, Sequence[_Fact]]] = {}

    def provide(self, server: SextantServer) -> None:
        """Add the tool `Recall`."""
        server.provide(self.recall, "Recall", reading(self._graphs, "Recall solutions"))

    async def recall(self, question: Asked) -> CallToolResult:
        """Find how questions like this one were solved, and which relations may fit."""
        return (await self.answer(question)).to_mcp()

    async def answer(self, question: str) -> Answer:
        """Return questions like one with the calls that answer them, never that one itself, and relations that may fit.

        Raises:
            KGError: The file of solved questions cannot be used, or the only graph cannot be asked.
        """
        found = await self._in_each(question)
        silent = [name for name, each in found.items() if isinstance(each, KGError)]
        given = {name if self._graphs.several else "": each for name, each in found.items() if isinstance(each, _Found)}
        questions = _best(
            [(score, (name, each)) for name, some in given.items() for score, each in some.questions], MOST_QUESTIONS
        )
        relations = _best([each for some in given.values() for each in some.relations], MOST_RELATIONS)
        shown = [
            *(_rows(name, each) for _, (name, each) in questions),
            *([("relation", line)] for _, line in relations),
        ]

        def build(count: int) -> Answer:
            rows = [[str(number), *row] for number, each in enumerate(shown[:count], start=1) for row in each]
            summary = _summary(min(count, len(questions)), max(0, count - len(questions)))
            return Answer(
                SolvedResult(
                    status="ok" if rows else "empty",
                    summary=" ".join((summary, *(f"{name} did not answer." for name in silent))),
                    solved=rows,
                ),
                tuple(f"{number}. {kind}: {text}" for number, kind, text in rows),
            )

        return fitted(build, len(shown), self._max_tokens)

    async def _in_each(self, question: str) -> Mapping[str, _Found | KGError]:
        if not self._graphs.several:
            here = await self._graphs.opened()
            return {here.name: await self._in(question, here)}
        there = [each for each in self._graphs.all if each.known is not None]
        return await self._graphs.ask_each(partial(self._in, question), there)

    async def _in(self, question: str, here: OpenedGraph) -> _Found:
        return _Found(await _like(here, question, await self._known(here)), await self._relations(here, question))

    async def _known(self, here: OpenedGraph) -> Sequence[Solved]:
        """Return the examples of the notes, and solved questions."""
        noted = (
            Solved(question=each.question, calls=each.calls, answers=(each.answer,) if each.answer else (), evidence=())
            for each in (await here.notes.read()).examples
        )
        solved = () if self._store is None else await self._store.solved(here.adapter.name)
        return (*noted, *solved)

    async def _relations(self, here: OpenedGraph, question: str) -> Sequence[tuple[float, str]]:
        """Return the relations that a question may need, a line for each with a call that uses it."""
        profile = await known_profile(here.adapter)
        before, facts = self._facts.get(here.name, (None, ()))
        if before is not profile:
            facts = await off_loop(lambda: _facts(profile, here.adapter), len(profile.everything.properties))
            self._facts[here.name] = (profile, facts)
        texts = [each.text for each in facts]
        scores = await here.meaning.likeness(question, texts)
        if scores is None:
            await load("kg_adapters.embedding.lexical")
            scores = await off_loop(lambda: _by_letters(without_names(question), texts), len(texts))
        best = _best(list(zip(scores, facts, strict=True)), MOST_RELATIONS)
        mark = here.name if self._graphs.several else ""
        lines = await _lines(here.adapter, [each for _, each in best], mark)
        return [(score, line) for (score, _), line in zip(best, lines, strict=True)]


async def _like(here: OpenedGraph, question: str, known: Sequence[Solved]) -> Sequence[tuple[float, Solved]]:
    """Return the questions that are most like one: by words, then by meaning, both with and without names."""
    if not known:
        return ()
    others = await off_loop(lambda: _others(question, known), len(known))
    texts = [each.question for _, each in others]
    whole = await here.meaning.likeness(question, texts)
    bare = await here.meaning.likeness(without_names(question), list(map(without_names, texts)))
    if whole is not None and bare is not None:
        meant = [(one + other) / 2 for one, other in zip(whole, bare, strict=True)]
        others = [(score, each) for score, (_, each) in zip(meant, others, strict=True)]
    return _best(others, MOST_QUESTIONS)


async def _lines(graph: KGAdapter, facts: Sequence[_Fact], mark: str) -> Sequence[str]:
    """Return lines such as `film | running time (min) 68…190 | Top[Type[w:K24], w:R36, 1]`.

    Args:
        graph: The graph.
        facts: What the lines are about.
        mark: The name of the graph, where there are several.
    """
    ends = [target for each in facts for target, _ in each.known.targets[:1]]
    names = await names_of(graph, [*(each.known.relation for each in facts), *ends])
    lines: list[str] = []
    for each in facts:
        known, relation = each.known, graph.prefixes.shorten(each.known.relation, "relation")
        call = f"{'Neighbor' if known.targets or known.values is None else 'Feature'}[…, {relation}]"
        if isinstance(each.owner.iri, Iri) and known.values is not None and set(COMPARED) & set(known.values.kinds):
            call = f"Top[Type[{graph.prefixes.shorten(each.owner.iri)}], {relation}, 1]"
        end = end_of(known, names, 1, short=True)
        lines.append(f"{label_of(each.owner)} | {_name(known)}{in_graph(mark)}{end} | {call}")
    return lines


def _best(scored: Sequence[tuple[float, T]], most: int) -> Sequence[tuple[float, T]]:
    """Return those with the highest scores above 0, the first of equal ones first."""
    return [each for each in sorted(scored, key=lambda each: -each[0])[:most] if each[0] > 0]


def _others(question: str, known: Sequence[Solved]) -> list[tuple[float, Solved]]:
    """Return the questions that are not the same as one, with how like they are by words, the most like first."""
    asked = Likened(question)
    likened = [(Likened(each.question), each) for each in known]
    others = [(asked.to(form), each) for form, each in likened if not asked.is_same(form)]
    return sorted(others, key=lambda found: -found[0])[:_COMPARED]


def _facts(profile: GraphProfile, graph: KGAdapter) -> Sequence[_Fact]:
    """Return the relations of a graph, the most frequent first, each of the class of which most instances have it."""
    labels: Mapping[Node | None, str] = {each.iri: label_of(each) for each in profile.classes}
    every = [each for each in facts_of(profile.everything, graph.vocabulary) if each.direction == "out"]
    having = {each.relation: (profile.everything, each) for each in sorted(every, key=lambda each: -each.facts)}
    most = dict.fromkeys(having, 0)
    for owner in stated_classes(profile):
        for each in facts_of(owner, graph.vocabulary):
            if each.direction == "out" and each.instances > most.get(each.relation, each.instances):
                having[each.relation], most[each.relation] = (owner, each), each.instances
    found: list[_Fact] = []
    for owner, each in list(having.values())[:_COMPARED]:
        ends = [labels.get(target, "") for target, _ in each.targets[:1]]
        whose = [] if owner.iri is None else [label_of(owner)]
        found.append(_Fact(owner, each, " ".join((*whose, _name(each), *ends)).strip()))
    return found


def _name(known: PropertyProfile) -> str:
    return shown_within(known.label or known.relation.local_part.replace("_", " "), MAX_LABEL)


def _by_letters(question: str, texts: Sequence[str]) -> Sequence[float]:
    from kg_adapters.embedding.lexical import lexical_scores

    scores: list[float] = lexical_scores(question, texts).tolist()
    return scores


def _summary(questions: int, relations: int) -> str:
    """Return what is shown, in one sentence."""
    solved = (
        f"{counted(questions, 'question')} like this one, as examples"
        if questions
        else "Nothing like this was solved yet"
    )
    return f"{solved}; {counted(relations, 'relation')} that may fit." if relations else f"{solved}."


def _rows(graph: str, solved: Solved) -> list[tuple[str, str]]:
    parts = (
        ("question", (solved.question,)),
        ("graph", (graph,) if graph else ()),
        ("call", solved.calls),
        ("answer", solved.answers[:_SHOWN]),
        ("evidence", solved.evidence[:_SHOWN]),
    )
    return [(kind, visible_line(text)) for kind, texts in parts for text in texts]
