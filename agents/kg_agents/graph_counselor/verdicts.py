"""Reading a verdict: yes, no, not in the graph, or unreadable, which is not yes."""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_agents.dialogue import Unreadable
from kg_agents.texts import clipped

Verdict: TypeAlias = Choice["yes", "no", "missing", "unreadable"]

MAX_EXPLANATION: Final = 1_000
"""How many characters of an explanation are kept."""

_SAID: Final = r"(?P<word>yes|not in (?:the )?graph|no)"
_BRACKETED: Final = re.compile(
    r"(?P<denied>(?:\b(?:not|never|nor|neither|cannot|hardly|far from)|n['\u2019]t)\b[^.,;:!?\[\]]{0,60})?"
    rf"\[[\s*_`\"']*{_SAID}[\s*_`\"'.!]*\]",
    re.IGNORECASE,
)
_ALONE: Final = re.compile(
    rf"\W*(?:(?:final )?(?:judge?ment|verdict|conclusion)\W+(?:is\W+)?)?{_SAID}[^\w?]*", re.IGNORECASE
)
_LEADING: Final = re.compile(
    r"(?:^|[.!:;\u2013\u2014-]|\b(?:(?:judge?ment|verdict|conclusion|so|thus|hence|therefore)(?: is)?|answer is))"
    r"[\s>#*_`(]*\[?[\s*_`\"']*$",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w")
_DENIAL: Final = re.compile(r"[\w'\u2019]+\W*")
_CLOSING: Final = re.compile(r"[^\w?]*")
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
        return Unreadable(
            "It does not end with a clear judgement. Expected [yes], [no] or [not in the graph] on the last line."
        )
    return Judgement(verdict, clipped(reply, MAX_EXPLANATION))


def read_verdict(reply: str) -> Verdict:
    """Return what a judge concludes.

    The last line that holds `[yes]`, `[no]` or `[not in the graph]` counts, if it ends with it and is the last that
    says anything, or the first and says nothing else: anywhere between, it may be quoted. Without any, a last line
    counts that says nothing but one of them. What says several, or says one in any other way (`not yes`, `[not yes]`,
    `not [yes]`, `[yes] if it were right`, `yes and no`), is unreadable.
    """
    lines = [line.strip() for line in reply.splitlines() if _WORD.search(line)]
    ending = _ALONE.fullmatch(lines[-1]) if lines and len(lines[-1]) <= _LONGEST_ALONE else None
    alone = [ending] if ending else []
    for place, line in reversed(list(enumerate(lines))):
        if found := list(_BRACKETED.finditer(line)):
            opens = place == 0 and _CLOSING.fullmatch(line, 0, found[0].start()) is not None
            closes = _CLOSING.fullmatch(line, found[-1].end()) is not None
            concluding = closes and (opens or place == len(lines) - 1)
            return _agreed([*found, *alone]) if concluding else "unreadable"
    return _agreed(alone) if alone else "unreadable"


def _agreed(found: list[re.Match[str]]) -> Verdict:
    """Return what all say, where none is denied."""
    words = {match["word"].lower().replace("the ", "") for match in found}
    if len(words) > 1 or any(map(_is_denied, found)):
        return "unreadable"
    if words == {"no"}:
        return "no"
    if words == {"not in graph"}:
        return "missing"
    return "yes" if all(map(_is_concluded, found)) else "unreadable"


def _is_concluded(match: re.Match[str]) -> bool:
    """Say whether what stands before a verdict on its line leads to it, and does not only mention it."""
    return _LEADING.search(match.string[: match.start("word")]) is not None


def _is_denied(match: re.Match[str]) -> bool:
    """Say whether a verdict is denied: yes anywhere behind a `not`, no only right behind it."""
    denied = match.groupdict().get("denied") or ""
    return bool(denied) and (match["word"].lower() == "yes" or _DENIAL.fullmatch(denied) is not None)
