"""From what a model writes as a triple to the terms that it may stand for.

A triple is `[head, relation, tail]` or one line, `head | relation | tail`. A head or relation is an id, alone or after
its label, `Tokyo (Q1490)`; a tail may also be a literal as results show it: `"1832-03-22"^^xsd:date`, `"Tokyo"@en`, or
just the text in quotes, or what people write: `1832-03-22`, `2,544`. Names without an id are for `naming`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, TypeAlias

from kg_adapters.errors import InvalidRequest
from kg_adapters.prefixes import Position, Prefixes
from kg_adapters.terms import RDF_LANG_STRING, XSD, XSD_STRING, Iri, Literal, Node
from kg_boundary.shown import clipped, read_back, visible_line
from kg_server.answers.values import value_of

MAX_PART: Final = 3_000
"""How many characters a head, relation or tail may have."""

MAX_BARS: Final = 8
"""How many `|` one line may hold; more than two only where labels or literals hold some."""

MAX_LISTED: Final = 100
"""How many triples one line may state."""

_MAX_SPLITS: Final = 8
_MAX_ECHO: Final = 80
_NAMED: Final = re.compile(r'"((?:\\.|[^"\\])*)" \(.+\)', re.DOTALL)
"""A label that stands in quotation marks, and its id: lists write it so where it holds a comma."""
_LITERAL: Final = re.compile(r'"(.*)"(?:@([A-Za-z]+(?:-[A-Za-z0-9]+)*)|\^\^(\S+))?', re.DOTALL)
_BAR: Final = re.compile(r"\\.|(\|)", re.DOTALL)
_MAX_HEADING: Final = 1_000
_ARROW: Final = re.compile(r" (<?-)\[(.{1,400}?)\](->?) ")
_HEADING: Final = re.compile(
    r"(?:at least )?[\d,]+(?: outgoing|(?P<side> incoming))? "
    r"(?:(?:triple|fact|value)s?\b"
    r"|(?P<relation>.*?(?:\([^\s()]{1,400}\)|[^\s():]{1,400}:[^\s():;,]{1,400}))(?:[:;,]| \()).*"
)
"""What follows `has` in the first line of an answer about one entity."""
_COUNTED: Final = re.compile(r"([\d,]+): (.+)")
_LISTED: Final = re.compile(r'(?:"(?:\\.|[^"\\])*"|,(?! )|[^,"])+')
"""A name in a list; one that holds a comma is in quotation marks."""
_NAME_AND_ID: Final = re.compile(r"(.+) \([^\s()]+\)")
_HELD: Final = re.compile(r"([A-Za-z_][\w.-]{0,50}:[^\s:]{1,400}) \[.+\]")
"""A node without a label, and what it holds together."""
_OWN_DASH: Final = re.compile(r"[(:/#]-[^\s()]{0,400}\)$")
"""The id of a relation whose own name begins with `-`."""
_BECAUSE: Final = "because "
"""What a line of evidence of Compose begins with."""
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Mention:
    """A node, and the label that was written before its id, if any."""

    node: Node
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """A literal as it was written: without datatype and language, any literal with this text is meant.

    Without quotes it is a value as people write it, which only the graph can tell from other words.

    Args:
        text: Its text.
        datatype: Its datatype, where one was written.
        language: Its language, where one was written.
        written: The text as it was written, before its escapes were read.
        quoted: Whether it stood in quotes.
        refusal: Why it is no id, where it stood without quotes.
    """

    text: str
    datatype: Iri | None = None
    language: str | None = None
    written: str = field(default="", compare=False)
    quoted: bool = True
    refusal: str = field(default="", compare=False)

    @property
    def is_word(self) -> bool:
        """Whether it is no value by its form, so that it may be a name."""
        return not self.quoted and value_of(self.text) is None

    @property
    def literal(self) -> Literal:
        """The literal that this is when no graph says better."""
        if self.language is not None:
            return Literal(self.text, RDF_LANG_STRING, self.language)
        told = None if self.quoted else value_of(self.text)
        return told or Literal(self.text, self.datatype or XSD_STRING)


Parts: TypeAlias = tuple[str, str, str]
"""Head, relation and tail as they were written."""

Mentions: TypeAlias = Sequence[Mention]
"""What an id may stand for, the likeliest first; there are several only where an id may itself look like a label."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A triple as it was written, with everything that its parts may mean.

    Args:
        head: What it is about.
        relation: What it says of it.
        tail: An entity or a value.
        plain: The value that the tail is if it is the id of nothing: a graph may have ids that look like numbers.
        either: Whether the tail is a name, so that it may be the value as well.
    """

    head: Mentions
    relation: Mentions
    tail: Mentions | Value
    plain: Value | None = field(default=None, compare=False)
    either: bool = field(default=False, compare=False)


def read_triple(written: Sequence[str] | str, prefixes: Prefixes) -> Reading:
    """Read one triple.

    Raises:
        InvalidRequest: It has another form, or a part is neither an id nor, as the tail, a literal.
    """
    if isinstance(written, str):
        return _read_line(written, prefixes)
    if len(written) != 3:
        raise InvalidRequest(
            f"it has {len(written):,} part{'' if len(written) == 1 else 's'}. Expected [head, relation, tail]."
        )
    return _read_parts(written[0], written[1], written[2], prefixes, plain=True)


def triples_of(written: Sequence[Sequence[str] | str]) -> list[Sequence[str] | str]:
    """Return one item for each triple that lines state as tools print them; anything else stays as it was written.

    A path states one triple for each arrow, evidence of Compose one for each relation, and `-` before a relation turns
    the triple around. What a node without a label holds, in brackets, is left out. The lines `relation | tail`,
    `| tail` and `tail` are read below the first line of their answer, which names what they leave out. A name without
    its id means what a line above shows with that name and an id.
    """
    found: list[Sequence[str] | str] = []
    head = over = ""
    ids = dict[str, str]()
    for place, each in enumerate(written):
        if isinstance(each, str) and len(each) > 3 * MAX_PART:
            found.append(each)
            continue
        if isinstance(each, str) and (steps := _chain(each)):
            found.extend(steps)
            continue
        fields = _columns(each) if isinstance(each, str) else _trimmed(each)
        if isinstance(each, str) and len(fields) == 1:
            heading = _heading(fields[0], written[place + 1 : place + 2])
            if heading is not None:
                head, over = heading
                continue
            if steps := _steps(fields[0]):
                found.extend(steps)
                continue
        if isinstance(each, str) and head and len(fields) < 3 and (over or (len(fields) == 2 and fields[0])):
            over = (fields[0] if len(fields) == 2 else "") or over
            found.append(_turned(head, over, fields[-1]))
            continue
        head = over = ""
        stated = _listed(fields, ids) if isinstance(each, str) and len(fields) == 3 else []
        found.extend(stated if stated not in ([], [_trimmed(each)]) else [each])
    return found


def _trimmed(written: Sequence[str] | str) -> list[str]:
    return [part.strip() for part in (_fields(written) if isinstance(written, str) else written)]


def _columns(line: str) -> list[str]:
    """Return the columns of a line without what nodes hold, and without the full stop of a sentence behind an id."""
    line = line.strip().removesuffix(".") if line.rstrip().endswith(").") else line
    return [held[1] if (held := _HELD.fullmatch(part)) else part for part in _trimmed(line)]


def _chain(line: str) -> list[list[str]]:
    """Return the triples of a line of evidence: `; ` goes on from the head before it, ` | ` from the end before it."""
    triples: list[list[str]] = []
    head = ""
    for part in line.removeprefix(_BECAUSE).split("; ") if line.startswith(_BECAUSE) else ():
        fields = _columns(part)
        steps = fields if len(fields) % 2 else [head, *fields]
        if len(steps) < 3 or not all(steps):
            return []
        head = steps[0]
        triples += [_turned(*steps[place : place + 3]) for place in range(0, len(steps) - 2, 2)]
    return triples


def _listed(fields: Sequence[str], ids: dict[str, str]) -> list[list[str]]:
    """Return the triples of a line whose ends may be counted lists, `2: Japan (Q17), …`; `ids` are of lines above."""
    heads, (relation, *_), tails = names = [_names(each) for each in fields]
    shown = {named[1]: each for each in chain(*names) if (named := _NAME_AND_ID.fullmatch(each)) is not None}
    # An answer that repeats the id of a head leaves out none: what has no id there is a value.
    above = {} if any(each in heads and name in ids for name, each in shown.items()) else dict(ids)
    ids.update(shown)
    if len(heads) * len(tails) > MAX_LISTED:
        return []
    return [_turned(*(above.get(each, each) for each in (head, relation, tail))) for head in heads for tail in tails]


def _names(field: str) -> list[str]:
    counted = _COUNTED.fullmatch(field)
    names = [each.strip() for each in _LISTED.findall(counted[2])] if counted else [field]
    return [each for each in names if each not in {"", "…"}] or [field]


def _heading(line: str, following: Sequence[Sequence[str] | str]) -> tuple[str, str] | None:
    """Return the entity of an answer's first line, and the relation it names; None if no line continues it."""
    head, has, rest = line.partition(" has ")
    heading = _HEADING.fullmatch(rest[:_MAX_HEADING]) if has else None
    if heading is None or not any(isinstance(each, str) and len(_fields(each)) < 3 for each in following):
        return None
    return head, f"{'-' if heading['side'] else ''}{heading['relation']}" if heading["relation"] else ""


