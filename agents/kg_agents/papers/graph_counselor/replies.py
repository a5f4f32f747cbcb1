"""Read the replies of Graph Counselor's agents: plans, thoughts, actions and judgements, in text and JSON."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from typing import Annotated, Final, TypeAlias
from typing import Literal as Choice

from pydantic import BeforeValidator, Field

from kg_agents.evidence.ledger import Cited
from kg_agents.evidence.matching import numbers_in
from kg_agents.llm.dialogue import Unreadable
from kg_agents.llm.texts import clipped
from kg_agents.papers.graph_counselor.calls import FINISH, FUNCTIONS, Written, calls_in, canonical, functions_in, nests
from kg_agents.replies import MAX_ANSWER, Form, Numbers, sections

Role: TypeAlias = Choice["plan", "thought", "action"]

MAX_SECTION: Final = 4_000
"""How many characters of a plan or a thought are kept."""

_HEADING: Final = re.compile(
    r"^[ \t>#*_`-]*(?:\d+[.)]\s*)?(plan|thought|action|observation)[ \t]*(\d{1,4})?[ \t*_`]*:[ \t*_]*",
    re.IGNORECASE | re.MULTILINE,
)

_STRATEGY: Final = re.compile(r"^[^\w\n]*(?:\d+[.)][^\w\n]*)?improved strategy\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Section:
    """A stretch of a reply under one heading, such as `Thought 3:`."""

    name: str
    number: int | None
    text: str


def section_of(reply: str, role: Role, step: int) -> str:
    """Return what a reply says in one role.

    That is the section under the role's heading with this step's number. Without one, it is what stands before the
    first observation, which only the graph may write: the section under the role's heading, otherwise what stands
    before any heading, otherwise the first section.

    Args:
        reply: The reply.
        role: What was asked for.
        step: The number of the step, from 1.
    """
    sections = _split(reply)
    exact = (section for section in sections if (section.name, section.number) == (role, step))
    honest = list(takewhile(lambda section: section.name != "observation", sections))
    meant = (section for section in honest if section.name == role)
    said = (section for section in honest if section.text)
    found = next(chain(exact, meant, said), None)
    return found.text if found else ""


def read_prose(reply: str, role: Role, step: int) -> str | Unreadable:
    """Return a plan or a thought, or why there is none."""
    text = section_of(reply, role, step).strip("`* \n\t")
    if not text:
        return Unreadable(f"There is no {role} in it. Write the {role} in one or a few sentences.")
    return clipped(text, MAX_SECTION)


def prose_beside(reply: str, role: Role) -> str | None:
    """Return what a reply says under the heading of a role, the first time, if it says anything."""
    text = next((section.text for section in _split(reply) if section.name == role), "").strip("`* \n\t")
    return clipped(text, MAX_SECTION) if text else None


def read_reflection(reply: str, most: int) -> str | Unreadable:
    """Return a reflection, at most so many characters of it, or why there is none.

    What is cut is what stands before the improved strategy, which is what the next attempt goes by.
    """
    if not reply:
        return Unreadable("There is no reflection in it. Write it under its headings.")
    headings = list(_STRATEGY.finditer(reply))
    if len(reply) <= most or not headings:
        return clipped(reply, most)
    strategy = clipped(reply[headings[-1].start() :].strip(), most)
    room = max(0, most - len(strategy))
    return f"{clipped(reply[: headings[-1].start()].strip(), room)}\n{strategy}"


def _split(text: str) -> list[_Section]:
    """Return the sections of a text; what stands before the first heading is one without a name."""
    found = sections(text, _HEADING)
    return [
        _Section(each[1].lower() if each else "", int(each[2]) if each and each[2] else None, said)
        for each, said in found
    ]


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
    """Return whether what stands before a verdict on its line leads to it, and does not only mention it."""
    return _LEADING.search(match.string[: match.start("word")]) is not None


def _is_denied(match: re.Match[str]) -> bool:
    """Return whether a verdict is denied: yes anywhere behind a `not`, no only right behind it."""
    denied = match.groupdict().get("denied") or ""
    return bool(denied) and (match["word"].lower() == "yes" or _DENIAL.fullmatch(denied) is not None)


MAX_EXPRESSION: Final = 4_000
"""How many characters an expression may have."""

NOT_IN_GRAPH: Final = "Not in the graph"
"""With what an answer begins that is none."""

_MISSING: Final = re.compile(r"not in (?:the )?graph\b\W*(?P<why>.*)", re.IGNORECASE | re.DOTALL)
_ALL_OF: Final = re.compile(r"all (?:results )?of (?:observations? |steps? )?(?P<numbers>[\d\s,-]+)", re.IGNORECASE)
_CITED: Final = re.compile(r"\s*\[(?:observations? )?(\d{1,3}(?:[\s,-]+\d{1,3})*)\]\s*,?\s*", re.IGNORECASE)
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
        answer: The answer, or several with commas between them, with the numbers of the observations behind each.
        missing: Why the graph does not hold it; None where it does.
        cited: The answers, each with the observations that it cites.
    """

    answer: str
    missing: str | None = None
    cited: tuple[Cited, ...] = ()

    @property
    def written(self) -> str:
        """The whole action."""
        return f"{FINISH}[{self.answer}]"


