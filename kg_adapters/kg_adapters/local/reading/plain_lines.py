"""Lines of N-Triples and N-Quads that are plain: their terms are found without a parser.

A line is plain when it is surely well-formed and its terms need no look of their own; every other line is for a parser
to judge. IRIs of unusual characters or hosts are not plain, nor unusual languages, nor comments.
"""

import re
from typing import Final, TypeAlias

Terms: TypeAlias = tuple[str, ...]
"""What was found in a line, each text empty where the line has it not: the IRI of its head or the label of a blank one,
the relation's IRI, the IRI of its tail or the label of a blank one, the literal's text with its escapes, what stands
behind the literal's quotes, the graph's IRI, and last the whole line where it is not plain."""

RELATION: Final = 2
"""Where the relation's IRI stands among a line's terms; empty where the line is not plain."""
GRAPH: Final = 7
"""Where the graph's IRI stands."""
NOT_PLAIN: Final = 8
"""Where the line stands that is not plain."""

_BLANK: Final = r"_:([A-Za-z0-9_][A-Za-z0-9_-]*+)(?=[ \t])"
_CHARACTERS: Final = r"A-Za-z0-9._~:/@!$&'()*+,;=\xa0-\ud7ff-"
_PATH: Final = rf"(?:[{_CHARACTERS}]++|%[0-9A-Fa-f]{{2}})*+"
_BEHIND_PATH: Final = rf"(?:[{_CHARACTERS}?]++|%[0-9A-Fa-f]{{2}})*+"
_AUTHORITY: Final = r"(?://[A-Za-z0-9.-]*+(?::[0-9]++)?+(?=[/?#>])|(?!//)(?!>))"
# RFC 3987, without its rarer letters.
_IRI: Final = rf"[A-Za-z][A-Za-z0-9+.-]*+:{_AUTHORITY}{_PATH}(?:\?{_BEHIND_PATH})?+(?:\#{_BEHIND_PATH})?+"
_TEXT: Final = r'(?:[^"\\\x00-\x1f\x7f-\x9f]++|\\[tbnrf"\\])*+'
_LANGUAGE: Final = "@[A-Za-z]{2,3}(?:-[A-Za-z]{4})?+(?:-[A-Za-z]{2})?+"
# These datatypes go with a language alone.
_DATATYPE: Final = rf"\^\^<(?!http://www\.w3\.org/1999/02/22-rdf-syntax-ns#(?:l|dirL)angString>){_IRI}>"
_NODE: Final = rf"(?:<({_IRI})>|{_BLANK})"
_GAP: Final = r"[ \t]*+"


def _line(graph: str) -> re.Pattern[str]:
    tail = rf'(?:{_NODE}|"({_TEXT})"({_LANGUAGE}|{_DATATYPE})?+)'
    terms = rf"{_GAP}{_NODE}{_GAP}<({_IRI})>{_GAP}{tail}{_GAP}{graph}{_GAP}\.{_GAP}\r?$"
    return re.compile(rf"^(?:{terms}|(.*)$)", re.MULTILINE)


_TRIPLE: Final = _line("()")
_QUAD: Final = _line(f"(?:<({_IRI})>)?+")
_ESCAPE: Final = re.compile(r"\\(?:([tbnrf\"\\])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
_ESCAPED: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "\\": "\\"}
_FIRST_SPOKEN: Final = 0xA0
_LAST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def terms_of(lines: bytes, *, quads: bool) -> list[Terms]:
    """Return the terms of each line of N-Triples, or of N-Quads; no line is plain where one is not UTF-8."""
    try:
        text = lines.decode()
    except UnicodeDecodeError:
        return [(*[""] * NOT_PLAIN, "?")] * (lines.count(b"\n") + 1)
    if "\\u" in text or "\\U" in text:
        # Beyond ASCII they may stand in texts and IRIs alone, where they mean the same.
        text = _ESCAPE.sub(_spoken, text)
    return (_QUAD if quads else _TRIPLE).findall(text)


def unescaped(text: str) -> str:
    """Return what the text of a plain literal says."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    return _ESCAPED[escape[1]]


def _spoken(escape: re.Match[str]) -> str:
    digits = escape[2] or escape[3]
    if digits is None:
        return escape[0]
    code = int(digits, 16)
    return chr(code) if _FIRST_SPOKEN <= code <= _LAST and code not in _SURROGATES else escape[0]