def _turned(head: str, relation: str, tail: str) -> list[str]:
    backwards = relation.startswith("-") and _OWN_DASH.search(relation) is None
    return [tail, relation[1:], head] if backwards else [head, relation, tail]


def _steps(line: str) -> list[list[str]]:
    """Return the triples of a path; none where a line is no path, or too long a one."""
    if line.count("-[") > MAX_LISTED:
        return []
    pieces = _ARROW.split(line.removeprefix("… "))
    ends, arrows = pieces[::4], zip(pieces[1::4], pieces[2::4], pieces[3::4], strict=True)
    steps: list[list[str]] = []
    for (start, relation, point), near, far in zip(arrows, ends, ends[1:], strict=False):
        if (start, point) not in {("-", "->"), ("<-", "-")}:
            return []
        mark = "" if point == "->" else "-"
        steps.append(_turned(near, f"{mark}{relation.removesuffix(', unverified')}", far))
    return steps


def parts_of(written: Sequence[str] | str) -> Parts | None:
    """Return the parts of a triple; None where there are not three."""
    fields = _fields(written) if isinstance(written, str) else written
    return (fields[0].strip(), fields[1].strip(), fields[2].strip()) if len(fields) == 3 else None


def echo(written: Sequence[str] | str) -> str:
    """Return what was written on one short line."""
    parts = (written,) if isinstance(written, str) else written[:3]
    return " | ".join(clipped(visible_line(part), _MAX_ECHO) for part in parts)