Action: TypeAlias = Query | Finish


def read_action(reply: str, step: int, functions: Sequence[str] = ALL) -> Action | Unreadable:
    """Return the action that a reply asks for, or why it cannot be read.

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
    return Finish(answer, missing["why"], ()) if missing else Finish(answer, None, cited_in(" ".join(text.split())))


def cited_in(text: str) -> tuple[Cited, ...]:
    """Return the answers in a text such as `Kyoto [2], "Paris, Texas" [1, 3]`, or `all of 2`."""
    if listed := _ALL_OF.fullmatch(_unwrapped(text)):
        return (Cited("all", numbers_in(listed["numbers"])),)
    pieces = _CITED.split(text)
    numbers = [*map(numbers_in, pieces[1::2]), ()]
    found = (each for piece, cited in zip(pieces[::2], numbers, strict=True) for each in _quoted(piece, cited))
    return tuple(dict.fromkeys(each for each in found if each.text))


def _quoted(text: str, cited: tuple[int, ...]) -> Iterator[Cited]:
    """Yield what stands in quotation marks, where nothing but commas stands between; otherwise the whole text."""
    if not _ALL_QUOTED.fullmatch(text.strip()):
        yield Cited(_unwrapped(text), cited, separable=True)
        return
    for each in _QUOTED.finditer(text):
        yield Cited(next(filter(None, each.groups()), "").strip(), cited)


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


class StepAnswer(Form):
    """One answer, and the observations that show it."""

    text: str
    observations: Numbers = Field(description="Those that show it, as 0, 2; with text `all`, those that list it")

    @property
    def cited(self) -> tuple[Cited, ...]:
        """The answer with what it cites, which may stand behind it."""
        text, numbers = " ".join(self.text.split()), numbers_in(self.observations)
        return (Cited(text, numbers),) if numbers else tuple(replace(e, separable=False) for e in cited_in(text))


def _citing(value: object) -> object:
    """Return an answer that cites nothing in the form of those that do."""
    return {"text": value, "observations": ""} if isinstance(value, str) else value


class StepForm(Form):
    """A plan, a thought, and an expression or the answers."""

    plan: str
    thought: str
    expression: str = Field(description="One expression that gets what is needed next; empty at the end")
    answers: list[Annotated[StepAnswer, BeforeValidator(_citing)]] = Field(
        description="At the end: the answers, one by one"
    )
    not_in_graph: str = Field(description="At the end, where the graph does not hold the answer: what is missing")

    @property
    def finish(self) -> Finish | Unreadable:
        """The end that it describes, or why it is none."""
        cited = (one for each in self.answers for one in each.cited)
        answers = tuple({each.text: each for each in cited if each.text}.values())
        missing = " ".join(self.not_in_graph.split())[:MAX_ANSWER]
        if answers:
            answer = ", ".join(map(str, answers))
            return (
                Finish(answer, None, answers) if len(answer) <= MAX_ANSWER else Unreadable("The answers are too long.")
            )
        if missing:
            return Finish(f"{NOT_IN_GRAPH}: {missing}", missing)
        return Unreadable("It holds neither an expression nor an answer. Fill in one of the fields.")
