"""What a text names: one verdict for every tool, prompt and agent.

A text names something exactly (it is its id, label or alias, without regard to case and accents), closely (it is a
plausible misspelling of one name, and of nothing else), loosely (it shares words with names, or is near in meaning) or
not at all. The verdict rests on a fixed number of candidates, so that it does not depend on how many are shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from kg_adapters.errors import InvalidRequest
from kg_adapters.local.names.folding import fold
from kg_adapters.models import Candidate
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node
from kg_boundary.shown import in_quotes
from kg_server.answers.results import Verdict
from kg_server.concurrency import all_of
from kg_server.misspelling import (
    SMALL_WORDS,
    Slips,
    Words,
    apart,
    orders,
    slips_between,
    without_article,
    words_of,
)
from kg_server.names import MAX_LABEL

POOL: Final = 50
"""How many candidates a verdict rests on."""
MOST_NAMESAKES: Final = 500
"""How many of those that bear one name exactly are found."""

AT_ONCE: Final = 8
"""How many texts are looked for at a time."""

_ALIKE: Final = 0.75
_MEANT: Final = 0.5
"""How near in meaning something has to be to be worth mentioning."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What one text names.

    Args:
        text: The text.
        match: The verdict.
        named: Those who bear the name, where the match is `exact` or `close`: several are namesakes.
        near: What else is like it, best first.
    """

    text: str
    match: Verdict
    named: tuple[Candidate, ...] = ()
    near: tuple[Candidate, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The entities that the text names."""
        return tuple(each.entity for each in self.named)

    @property
    def alike(self) -> tuple[Candidate, ...]:
        """What shares a word with the text or is near in letters or meaning, best first."""
        words = words_of(self.text)
        return tuple(each for each in self.near if _is_near(words, each))

    @property
    def how(self) -> str:
        """How the text names the first of them: `an alias`, `one letter off`; empty where it is its id or label."""
        if not self.named:
            return ""
        by = self.named[0]
        if self.match == "exact":
            return "an alias" if by.matched_by == "alias" else ""
        names = [without_article(name) for name in orders(by.matched_text)]
        letters = min(apart(without_article(text), name) for text in orders(self.text) for name in names)
        off = {0: "written otherwise", 1: "one letter off"}.get(letters, f"{letters} letters off")
        return f"{off} its alias {in_quotes(by.matched_text)}" if letters and by.matched_by == "alias" else off


async def identify(graph: KGAdapter, texts: Sequence[str], *, type: Node | None = None) -> list[Identity]:
    """Return what texts name, in their order; among the instances of a type where one is given.

    A relation is named only where no entity that is none has the name.

    Args:
        graph: The graph.
        texts: Ids or names.
        type: Only what has this type counts.
    """
    ids = await entities_of_ids(graph, texts if type is None else ())
    distinct = list(dict.fromkeys(texts))
    found = await all_of([partial(_identity, graph, text, ids.get(text), type) for text in distinct], at_once=AT_ONCE)
    by_text = dict(zip(distinct, await _without_relations(graph, found), strict=True))
    return [by_text[text] for text in texts]


async def entities_of_ids(graph: KGAdapter, texts: Sequence[str]) -> Mapping[str, Node]:
    """Return the entities of those texts that are ids of them, asked for in one batch."""
    expanded: dict[str, Node] = {}
    for text in texts:
        try:
            expanded[text] = graph.prefixes.expand(text)
        except InvalidRequest:
            continue
    if not expanded:
        return {}
    known = await graph.describe(list(expanded.values()))
    return {text: node for text, node in expanded.items() if node in known and "entity" in known[node].roles}


def said_of_reading(text: str, node: Node, how: str) -> tuple[str | Node, ...]:
    """Return the sentence that tells as what a text was read, from how it names that."""
    quoted = in_quotes(text, MAX_LABEL)
    if how == "an alias":
        return f"{quoted} is an alias of ", node, "."
    return f"{quoted} read as ", node, f", {how}."


def judged(text: str, near: Sequence[Candidate]) -> Verdict:
    """Return `loose` where something shares a word with a text or is near in letters or meaning, else `none`."""
    return "loose" if any(_is_near(words_of(text), each) for each in near) else "none"


