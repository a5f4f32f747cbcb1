"""Reading a verdict: yes, no, or unreadable, which is not yes."""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_agents.dialogue import Unreadable
from kg_agents.graph_counselor.sections import clipped, without_thinking

Verdict: TypeAlias = Choice["yes", "no", "unreadable"]

MAX_EXPLANATION: Final = 1_000
"""How many characters of an explanation are kept."""

_BRACKETED: Final = re.compile(
    r"(?P<denied>(?:\b(?:not|never|nor|neither|cannot)|n['\u2019]t)\W{0,20})?\[[\s*_`\"']*(?P<word>yes|no)[\s*_`\"'.!]*\]",
    re.IGNORECASE,
)
_ALONE: Final = re.compile(
    r"\W*(?:(?:final )?(?:judge?ment|verdict|conclusion)\W+(?:is\W+)?)?(?P<word>yes|no)\W*", re.IGNORECASE
)
_LONGEST_ALONE: Final = 60


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, and how the judge explains it."""

    verdict: Verdict
    explanation: str


def read_judgement(reply: str) -> Judgement | Unreadable:
    """Return what a judge concludes, with the explanation, or why that cannot be told."""
    verdict = read_verdict(reply)
    if verdict == "unreadable":
        return Unreadable("It does not end with a clear judgement. Expected [yes] or [no] on the last line, not both.")
    return Judgement(verdict, clipped(without_thinking(reply), MAX_EXPLANATION))


def read_verdict(reply: str) -> Verdict:
    """Return what a judge concludes.

    The last line that holds `[yes]` or `[no]` counts; without any, a last line that says nothing but yes or no. What
    says both, or says it in any other way (`not yes`, `[not yes]`, `not [yes]`, `yes and no`), is unreadable.
    """
    lines = [line.strip() for line in without_thinking(reply).splitlines() if line.strip()]
    for line in reversed(lines):
        if found := list(_BRACKETED.finditer(line)):
            return _agreed(found)
    if not lines or len(lines[-1]) > _LONGEST_ALONE:
        return "unreadable"
    alone = _ALONE.fullmatch(lines[-1])
    return _agreed([alone]) if alone else "unreadable"


def _agreed(found: list[re.Match[str]]) -> Verdict:
    """Return what all say, where none is denied."""
    words = {match["word"].lower() for match in found}
    if len(words) > 1 or any(match.groupdict().get("denied") for match in found):
        return "unreadable"
    return "yes" if words == {"yes"} else "no"
