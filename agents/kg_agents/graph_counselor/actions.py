"""Reading an action: functions to perform on the graph, or the answer.

Reading is tolerant: case, quotation marks, code fences, a heading such as `Action 3:`, prose around the functions and
text behind them are no hindrance. Judging is strict: a reply is one or more functions that are known, or one `Finish`.
What stands inside the functions is the server's to read, whose errors point at the place.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from kg_agents.dialogue import Unreadable
from kg_agents.graph_counselor.calls import FINISH, FUNCTIONS, Written, calls_in, canonical, functions_in, nests
from kg_agents.graph_counselor.sections import section_of

MAX_EXPRESSION: Final = 4_000
"""How many characters an expression may have."""

NOT_IN_GRAPH: Final = "Not in the graph"
"""With what an answer begins that is none."""

MAX_ANSWER: Final = 2_000
"""How many characters an answer may have."""

_MISSING: Final = re.compile(r"not in (?:the )?graph\b\W*(?P<why>.*)", re.IGNORECASE | re.DOTALL)
_ALL_OF: Final = re.compile(r"all (?:results )?of (?:observation |step )?(\d{1,3})", re.IGNORECASE)
_QUOTED: Final = re.compile(r"\"([^\"]+)\"|(?<!\w)'((?:[^']|'(?=\w))+)'|\u201c([^\u201d]+)\u201d")
_ALL_QUOTED: Final = re.compile(rf"(?:{_QUOTED.pattern})(?:\s*,\s*(?:{_QUOTED.pattern}))*")
_OTHER: Final = re.compile(r"(?<![\w.-])([A-Za-z]\w{0,40})\[")
ALL: Final = tuple(dict.fromkeys(FUNCTIONS.values()))
"""Every function of a graph."""

_WRAPPING: Final = (("**", "**"), ("`", "`"), ('"', '"'), ("'", "'"), ("“", "”"), ("\u2018", "\u2019"))


@dataclass(frozen=True, slots=True)
class Query:
    """Functions to perform, side by side.

    Args:
        parts: The calls, as they were written.
    """

    parts: tuple[str, ...]

    @property
    def written(self) -> str:
        """The whole expression."""
        return ", ".join(self.parts)

    @property
    def asked(self) -> frozenset[str]:
        """The calls in a form in which those that ask the same are equal."""
        return frozenset(canonical(part) for part in self.parts)

    @property
    def nested(self) -> bool:
        """Whether a function stands inside another."""
        return any(nests(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Finish:
    """The answer with which an attempt ends, or why the graph does not hold it.

    Args:
        answer: The answer, or several with commas between them.
        missing: Why the graph does not hold it; None where it does.
        quoted: The answers one by one, where each stands in quotation marks: their commas are their own.
        all_of: The step whose observation lists the answers; None where they are written out.
    """

    answer: str
    missing: str | None = None
    quoted: tuple[str, ...] = ()
    all_of: int | None = None

    @property
    def written(self) -> str:
        """The whole action."""
        return f"{FINISH}[{self.answer}]"

    @property
    def listing(self) -> int | None:
        """The step that it names in place of answers, as in `Finish[all of 2]`."""
        found = _ALL_OF.fullmatch(self.answer)
        return int(found[1]) if found else None


Action: TypeAlias = Query | Finish


def read_action(reply: str, step: int, functions: Sequence[str] = ALL) -> Action | Unreadable:
    """Return the action that a reply asks for, or why it cannot be told.

    Args:
        reply: The reply.
        step: The number of the step, from 1.
        functions: The functions that there are.
    """
    text = section_of(reply, "action", step)
    calls = calls_in(text)
    ends = tuple(call for call in calls if call.name == FINISH)
    if not calls:
        return _nothing(text, functions)
    if not ends:
        return _query(calls, functions)
    if len(ends) < len(calls):
        return Unreadable(
            "It holds functions and Finish. Perform the functions first; finish alone, once their results are known."
        )
    return _finish(ends)


def read_single_action(reply: str, step: int, functions: Sequence[str] = ALL) -> Action | Unreadable:
    """Return an action of one function, neither inside another nor beside one (section 3.4.1), or why it is none."""
    action = read_action(reply, step, functions)
    if isinstance(action, Query) and (len(action.parts) > 1 or action.nested):
        return Unreadable("It holds more than one function. Use one function, and none inside another.")
    return action


def _query(calls: tuple[Written, ...], functions: Sequence[str]) -> Query | Unreadable:
    named = (name for call in calls for name in functions_in(call.text))
    if strange := next((name for name in named if name not in functions), None):
        return _unknown(strange, functions)
    query = Query(tuple(dict.fromkeys(call.text for call in calls)))
    if (length := len(query.written)) > MAX_EXPRESSION:
        return Unreadable(f"It has {length:,} characters; at most {MAX_EXPRESSION:,} are read. Ask for less at once.")
    return query


def _finish(ends: tuple[Written, ...]) -> Finish | Unreadable:
    inside = {call.inside if call.closed else _to_last_bracket(call.inside) for call in ends}
    if len(inside) > 1:
        return Unreadable("It finishes more than once, with different answers. Expected one Finish[answer].")
    (text,) = inside
    if text is None:
        return Unreadable("The bracket of Finish is never closed. Expected Finish[answer].")
    answer = _unwrapped(text)
    if not answer:
        return Unreadable("There is no answer in Finish. Expected Finish[answer].")
    if len(answer) > MAX_ANSWER:
        return Unreadable(f"The answer has {len(answer):,} characters; at most {MAX_ANSWER:,} are read. Be brief.")
    missing = _MISSING.match(answer)
    return Finish(answer, missing["why"] if missing else None, _quoted(" ".join(text.split())))


def _quoted(text: str) -> tuple[str, ...]:
    """Return what stands in quotation marks, where nothing but commas stands between; otherwise nothing."""
    if not _ALL_QUOTED.fullmatch(text):
        return ()
    return tuple(dict.fromkeys(next(filter(None, each.groups()), "").strip() for each in _QUOTED.finditer(text)))


def _to_last_bracket(text: str) -> str | None:
    """Return a text up to its last closing bracket: an answer may hold an opening one that is never closed."""
    inside, bracket, _ = text.rpartition("]")
    return inside if bracket else None


def _unwrapped(text: str) -> str:
    """Return a text on one line, without the marks of emphasis, code or quotation that enclose the whole of it."""
    text = " ".join(text.split())
    for first, last in _WRAPPING:
        inner = text[len(first) : len(text) - len(last)]
        enclosed = text.startswith(first) and text.endswith(last) and len(text) >= len(first) + len(last)
        if enclosed and first not in inner and last not in inner:
            return _unwrapped(inner)
    return text


def _unknown(name: str, functions: Sequence[str]) -> Unreadable:
    return Unreadable(f"There is no function {name!r}. The functions are {_listed(functions)}; Finish[answer] ends.")


def _listed(functions: Sequence[str]) -> str:
    return f"{', '.join(functions[:-1])} and {functions[-1]}"


def _nothing(text: str, functions: Sequence[str]) -> Unreadable:
    if not text.strip():
        return Unreadable("There is no action in it. Expected functions, or Finish[answer].")
    if other := _OTHER.search(text):
        return _unknown(other.group(1), functions)
    return Unreadable(
        f"No function is called in it. Expected one or more of {_listed(functions)}, each with its arguments in square "
        "brackets, or Finish[answer]."
    )