def _is_near(words: Words, candidate: Candidate) -> bool:
    if candidate.matched_by == "meaning":
        return candidate.score >= _MEANT
    name = words_of(candidate.matched_text)
    longest = max(len(" ".join(words)), len(" ".join(name)))
    shared = (frozenset(words) - SMALL_WORDS).intersection(name)
    return bool(shared) or apart(words, name) <= (1 - _ALIKE) * longest


async def _without_relations(graph: KGAdapter, identities: Sequence[Identity]) -> list[Identity]:
    """Return verdicts in which a relation is no namesake of an entity: it is named among what is near."""
    several = {node: None for each in identities if len(each.named) > 1 for node in each.nodes}
    if not several:
        return list(identities)
    described = await graph.describe(list(several))
    relations = {node for node, each in described.items() if "relation" in each.roles}

    def only_entities(identity: Identity) -> Identity:
        kept = tuple(each for each in identity.named if each.entity not in relations)
        if not kept or len(kept) == len(identity.named):
            return identity
        passed = tuple(each for each in identity.named if each.entity in relations)
        return replace(identity, named=kept, near=(*passed, *identity.near))

    return list(map(only_entities, identities))


async def _identity(graph: KGAdapter, text: str, node: Node | None, type: Node | None) -> Identity:
    if node is not None:
        return Identity(text, "exact", (Candidate(node, 1.0, "id", text),))
    folded = fold(text)
    pool = await graph.search(text, limit=POOL, type=type) if folded else ()
    same = _same(pool, folded)
    if len(same) == POOL:
        same = _same(await graph.search(text, limit=MOST_NAMESAKES, type=type), folded)
    if same:
        return Identity(text, "exact", same, _without(pool, same))
    close = await _close(graph, text, pool)
    if not close and (joined := text.replace(".", "")) != text and fold(joined):
        # Words do not find `USA` by `U.S.A.`.
        close = await _close(graph, text, await graph.search(joined, limit=POOL, type=type))
    if close:
        return Identity(text, "close", close, _without(pool, close))
    return Identity(text, judged(text, pool), near=tuple(pool))


def _same(pool: Sequence[Candidate], folded: str) -> tuple[Candidate, ...]:
    return tuple(each for each in pool if fold(each.matched_text) == folded)


async def _close(graph: KGAdapter, text: str, pool: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return those whose name a text misspells; none where another name is as near, or where it is a word of others."""
    for words in orders(text):
        if found := await _read_closely(graph, words, pool):
            return found
    return ()


async def _read_closely(graph: KGAdapter, words: Words, pool: Sequence[Candidate]) -> tuple[Candidate, ...]:
    names = {each.entity: min(orders(each.matched_text), key=partial(apart, words)) for each in pool}
    slips = {node: slip for node, name in names.items() if (slip := slips_between(words, name)) is not None}
    if not slips:
        return ()
    best: Slips = min(slips.values(), key=lambda slip: slip.count)
    meant = {names[node] for node, slip in slips.items() if slip.count == best.count}
    chosen = tuple(each for each in pool if names[each.entity] in meant)
    bearers = frozenset(each.entity for each in chosen)
    others = [name for node, name in names.items() if node not in bearers]
    # Without its article, `The Dawn` may also be `SS Dawn`.
    rivals = (apart(words, name) <= best.count or name[1:] == without_article(words) for name in others)
    if len(meant) > 1 or (best.count and any(rivals)):
        return ()
    for word in slips[chosen[0].entity].words:
        if await _is_word(graph, word, pool, bearers):
            return ()
    return chosen


async def _is_word(graph: KGAdapter, word: str, pool: Sequence[Candidate], bearers: frozenset[Node]) -> bool:
    """Say whether others have a word in their names: then it is no misspelling."""

    def in_others(found: Sequence[Candidate]) -> bool:
        return any(each.entity not in bearers and word in words_of(each.matched_text) for each in found)

    return in_others(pool) or in_others(await graph.search(word, limit=POOL))


def _without(pool: Sequence[Candidate], named: Sequence[Candidate]) -> tuple[Candidate, ...]:
    bearers = {each.entity for each in named}
    return tuple(each for each in pool if each.entity not in bearers)
