"""Which names a text misspells, or gives only the first or last word of."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from kg_adapters.folding import fold
from kg_adapters.models import Candidate
from kg_adapters.prefixes import WELL_KNOWN
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_server.answers.results import Verdict
from kg_server.naming.misspelling import (
    SMALL_WORDS,
    Slips,
    Words,
    apart,
    is_slip,
    orders,
    slips_between,
    without_article,
    words_of,
)

POOL: Final = 50
"""How many candidates a verdict rests on."""
_ALIKE: Final = 0.75
_MEANT: Final = 0.5
"""How near in meaning something has to be to be worth mentioning."""
_PROPERTY: Final = Iri(f"{WELL_KNOWN['rdf']}Property")
_PART_FROM: Final = 4
"""How many letters a word has at least that may stand for a whole name."""
_MISSPELT_FROM: Final = 6
"""How many letters such a word has at least where it is misspelt: of shorter ones, one letter makes another word."""
_LONGEST_NAME: Final = 5
"""How many words a name has at most that one of them may stand for."""


async def close_to(graph: KGAdapter, text: str, pool: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return those whose name a text misspells; none where another name is as near, or where it is a word of others."""
    for words in orders(text):
        if found := await _read_closely(graph, words, pool):
            return found
    return ()


async def bearer_of_part(graph: KGAdapter, text: str, pool: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the only one whose name begins or ends with a word, as it is written or else misspelt; nobody of several.

    `Halvorsen` is Ingrid Halvorsen where no other name holds the word. Other names than labels do not count, nor do
    relations.
    """
    (word, *others) = words_of(text)
    if others or not _can_be_part(word):
        return ()
    names = [(each, words_of(each.matched_text)) for each in pool]
    having = [each for each, name in names if word in name]
    ends = [each for each, name in names if word in _ends_of(each, name)]
    if not having:
        having = ends = [each for each, name in names if any(_is_misspelt(word, end) for end in _ends_of(each, name))]
    if not ends or len({each.entity for each in having}) > 1:
        return ()
    described = (await graph.describe([ends[0].entity])).get(ends[0].entity)
    if described is None or "relation" in described.roles or _PROPERTY in described.types:
        return ()
    is_label = described.label is None or fold(described.label) == fold(ends[0].matched_text)
    return (ends[0],) if is_label else ()


def how_part(text: str, name: str) -> str:
    """Return how a text is a part of a name: `by a part of its name`; empty where it is none."""
    (word, *others), words = words_of(text), words_of(name)
    if others or len(words) < 2:
        return ""
    if word in words:
        return "by a part of its name"
    off = min((apart((word,), (end,)) for end in words if _is_misspelt(word, end)), default=0)
    number = "one letter" if off == 1 else f"{off} letters"
    return f"{number} off a part of its name" if off else ""


def judged(text: str, near: Sequence[Candidate]) -> Verdict:
    """Return `loose` where something shares a word with a text or is near in letters or meaning, else `none`."""
    return "loose" if any(is_near(words_of(text), each) for each in near) else "none"


def is_near(words: Words, candidate: Candidate) -> bool:
    """Return whether what was found shares a word with a text, or is near in letters or meaning."""
    if candidate.matched_by == "meaning":
        return candidate.score >= _MEANT
    name = words_of(candidate.matched_text)
    longest = max(len(" ".join(words)), len(" ".join(name)))
    shared = (frozenset(words) - SMALL_WORDS).intersection(name)
    return bool(shared) or _is_near_part(words, name) or apart(words, name) <= (1 - _ALIKE) * longest


def _is_near_part(words: Words, name: Words) -> bool:
    """Return whether a word is nearly one of a name."""
    return any(_can_be_part(word) and _is_misspelt(word, each) for word in words for each in name)


def _can_be_part(word: str) -> bool:
    return len(word) >= _PART_FROM and word.isalpha() and word not in SMALL_WORDS


def _is_misspelt(word: str, name: str) -> bool:
    return min(len(word), len(name)) >= _MISSPELT_FROM and word[0] == name[0] and is_slip(word, name)


def _ends_of(candidate: Candidate, name: Words) -> Words:
    """Return the first and the last word of a name that has more; none of a list."""
    is_list = candidate.matched_text.count(",") > 1
    return (name[0], name[-1]) if 1 < len(name) <= _LONGEST_NAME and not is_list else ()


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