def _read_line(line: str, prefixes: Prefixes) -> Reading:
    _require_short(line, 3 * MAX_PART)
    refusal: InvalidRequest | None = None
    fields = _fields(line)
    if len(fields) == 3:
        try:
            return _read_parts(fields[0], fields[1], fields[2], prefixes, plain=True)
        except InvalidRequest as error:
            refusal = error
    # A label that was copied from elsewhere may hold bars that nobody escaped.
    pieces = line.split("|")
    if not 3 <= len(pieces) <= MAX_BARS + 1:
        raise refusal or InvalidRequest(
            "it is not a triple. Expected [head, relation, tail], or the line head | relation | tail."
        )
    for first, second in _cuts(len(pieces)):
        head, relation, tail = ("|".join(part) for part in (pieces[:first], pieces[first:second], pieces[second:]))
        try:
            return _read_parts(head, relation, tail, prefixes, plain=False)
        except InvalidRequest as error:
            refusal = refusal or error
    assert refusal is not None  # noqa: S101 - three pieces or more can be cut at least once
    raise refusal


def _fields(line: str) -> list[str]:
    """Return the columns of a line, as results show it: a bar behind a backslash is text."""
    bars = [found.start() for found in _BAR.finditer(line) if found[1]]
    return [line[start:end] for start, end in zip([0, *(bar + 1 for bar in bars)], [*bars, len(line)], strict=True)]


