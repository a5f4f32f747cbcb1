"""Lists of which a run saw a part: what is answered from such a part alone is not the whole answer."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kg_agents.answers import Answer
from kg_agents.graph_values import Labels, Triple, plain_value
from kg_agents.grounding import BY_MODEL, folded, shown

CUT: Final = "cut"
"""Why a run ended whose answer is a part of a list, in a word."""

_SIZE: Final = re.compile(r"\d[\d,]*")


@dataclass(frozen=True, slots=True)
class PartSeen:
    """The part of a list that was seen.

    Args:
        members: Its members that were seen, by id or as values.
        total: How many members it has; 0 where nobody says.
        facts: The facts that state these, where an answer names each fact that it rests on.
    """

    members: frozenset[str]
    total: int = 0
    facts: frozenset[Triple] = frozenset()

    def __str__(self) -> str:
        of = f"of {self.total:,}" if self.total else "and not all"
        return f"The list that the answer is taken from is not whole: {len(self.members):,} {of} were seen."


def part_answered(answers: Sequence[Answer], parts: Iterable[PartSeen], labels: Labels) -> PartSeen | None:
    """Return the part of a list that answers are, number, or rest on as a whole; None where they do not.

    Args:
        answers: The answers of a run.
        parts: The lists of which a part was seen, and no more.
        labels: What ids are called.
    """
    texts = {folded(each.text) for each in answers}
    counts = {each.text.strip(" .").replace(",", "") for each in answers if _is_by_model(each)}
    for part in parts:
        names = {folded(shown(plain_value(each), labels)) for each in part.members}
        alone = names <= texts and len(texts) < (part.total or len(names) + 1)
        rests = part.facts and any(part.facts <= frozenset(each.facts) for each in answers)
        if len(part.members) > 1 and (alone or rests or str(len(part.members)) in counts):
            return part
    return None


def size_in(text: str) -> int:
    """Return the number that a size such as `1,210 nodes` begins with; 0 where it begins with none."""
    found = _SIZE.match(text)
    return int(found[0].replace(",", "")) if found else 0


def _is_by_model(answer: Answer) -> bool:
    return any(each.endswith(BY_MODEL) for each in answer.computed)
