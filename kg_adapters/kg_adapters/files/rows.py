"""Statements as plain rows of texts, and the lines of N-Triples and N-Quads that need no parser."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple, TypeAlias

import pyoxigraph as ox

from kg_adapters.terms import XSD_STRING

Row: TypeAlias = tuple[str, str, str, str | None, str | None]
"""A statement: head, relation, tail or text; of a text also its datatype and its language, else None.

Nodes are `node_key`s. A language may have a direction of writing behind it, `en--ltr`.
"""


class StatementColumn(NamedTuple):
    """Statements of one relation.

    Args:
        relation: Its IRI.
        heads: The `node_key` of each head.
        tails: The `node_key` or the text of each tail.
        datatype: That of the texts; None where the tails are nodes.
    """

    relation: str
    heads: list[str]
    tails: list[str]
    datatype: str | None

    def rows(self) -> list[Row]:
        """Return the statements as rows."""
        relation, datatype = self.relation, self.datatype
        return [(head, relation, tail, datatype, None) for head, tail in zip(self.heads, self.tails, strict=True)]

    def lines(self) -> list[str]:
        """Return the statements, whose nodes all have IRIs, as lines of N-Triples."""
        pairs = zip(self.heads, self.tails, strict=True)
        if self.datatype is None:
            return [f"<{head}> <{self.relation}> <{tail}> .\n" for head, tail in pairs]
        if _ESCAPED.search("".join(self.tails)) is not None:
            return list(map(line_of, self.rows()))
        end = '" .\n' if self.datatype == XSD_STRING.value else f'"^^<{self.datatype}> .\n'
        middle = f'> <{self.relation}> "'
        return [f"<{head}{middle}{tail}{end}" for head, tail in pairs]


_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})

_ESCAPED: Final = re.compile(r'[\\"\n\r]')


def row_of(head: str, relation: str, tail: str | ox.Literal) -> Row:
    """Return a statement about a node, given as its `node_key`, or about a literal."""
    if isinstance(tail, str):
        return head, relation, tail, None, None
    language = tail.language
    if language is not None and tail.direction is not None:
        language = f"{language}--{tail.direction.value}"
    return head, relation, tail.value, tail.datatype.value, language


def tag_of(language: str) -> str:
    """Return a row's language without the direction of writing."""
    return language.partition("--")[0]


def line_of(row: Row) -> str:
    """Return a statement as a line of N-Triples."""
    head, relation, tail, datatype, language = row
    start = f"{node_text(head)} <{relation}> "
    if datatype is None:
        return f"{start}{node_text(tail)} .\n"
    text = tail if _ESCAPED.search(tail) is None else tail.translate(_ESCAPES)
    if language is not None:
        return f'{start}"{text}"@{language} .\n'
    return f'{start}"{text}" .\n' if datatype == XSD_STRING.value else f'{start}"{text}"^^<{datatype}> .\n'


def line_in_graph(line: str, graph: str) -> str:
    """Return a line with its statement in a named graph, given as its `node_key`."""
    return f"{line[:-2]}{node_text(graph)} .\n"


def quad_of(row: Row) -> ox.Quad:
    """Return a statement for a store of Oxigraph."""
    head, relation, tail, datatype, language = row
    if datatype is None:
        return ox.Quad(_term(head), ox.NamedNode(relation), _term(tail))
    if language is None:
        return ox.Quad(_term(head), ox.NamedNode(relation), ox.Literal(tail, datatype=ox.NamedNode(datatype)))
    tag, _, direction = language.partition("--")
    literal = ox.Literal(tail, language=tag, direction=ox.BaseDirection(direction) if direction else None)
    return ox.Quad(_term(head), ox.NamedNode(relation), literal)


def load_lines(store: ox.Store, lines: Iterable[str]) -> None:
    """Add lines of N-Quads with one statement each to a store of Oxigraph."""
    plain, labelled = list[str](), list[str]()
    for line in lines:
        (labelled if "_:" in line else plain).append(line)
    # bulk_load is fast and leaves the interpreter to others, but gives blank nodes new labels.
    store.bulk_load("".join(plain), ox.RdfFormat.N_QUADS, lenient=True)
    store.bulk_extend(ox.parse("".join(labelled), ox.RdfFormat.N_QUADS, lenient=True))


def node_text(key: str) -> str:
    """Return a node, given as its `node_key`, as N-Quads write it."""
    return key if key.startswith("_:") else f"<{key}>"


def _term(key: str) -> ox.NamedNode | ox.BlankNode:
    return ox.BlankNode(key[2:]) if key.startswith("_:") else ox.NamedNode(key)


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

_PATH: Final = rf"[{_CHARACTERS}]*+(?>(?:%[0-9A-Fa-f]{{2}}[{_CHARACTERS}]*+)*)"

_BEHIND_PATH: Final = rf"[{_CHARACTERS}?]*+(?>(?:%[0-9A-Fa-f]{{2}}[{_CHARACTERS}?]*+)*)"

_AUTHORITY: Final = r"(?://[A-Za-z0-9.-]*+(?::[0-9]++)?(?=[/?#>\x1f]|\Z)|(?!//)(?!>))"

# RFC 3987, without its rarer letters.
IRI: Final = rf"[A-Za-z][A-Za-z0-9+.-]*+:{_AUTHORITY}{_PATH}(?:\?{_BEHIND_PATH})?(?:\#{_BEHIND_PATH})?"

_TEXT: Final = r'[^"\\\x00-\x1f\x7f-\x9f]*+(?>(?:\\[tbnrf"\\][^"\\\x00-\x1f\x7f-\x9f]*+)*)'

_LANGUAGE: Final = "@[A-Za-z]{2,3}(?:-[A-Za-z]{4})?(?:-[A-Za-z]{2})?"

# These datatypes go with a language alone.
_DATATYPE: Final = rf"\^\^<(?!http://www\.w3\.org/1999/02/22-rdf-syntax-ns#(?:l|dirL)angString>){IRI}>"

_NODE: Final = rf"(?:<({IRI})>|{_BLANK})"

_GAP: Final = r"[ \t]*+"


@cache
def _line(*, quads: bool) -> re.Pattern[str]:
    # Compiling one takes 20 ms, and a process that parses a file needs neither.
    graph = f"(?:<({IRI})>)?" if quads else "()"
    tail = rf'(?:{_NODE}|"({_TEXT})"({_LANGUAGE}|{_DATATYPE})?)'
    terms = rf"{_GAP}{_NODE}{_GAP}<({IRI})>{_GAP}{tail}{_GAP}{graph}{_GAP}\.{_GAP}\r?$"
    return re.compile(rf"^(?:{terms}|(.*)$)", re.MULTILINE)


_ESCAPE: Final = re.compile(r"\\(?:([tbnrf\"\\])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")

_UNESCAPED: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "\\": "\\"}

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
    return _line(quads=quads).findall(text)


def unescaped(text: str) -> str:
    """Return what the text of a plain literal says."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    return _UNESCAPED[escape[1]]


def _spoken(escape: re.Match[str]) -> str:
    digits = escape[2] or escape[3]
    if digits is None:
        return escape[0]
    code = int(digits, 16)
    return chr(code) if _FIRST_SPOKEN <= code <= _LAST and code not in _SURROGATES else escape[0]
