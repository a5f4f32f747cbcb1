"""The tokens of a SPARQL query, with one more kind: a name, `@"Tokyo"`, where an id may stand.

No query can hold that otherwise: behind `@` stands the tag of a language, which has no quotation marks. What looks like
a name inside a text, an IRI or a comment is none.
"""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias, get_args
from typing import Literal as Choice

from kg_server.pointing import MisreadExpression

Kind: TypeAlias = Choice[
    "name", "iri", "text", "tag", "variable", "blank", "prefixed", "number", "word", "mark"  # in the order of trial
]

_CODED: Final = r"%[0-9A-Fa-f]{2}|\\."
_IRI: Final = r"<[^<>\"{}|^`\s]*>"
_TEXT: Final = (
    r'"""(?:"{0,2}(?:[^"\\]|\\.))*"""'
    r"|'''(?:'{0,2}(?:[^'\\]|\\.))*'''"
    r'|"(?:[^"\\\n\r]|\\.)*"'
    r"|'(?:[^'\\\n\r]|\\.)*'"
)
_PATTERNS: Final[dict[Kind, str]] = {
    "name": r'@"(?:[^"\\\n\r]|\\.)*"|@\'(?:[^\'\\\n\r]|\\.)*\'',
    "iri": _IRI,
    "text": _TEXT,
    "tag": r"@[A-Za-z]+(?:-[A-Za-z0-9]+)*",
    "variable": r"[?$]\w+",
    "blank": r"_:(?:[\w.-]*\w)?",
    "prefixed": rf"(?:[^\W\d_](?:[\w.-]{{0,60}}[\w-])?)?:(?:(?:[\w:.-]|{_CODED})*(?:[\w:-]|{_CODED}))?",
    "number": r"(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?",
    "word": r"[^\W\d]\w*",
    "mark": r"\^\^|&&|\|\||[!<>]=|\S",
}
_TOKEN: Final = re.compile(
    r"\s+|#[^\n\r]*|" + "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items()), re.DOTALL
)
_KINDS: Final[dict[str, Kind]] = {kind: kind for kind in get_args(Kind)}
_ESCAPED: Final = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a query that cannot be divided, and where it begins."""

    kind: Kind
    text: str
    at: int

    @property
    def end(self) -> int:
        """Where the token ends."""
        return self.at + len(self.text)

    @property
    def keyword(self) -> str:
        """The word in capitals, or nothing where it is none."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def name(self) -> str:
        """What stands between the quotation marks of a name."""
        return _ESCAPED.sub(r"\1", self.text[2:-1]).strip()


def tokens_of(query: str) -> tuple[Token, ...]:
    """Return the tokens of a query, without blanks and comments.

    Raises:
        MisreadExpression: A name is blank, has no end, or stands where only the tag of a language may.
    """
    matches = ((match, match.lastgroup) for match in _TOKEN.finditer(query))
    found = [Token(_KINDS[kind], match[0], match.start()) for match, kind in matches if kind is not None]
    for before, token in zip((None, *found), found, strict=False):
        _check_name(query, before, token)
    return tuple(found)


def _check_name(query: str, before: Token | None, token: Token) -> None:
    if token.kind == "mark" and token.text == "@":
        raise MisreadExpression(query, token.at, 'A name is written @"…" on one line, with both quotation marks.')
    if token.kind != "name":
        return
    if not token.name:
        raise MisreadExpression(query, token.at, 'The name is blank. Write one such as @"Tokyo".')
    if before is not None and before.kind == "text" and before.end == token.at:
        raise MisreadExpression(
            query,
            token.at,
            'A name cannot follow a text. The tag of a language has no quotation marks: "Tokyo"@en.',
        )
