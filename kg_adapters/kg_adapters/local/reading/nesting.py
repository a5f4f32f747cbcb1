"""How deep a text is nested, followed while it is read: parsers give up less gracefully than this does."""

import re
from typing import Final

from kg_adapters.reading_limits import MAX_DEPTH, Refused

TOO_DEEP: Final = f"it is nested more than {MAX_DEPTH} deep, and no more is read"

_JSON_TOKENS: Final = re.compile(rb'"(?<!\\")[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# Whatever may hold a bracket that opens nothing: long and short strings, IRIs, comments, escapes in names.
_TURTLE_TOKENS: Final = re.compile(
    rb'"""(?:[^"\\]++|\\.|"{1,2}(?=[^"]))*+"""'
    rb"|'''(?:[^'\\]++|\\.|'{1,2}(?=[^']))*+'''"
    rb'|"(?<!"")(?!"")[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
    rb"|'(?<!'')(?!'')[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'"
    rb'|<[^<>"{}|^`\x00-\x20]*+>'
    rb"|#[^\n]*+"
    rb"|\\.",
    re.DOTALL,
)
_QUOTES: Final = re.compile(rb"\"\"\"|'''")
_ALL_QUOTES: Final = re.compile(rb"\"\"\"|'''|\"|'")
# What stands in a string up to its closing quotes, or up to what may be the first of them or half an escape.
_BODIES: Final = {
    b'"': re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL),
    b"'": re.compile(rb"(?:[^'\\]++|\\.)*+", re.DOTALL),
    b'"""': re.compile(rb'(?:[^"\\]++|\\.|"{1,2}(?=[^"]))*+', re.DOTALL),
    b"'''": re.compile(rb"(?:[^'\\]++|\\.|'{1,2}(?=[^']))*+", re.DOTALL),
}
_BRACKETS: Final = re.compile(rb"(?:[\[({]|<<)++|(?:[\])}]|>>)++")
_OPENING: Final = frozenset(b"[({<")
# A longer line is looked at in parts; what then is cut in two is a string, as good as always.
_LONGEST_LINE: Final = 1 << 14


class Nesting:
    """Follows the brackets of a text.

    Args:
        turtle: Whether it is Turtle or one of its relatives, and not JSON.
    """

    def __init__(self, *, turtle: bool) -> None:
        self._turtle = turtle
        self._tokens = _TURTLE_TOKENS if turtle else _JSON_TOKENS
        self._rest = b""
        self._quotes = b""
        self._depth = 0
        self._bytes = 0

    def feed(self, data: bytes) -> None:
        """Follow the next part of the text; none at its end.

        Raises:
            Refused: It is nested too deeply; the message says about where.
        """
        text, self._rest = self._rest + data, b""
        self._bytes += len(data)
        while text:
            text = self._behind_the_string(text) if self._quotes else self._outside_strings(text, last=not data)

    def restart(self) -> None:
        """Take it that nothing is open, as a parser does behind an error."""
        self._depth = 0

    def _outside_strings(self, text: bytes, *, last: bool) -> bytes:
        """Count what stands outside strings, and return what is left: it begins in a string, or there is none."""
        # In Turtle all but long strings ends with its line, so whole lines hold whole tokens.
        end = text.rfind(b"\n") + 1 if self._turtle and not last else len(text)
        cut = not self._turtle
        if not end and len(text) > _LONGEST_LINE:
            # IRIs hold no blank.
            end, cut = text.rfind(b" ") + 1 or len(text), True
        bare = self._tokens.sub(b"", text[:end])
        string = (_ALL_QUOTES if cut else _QUOTES).search(bare)
        self._count(bare if string is None else bare[: string.start()])
        if string is not None:
            self._quotes = string[0]
            return (bare[string.end() :] if cut else b"") + text[end:]
        self._rest = text[end:]
        return b""

    def _behind_the_string(self, text: bytes) -> bytes:
        """Return what follows the string that is open, if it ends here."""
        body = _BODIES[self._quotes].match(text)
        rest = text if body is None else text[body.end() :]
        if not rest.startswith(self._quotes):
            self._rest = rest
            return b""
        rest, self._quotes = rest[len(self._quotes) :], b""
        return rest

    def _count(self, bare: bytes) -> None:
        for run in _BRACKETS.findall(bare):
            brackets = len(run) - run.count(b"<<") - run.count(b">>")
            self._depth = self._depth + brackets if run[0] in _OPENING else max(self._depth - brackets, 0)
            if self._depth > MAX_DEPTH:
                raise Refused(f"before byte {self._bytes + 1:,}: {TOO_DEEP}")
