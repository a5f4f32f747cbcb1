"""JSON with comments, as editors write it: one member is set, and everything else stays as it was written."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kg_boundary.regular_files import parsed

_STRING: Final = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT: Final = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA: Final = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")
_INDENT: Final = re.compile(r"^[{\[]\s*?\n([ \t]+)", re.MULTILINE)
_BLANK: Final = re.compile(r"[ \t]*")
_VISIBLE: Final = re.compile(r"[^\n]")


def read_commented(text: str) -> object:
    """Return the value of a text in JSON that may have comments, and commas after last members.

    Raises:
        ValueError: It is not such a text.
    """
    value: object = parsed(json.loads, _without_last_commas(_without_comments(text)))
    return value


def with_member(text: str, path: Sequence[str], value: object) -> str:
    """Return a text with the member of a path set to a value, and all the rest as it was, comments included.

    Args:
        text: A JSON object that `read_commented` reads; so are the members on the path, as far as they are there.
        path: The names that lead to the member, at least one; those that are missing are added.
        value: The value, as `json.dumps` takes it.
    """
    uncommented = _without_comments(text)
    plain = _without_last_commas(uncommented)
    found = _Object.at(plain, plain.index("{"))
    unit = indent[1] if (indent := _INDENT.search(text)) else "  "
    *above, name = path
    for place, each in enumerate(above):
        start = found.start_of(each)
        if start is None:
            for inner in reversed(path[place + 1 :]):
                value = {inner: value}
            name = each
            break
        found = _Object.at(plain, start)
    for member in reversed(found.members):
        if member.name == name:
            written = _written(value, unit, _indent_of(text, member.key))
            return f"{text[: member.start]}{written}{text[member.end :]}"
    outer = _indent_of(text, found.start)
    inside = _indent_of(text, found.members[0].key) if found.members else outer
    inside = f"{outer}{unit}" if inside == outer else inside
    last = found.members[-1].end if found.members else found.start + 1
    comma = "," if found.members and "," not in uncommented[last : found.end] else ""
    # After the comments on the last member, which belong to it.
    end = len(text[: found.end].rstrip())
    rest = text[end : found.end] if "\n" in text[end : found.end] else f"\n{outer}"
    added = f"\n{inside}{json.dumps(name, ensure_ascii=False)}: {_written(value, unit, inside)}"
    return f"{text[:last]}{comma}{text[last:end]}{added}{rest}{text[found.end :]}"


@dataclass(frozen=True, slots=True)
class _Member:
    """A member's name, and where its key begins and its value begins and ends."""

    name: object
    key: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Object:
    """An object: where its braces are, and its members."""

    start: int
    end: int
    members: Sequence[_Member]

    @classmethod
    def at(cls, plain: str, start: int) -> "_Object":
        """Return the object that begins at a place of a valid text without comments."""
        decoder, members = json.JSONDecoder(), list[_Member]()
        key = _behind_blanks(plain, start + 1)
        while plain[key] != "}":
            name: object
            name, behind = decoder.raw_decode(plain, key)
            value = _behind_blanks(plain, plain.index(":", behind) + 1)
            _, end = decoder.raw_decode(plain, value)
            members.append(_Member(name, key, value, end))
            key = _behind_blanks(plain, end)
            key = _behind_blanks(plain, key + 1) if plain[key] == "," else key
        return cls(start, key, members)

    def start_of(self, name: str) -> int | None:
        """Return where the value of a member begins, of the last if there are several."""
        return next((each.start for each in reversed(self.members) if each.name == name), None)


def _without_comments(text: str) -> str:
    """Return a text with blanks in place of its comments, so that all else keeps its place."""
    return _COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else _VISIBLE.sub(" ", found[0]), text)


def _without_last_commas(text: str) -> str:
    return _LAST_COMMA.sub(lambda found: found[0] if found[0][0] == '"' else " ", text)


def _behind_blanks(text: str, place: int) -> int:
    while text[place] in " \t\n\r":
        place += 1
    return place


def _indent_of(text: str, place: int) -> str:
    """Return the blanks at the beginning of the line of a place."""
    found = _BLANK.match(text, text.rfind("\n", 0, place) + 1)
    return found[0] if found is not None else ""


def _written(value: object, unit: str, indent: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", f"\n{indent}")
