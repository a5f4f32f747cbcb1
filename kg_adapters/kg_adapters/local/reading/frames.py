"""What a process that parses a file tells the one that wants its statements."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import IO, Final

import pyoxigraph as ox

LONGEST_STATEMENTS: Final = 1 << 23
"""How many bytes of statements a frame holds at most; the parser takes no more than twice as many at once."""
_HEADER: Final = struct.Struct("<cQQQ")
_LONGEST: Final = 1 << 32
_LENGTH: Final = struct.Struct("<Q")


class Kind(bytes, Enum):
    """What a frame holds."""

    STATEMENTS = b"Q"
    LONG_STATEMENT = b"L"
    TICK = b"T"
    PROBLEM = b"P"
    NOTE = b"N"
    REFUSAL = b"R"
    END = b"E"


@dataclass(frozen=True, slots=True)
class Frame:
    """One message.

    Args:
        kind: What it holds.
        body: N-Quads; or N-Quads of one statement, with their length before them and the literal's value behind them;
            or the text of a problem, of an error or of what was guessed; or at the end the file's prefixes as JSON.
        position: How many bytes of the file were read.
        ticks: How far parsing has come, in steps that are never far apart.
    """

    kind: Kind
    body: bytes = b""
    position: int = 0
    ticks: int = 0


def write_frame(frame: Frame, stream: IO[bytes]) -> None:
    """Write one frame, and pass it on at once."""
    stream.write(_HEADER.pack(frame.kind.value, len(frame.body), frame.position, frame.ticks))
    stream.write(frame.body)
    stream.flush()


def read_frames(stream: IO[bytes]) -> Iterator[Frame]:
    """Yield frames until there are no more, or what comes is none."""
    while len(header := stream.read(_HEADER.size)) == _HEADER.size:
        kind, length, position, ticks = _HEADER.unpack(header)
        if length > _LONGEST or kind not in _KINDS:
            return
        body = stream.read(length)
        if len(body) < length:
            return
        yield Frame(_KINDS[kind], body, position, ticks)


_KINDS: Final = {kind.value: kind for kind in Kind}


def told_statements(quads: list[ox.Quad]) -> bytes:
    """Return the body of a frame with statements; it may be too long for one."""
    body = ox.serialize(quads, format=ox.RdfFormat.N_QUADS)
    assert body is not None  # noqa: S101 - without an output, it is returned
    return body


def told_long_statement(quad: ox.Quad) -> bytes | None:
    """Return the body of a frame with one statement whose literal may be of any length; None if its IRIs may not."""
    value = b""
    if isinstance(quad.object, ox.Literal):
        value = quad.object.value.encode()
        quad = ox.Quad(quad.subject, quad.predicate, _with_value(quad.object, ""), quad.graph_name)
    body = told_statements([quad])
    if len(body) > LONGEST_STATEMENTS:
        return None
    return _LENGTH.pack(len(body)) + body + value


def parsed_statements(lines: bytes) -> Iterator[ox.Quad]:
    """Return the statements in lines of a frame."""
    # Whoever wrote them has looked at the IRIs.
    return ox.parse(lines, format=ox.RdfFormat.N_QUADS, lenient=True)


def long_statement(frame: Frame) -> Iterator[ox.Quad]:
    """Yield the one statement of a frame."""
    end = _LENGTH.size + _LENGTH.unpack_from(frame.body)[0]
    for quad in parsed_statements(frame.body[_LENGTH.size : end]):
        object_ = quad.object
        if isinstance(object_, ox.Literal):
            object_ = _with_value(object_, frame.body[end:].decode())
        yield ox.Quad(quad.subject, quad.predicate, object_, quad.graph_name)


def _with_value(literal: ox.Literal, value: str) -> ox.Literal:
    if literal.language is None:
        return ox.Literal(value, datatype=literal.datatype)
    return ox.Literal(value, language=literal.language, direction=literal.direction)