def _cuts(pieces: int) -> Iterator[tuple[int, int]]:
    return ((first, second) for first in range(1, pieces - 1) for second in range(first + 1, pieces))


def _read_parts(head: str, relation: str, tail: str, prefixes: Prefixes, *, plain: bool) -> Reading:
    for part in (head, relation, tail):
        _require_short(part, MAX_PART)
    for part, name in ((head, "head"), (relation, "relation")):
        if part.lstrip().startswith('"') and _NAMED.fullmatch(part.strip()) is None:
            raise InvalidRequest(f"its {name} is a literal. Only a tail may be one; entities and relations are ids.")
    first, second = _mentions(head, prefixes, "entity"), _mentions(relation, prefixes, "relation")
    return Reading(first, second, *read_tail(tail, prefixes, plain=plain))


def read_tail(text: str, prefixes: Prefixes, *, plain: bool = True) -> tuple[Mentions | Value, Value | None]:
    """Return what a tail may mean, and the value that it is if it is the id of nothing.

    Raises:
        InvalidRequest: It is neither an id nor a literal, nor, with `plain`, a value as people write it.
    """
    text = text.strip()
    if text.startswith('"') and _NAMED.fullmatch(text) is None:
        return _literal(text, prefixes), None
    try:
        return _mentions(text, prefixes, "entity"), _plain(text)
    except InvalidRequest as error:
        refusal = f'{error} Put a literal tail in quotes, "like this".'
        value = _plain(text, refusal) if plain else None
        if value is None:
            raise InvalidRequest(refusal) from error
        return value, None


def _require_short(text: str, most: int) -> None:
    if len(text) > most:
        raise InvalidRequest(f"it has {len(text):,} characters where {most:,} are allowed. Copy it as results show it.")


def _plain(text: str, refusal: str = "") -> Value | None:
    """Return the value that a tail without quotes may be; None where it cannot be one."""
    if not text or _SURROGATE.search(text):
        return None
    return Value(read_back(text), written=text, quoted=False, refusal=refusal)


def _literal(text: str, prefixes: Prefixes) -> Value:
    written = _LITERAL.fullmatch(text)
    if written is None:
        raise InvalidRequest('its tail is not a literal. Expected "text", "text"@en or "1832-03-22"^^xsd:date.')
    value, language, datatype = written.group(1, 2, 3)
    if _SURROGATE.search(value):
        raise InvalidRequest("its tail holds half a character (a lone surrogate), which no graph can hold.")
    return Value(read_back(value), None if datatype is None else _datatype(datatype, prefixes), language, value)


def _datatype(text: str, prefixes: Prefixes) -> Iri:
    if text.startswith("xsd:"):
        return Iri(XSD + text.removeprefix("xsd:"))
    node = prefixes.expand(text)
    if not isinstance(node, Iri):
        raise InvalidRequest("the datatype of its tail is a blank node; a datatype is always an IRI.")
    return node


def _mentions(text: str, prefixes: Prefixes, position: Position) -> Mentions:
    found = mentions(text, prefixes, position)
    if not found:
        prefixes.expand(text.strip(), position)  # says what is wrong with it
    return found


def mentions(text: str, prefixes: Prefixes, position: Position) -> Mentions:
    """Return what the id in a text may stand for; nothing where there is none."""
    return [mention for mention in _candidates(text.strip(), prefixes, position) if mention is not None]


def _candidates(text: str, prefixes: Prefixes, position: Position) -> Iterator[Mention | None]:
    # An id that itself looks like a label with an id is never shown like that, so it comes last.
    if (named := _NAMED.fullmatch(text)) is not None:
        text = f"{named[1]}{text[named.end(1) + 1 :]}"
    end = len(text) - 1
    for _ in range(_MAX_SPLITS if text.endswith(")") else 0):
        end = text.rfind(" (", 0, end)
        if end <= 0:
            break
        yield _mention(text[end + 2 : -1], read_back(text[:end]), prefixes, position)
    yield _mention(text, None, prefixes, position)


def _mention(text: str, label: str | None, prefixes: Prefixes, position: Position) -> Mention | None:
    try:
        return Mention(prefixes.expand(text, position), label)
    except InvalidRequest:
        return None
