"""The rows of SPARQL JSON results, read as they come: the document is never held, nor decoded, as a whole."""

import codecs
import json
import re
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_adapters.sparql.solutions import UnreadableAnswer

MAX_VALUE_CHARACTERS: Final = 4_000_000
"""A longer row, or a longer value outside the rows, is refused: it is decoded at once, while all others wait."""
_GAP: Final = re.compile(r"[ \t\n\r]*")
# What follows a number that is not whole, or nothing.
_GOING_ON: Final = frozenset({"", ".", "e", "E"})
_DECODE: Final = json.JSONDecoder().raw_decode

_Place: TypeAlias = Choice["before", "document", "results", "rows", "behind"]
_ENDS: Final[dict[_Place, tuple[str, _Place]]] = {
    "document": ("}", "behind"),
    "results": ("}", "document"),
    "rows": ("]", "results"),
}


class JsonRows:
    """Takes a document in parts of any size, and gives out the rows that have come whole.

    The rows are the elements of the array `bindings` in the object `results`, wherever that stands in the document.

    Attributes:
        members: All other members of the document that have come; those of `results` under that name, with no rows.
    """

    def __init__(self) -> None:
        self.members: dict[str, object] = {}
        self._results: dict[str, object] = {}
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._place: _Place = "before"
        # Whether the next thing follows another one of the same object or array.
        self._after: Choice["opening", "comma", "value"] = "opening"
        self._wanted_characters = 0

    def feed(self, part: bytes) -> list[object]:
        """Return the rows that the next part completes, as JSON has them.

        Raises:
            UnreadableAnswer: This is not a JSON object, it holds rows twice, or a value is too long.
        """
        return self._read(part, final=False)

    def end(self) -> list[object]:
        """Return what is left when all parts were fed; afterwards `members` is complete.

        Raises:
            UnreadableAnswer: As `feed` does, or the document is not complete.
        """
        rows = self._read(b"", final=True)
        if self._place != "behind":
            raise UnreadableAnswer("it is not a JSON object, or ends in the middle of one")
        return rows

    def document(self, rows: list[object]) -> dict[str, object]:
        """Return the document as far as it has come, with these rows in place of its own."""
        if self.members.get("results") is not self._results:
            return self.members
        return {**self.members, "results": {**self._results, "bindings": rows}}

    def _read(self, part: bytes, *, final: bool) -> list[object]:
        try:
            self._text = self._text[self._at :] + self._decoder.decode(part, final)
        except UnicodeDecodeError as error:
            raise UnreadableAnswer("it is not a JSON object: it is not written in UTF-8") from error
        self._at = 0
        rows: list[object] = []
        # A value that is not whole is looked at again when twice as much has come: not once for every part.
        if final or len(self._text) >= self._wanted_characters:
            while self._step(rows):
                pass
            left = len(self._text) - self._at
            if left > MAX_VALUE_CHARACTERS:
                raise UnreadableAnswer(
                    f"it is not a JSON object, or a row or value has more than {MAX_VALUE_CHARACTERS:,} characters"
                )
            self._wanted_characters = min(2 * left, MAX_VALUE_CHARACTERS)
        return rows

    def _step(self, rows: list[object]) -> bool:
        """Read the next mark or value; say whether there was one."""
        if self._place == "rows":
            self._rows(rows)
        self._at = _gap(self._text, self._at)
        if self._at == len(self._text):
            return False
        mark = self._text[self._at]
        end, outer = _ENDS.get(self._place, ("{", "document"))
        if self._place == "behind" or (self._place == "before" and mark != "{"):
            _value(self._text, self._at)
            raise UnreadableAnswer(f"it is not a JSON object, but has {mark!r} where one should begin or have ended")
        if mark == end and self._after != "comma":
            self._enter(outer, "opening" if self._place == "before" else "value")
            return True
        if self._after == "value":
            if mark != ",":
                raise UnreadableAnswer(f"it is not a JSON object: {mark!r} where a comma should be")
            self._at, self._after = self._at + 1, "comma"
            return True
        return self._place != "rows" and self._member()

    def _rows(self, rows: list[object]) -> None:
        """Read rows and the commas behind them for as long as they are whole: `_step` many times, only faster."""
        text = self._text
        while self._after != "value":
            start = _gap(text, self._at)
            if text[start : start + 1] in {"", "]"}:
                return
            if text[start] != "{":
                raise UnreadableAnswer("it is not a SPARQL JSON result: one of its rows is not an object")
            found = _value(text, start)
            if found is None:
                return
            value, end = found
            rows.append(value)
            comma = text[end : end + 1] == ","
            self._at, self._after = (end + 1, "comma") if comma else (end, "value")

    def _member(self) -> bool:
        named = _value(self._text, self._at)
        if named is None:
            return False
        name, end = named
        colon = _gap(self._text, end)
        start = _gap(self._text, colon + 1)
        if start >= len(self._text):
            return False
        if not isinstance(name, str) or self._text[colon] != ":":
            raise UnreadableAnswer("it is not a JSON object: a member has no name")
        inner = self._container(name, self._text[start])
        if inner is not None:
            self._at = start
            self._enter(inner, "opening")
            return True
        found = _value(self._text, start)
        # A number may go on in the next part.
        if found is None or self._text[found[1] : found[1] + 1] in _GOING_ON:
            return False
        self._keep(name, found[0])
        self._at, self._after = found[1], "value"
        return True

    def _container(self, name: str, mark: str) -> _Place | None:
        """Return where the value of a member leads, if that is not read as a whole."""
        inner: _Place | None = None
        if (self._place, name, mark) == ("document", "results", "{"):
            inner = "results"
            self._claim(self.members, name, self._results)
        elif (self._place, name, mark) == ("results", "bindings", "["):
            inner = "rows"
            self._claim(self._results, name, list[object]())
        return inner

    def _claim(self, members: dict[str, object], name: str, value: object) -> None:
        if name in members:
            raise UnreadableAnswer(f"it is not a SPARQL JSON result: it has {name} twice")
        members[name] = value

    def _keep(self, name: str, value: object) -> None:
        members = self._results if self._place == "results" else self.members
        if name in {"results", "bindings"}:
            self._claim(members, name, value)
        members[name] = value

    def _enter(self, place: _Place, after: Choice["opening", "value"]) -> None:
        self._at, self._place, self._after = self._at + 1, place, after


def _gap(text: str, at: int) -> int:
    """Return where something follows that is no blank; at the end of the text where nothing does."""
    found = _GAP.match(text, at)
    return len(text) if found is None else found.end()


def _value(text: str, at: int) -> tuple[object, int] | None:
    """Return the value that starts at a place, and where it ends; None where it is not whole."""
    try:
        return _DECODE(text, at)
    except json.JSONDecodeError:
        return None
    except RecursionError as error:
        raise UnreadableAnswer("its JSON is nested too deeply") from error
    except ValueError as error:
        # A number with more digits than Python reads.
        raise UnreadableAnswer("it holds a number that is too long") from error
