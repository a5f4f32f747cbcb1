"""The one section that was asked for, out of a reply that may hold more than that."""

import re
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_agents.dialogue import Unreadable
from kg_agents.texts import clipped

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
    headings = list(_HEADING.finditer(text))
    ends = [*(heading.start() for heading in headings), len(text)]
    sections = [_Section("", None, text[: ends[0]].strip())]
    for heading, end in zip(headings, ends[1:], strict=True):
        number = int(heading[2]) if heading[2] else None
        sections.append(_Section(heading[1].lower(), number, text[heading.end() : end].strip()))
    return sections
