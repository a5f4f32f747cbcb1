"""ROUGE-L as the library `rouge-score` computes it: F1 over words of `[a-z0-9]`, without stemming.

Graph Counselor's text calls it recall; its script, and GRBench's, print F1.
"""

import re
from collections.abc import Sequence
from typing import Final

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
