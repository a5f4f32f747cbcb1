"""Whether an answer is right: entities by id or name, values typed; exact match and ROUGE-L as published."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from kg_agents.evidence.matching import fold, parts_of, same_date, same_number, truth_of
from kg_eval.questions import Gold

Named: TypeAlias = Mapping[str, Collection[str]]
"""The ids of the entities that answers name, by their texts."""

HITS_TOLERANCE: Final = 0.001
"""How far a number may be off for Hits@1, as a share of the right one."""

SET_TOLERANCE: Final = 0.005
"""The same for sets of answers about the world."""

SET_RIGHT: Final = 0.99
"""Which F1 a set of answers needs to be right."""

UNKNOWN: Final = frozenset(
    {
        *("unknown", "none", "null", "nothing", "n/a", "no answer", "not known", "not in graph", "not found"),
        *("i do not know", "i don't know", "it is unknown", "cannot be answered", "not stated", "no such fact"),
    }
)
"""What says that there is no answer."""

_WITH_ID: Final = re.compile(r"(.*\S)\s*\(([A-Za-z][\w.-]*:[^\s()]+|[QPL]\d+)\)", re.DOTALL)


def said(texts: Iterable[str]) -> tuple[str, ...]:
    """Return answers, each once, without those that only say that there is none."""
    found = {_key(text): text for text in reversed([*texts]) if fold(text) and fold(text) not in UNKNOWN}
    return tuple(reversed(found.values()))


def is_right(text: str, gold: Gold, tolerance: float = HITS_TOLERANCE, named: Named | None = None) -> bool:
    """Return whether an answer is a right one: by its id if it has one, or by name, number, date, yes or no.

    Args:
        text: The answer.
        gold: What is right.
        tolerance: How far a number may be off, as a share of the right one.
        named: The entities that answers were found to name, in whatever language.
    """
    name, entity = _parts(text)
    if entity and gold.id:
        return entity == gold.id
    if gold.id and gold.id in (named or {}).get(text, ()):
        return True
    if _close(name) in {_close(each) for each in (*gold.names, gold.id) if each}:
        return True
    right = truth_of(gold.text)
    if right is not None:
        return truth_of(name) is right
    return any(same_number(name, each, tolerance) or same_date(name, each) for each in gold.names)


def one_by_one(
    texts: Iterable[str], golds: Sequence[Gold], tolerance: float = HITS_TOLERANCE, named: Named | None = None
) -> tuple[str, ...]:
    """Return answers with a list in one text taken apart where one of its members is right, and the text is not."""

    def right(text: str) -> bool:
        return any(is_right(text, gold, tolerance, named) for gold in golds)

    def members(text: str) -> Sequence[str]:
        parts = () if right(text) else parts_of(text, right)
        return parts if any(map(right, parts)) else [text]

    return tuple(dict.fromkeys(part for text in texts for part in members(text)))


def first_is_right(texts: Sequence[str], golds: Sequence[Gold], named: Named | None = None) -> bool:
    """Return whether the first answer is a right one: Hits@1."""
    first = one_by_one(texts[:1], golds, named=named)[:1]
    return any(is_right(text, gold, named=named) for text in first for gold in golds)


def set_f1(texts: Sequence[str], golds: Sequence[Gold], named: Named | None = None) -> float:
    """Return how much of what is right was answered, and of what was answered is right: F1 of the two sets."""
    if not texts or not golds:
        return float(not texts and not golds)
    texts = one_by_one(texts, golds, SET_TOLERANCE, named)
    right = [[is_right(text, gold, SET_TOLERANCE, named) for gold in golds] for text in texts]
    precision = sum(map(any, right)) / len(texts)
    recall = sum(any(row[place] for row in right) for place in range(len(golds))) / len(golds)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _parts(text: str) -> tuple[str, str]:
    """Divide `name (id)`."""
    found = _WITH_ID.fullmatch(text.strip())
    return (found[1], found[2]) if found else (text, "")


def _key(text: str) -> str:
    name, entity = _parts(text)
    return entity or _close(name)


def _close(text: str) -> str:
    return fold(text).replace(" ", "")


_BETWEEN: Final = re.compile(r"[^a-z0-9]+")


def rouge_l(prediction: str, gold: str) -> float:
    """Return the F1 of the longest common subsequence of words."""
    said, right = _words(prediction), _words(gold)
    common = _longest_common(said, right)
    if not common:
        return 0.0
    precision, recall = common / len(said), common / len(right)
    return 2 * precision * recall / (precision + recall)


def _words(text: str) -> list[str]:
    return _BETWEEN.sub(" ", text.lower()).split()


def _longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    lengths = [0] * (len(other) + 1)
    for word in one:
        diagonal = 0
        for place, compared in enumerate(other, start=1):
            above = lengths[place]
            lengths[place] = diagonal + 1 if word == compared else max(above, lengths[place - 1])
            diagonal = above
    return lengths[-1]


Verdict: TypeAlias = Literal["right", "wrong", "neither"]

NULL: Final = "NULL"
"""What the script counts neither as right nor as wrong, where it stands in braces; it stays in the denominator."""

_WORD: Final = re.compile(r"(?<!\w)-\d\w*|\w+")
"""A word; the sign of a number belongs to it."""


def in_braces(reply: str) -> str:
    """Return the text between the first braces of a reply, or all of it where there is none, cut as the script does.

    Where the closing brace is missing, the last character is lost; where it comes first, nothing is left.
    """
    begin = reply.find("{") + 1
    return reply[begin : reply.find("}")] if begin else reply


def official_match(reply: str, golds: Iterable[str]) -> Verdict:
    """Score a reply as the published script does, for `--official`.

    The prediction and a right answer match if either contains the other, without spaces and case: an empty prediction
    is contained in everything.
    """
    if "{" in reply and in_braces(reply) == NULL:
        return "neither"
    said = _squeezed(in_braces(reply))
    right = any(said in gold or gold in said for gold in map(_squeezed, golds))
    return "right" if right else "wrong"


def contains_match(reply: str, golds: Sequence[Gold]) -> bool:
    """Score a reply with the same idea: an empty one is wrong, aliases count, and words are contained whole."""
    said = in_braces(reply)
    words = _folded_words(said)
    if not words or said.strip() == NULL:
        return False
    return any(_same_words(said, words, name) for gold in golds for name in gold.names)


def _same_words(said: str, words: Sequence[str], name: str) -> bool:
    right = truth_of(name)
    if right is not None:
        return truth_of(said) is right
    if same_number(said, name, 0) or same_date(said, name):
        return True
    wanted = _folded_words(name)
    return bool(wanted) and (_contains(words, wanted) or _contains(wanted, words))


def _contains(words: Sequence[str], part: Sequence[str]) -> bool:
    return any(words[place : place + len(part)] == part for place in range(len(words) - len(part) + 1))


def _folded_words(text: str) -> list[str]:
    return _WORD.findall(fold(text))


def _squeezed(text: str) -> str:
    return text.strip().replace(" ", "").lower()
