"""Open source files, unpack them within limits, and recognize their format from name and first bytes."""

import bz2
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from kg_adapters.errors import InvalidSource
from kg_adapters.files.sources import (
    ENTITY_JSON,
    ENTRIES,
    FORMATS,
    GRAPH_JSON,
    JSON_LINES,
    KGDATA,
    PARQUET,
    RECORDS,
    Source,
    expected_endings,
)
from kg_adapters.open_options import ReadingLimits, Refused, setting
from kg_boundary.installation import install_command
from kg_boundary.json_stream import BrokenJson, JsonStream
from kg_boundary.regular_files import open_regular
from kg_boundary.shown import in_quotes, listed

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


# What inflates to no more than this does no harm, whatever its ratio.
_HARMLESS: Final = 10_000_000

_WINDOW: Final = 1 << 27

BAD_FILE: Final = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
"""What reading a file may raise that is not whole, or not what its name says."""


def unreadable(error: Exception) -> str:
    """Return what follows the name of a file that cannot be read to its end, without its path."""
    reason: str | None = getattr(error, "strerror", None)
    return f"cannot be read to its end: {reason or error}"


class Unpacked(Protocol):
    """A stream of what was compressed."""

    def read1(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, as soon as there are any; none at the end."""
        ...


class SourceBytes:
    """What a file holds, as one stream.

    Args:
        raw: The file as it is.
        stream: Its content, unpacked.
    """

    def __init__(self, raw: io.BufferedReader, stream: io.BufferedReader) -> None:
        self._raw: io.BufferedReader | None = raw
        self._position = 0
        self.stream = stream

    @property
    def position(self) -> int:
        """How many bytes of the file were read; also once it is closed."""
        return self._position if self._raw is None else self._raw.tell()

    def leave(self) -> None:
        """Remember the position."""
        self._position, self._raw = self.position, None


@contextmanager
def opened(source: Source, limits: ReadingLimits) -> Generator[SourceBytes]:
    """Open a file, and unpack it if it is compressed; reading on raises `Refused` at a limit.

    Raises:
        OSError: It cannot be opened.
    """
    with ExitStack() as stack:
        raw = stack.enter_context(open_regular(source.path))
        stream: io.BufferedReader = raw
        for unpack in _unpackers(source):
            # The memory of a packing grows with what a file says of itself.
            stream = io.BufferedReader(_Inflating(stack.enter_context(unpack(stream)), raw, limits))
        content = SourceBytes(raw, stream)
        stack.callback(content.leave)
        yield content


class _Inflating(io.RawIOBase):
    """An archive that gives what it has at once, so that nothing is lost which stands before a damage."""

    def __init__(self, packed: Unpacked, raw: io.BufferedReader, limits: ReadingLimits) -> None:
        super().__init__()
        self._packed = packed
        self._raw_file = raw
        self._limits = limits
        self._by_ratio = max(_HARMLESS, limits.inflate_ratio * os.fstat(raw.fileno()).st_size)
        self._inflated = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        with memoryview(buffer).cast("B") as room:
            data = self._packed.read1(len(room))
            room[: len(data)] = data
        self._inflated += len(data)
        if self._inflated > self._by_ratio:
            self._refuse(f"over {self._limits.inflate_ratio:,} times its size", "imports.inflate_ratio")
        if self._inflated > self._limits.inflate_bytes:
            self._refuse(f"over {self._limits.inflate_mb:,} MB", "imports.inflate_mb")
        return len(data)

    def _refuse(self, limit: str, name: str) -> None:
        raise Refused(
            f"byte {self._raw_file.tell():,}: the file decompresses to {limit}; if that is expected, "
            f"{setting(name)} allows more"
        )


def _unpackers(source: Source) -> Iterator[Callable[[io.BufferedReader], AbstractContextManager[Unpacked]]]:
    if source.member:
        yield partial(_member, source.member)
        packing = Path(source.member).suffix.lower()
    else:
        packing = source.packing
    if packing in _UNPACKERS:
        yield _UNPACKERS[packing]


@contextmanager
def _member(name: str, stream: io.BufferedReader) -> Generator[Unpacked]:
    try:
        with zipfile.ZipFile(stream) as archive, archive.open(name) as member:
            yield _AtOnce(member.read)
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError) as error:
        # An encrypted one is a RuntimeError.
        raise OSError(f"{name} in the archive: {error}") from error


@contextmanager
def _zstandard(stream: io.BufferedReader) -> Generator[Unpacked]:
    try:
        import zstandard  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise Refused(
            "byte 0: it is compressed with Zstandard, which needs one more package. Decompress it (zstd -d), or run "
            f"`{install_command('zstd')}`"
        ) from error
    window = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    try:
        with window.stream_reader(stream, read_across_frames=True, closefd=False) as reader:
            yield _AtOnce(reader.read)
    except zstandard.ZstdError as error:
        raise OSError(str(error)) from error


class _AtOnce:
    """Gives a way to read the name that other packings have for it."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read

    def read1(self, size: int = -1, /) -> bytes:
        return self._read(size)


_UNPACKERS: Final[Mapping[str, Callable[[io.BufferedReader], AbstractContextManager[Unpacked]]]] = {
    ".gz": lambda stream: gzip.GzipFile(fileobj=stream),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": _zstandard,
}

_HEAD: Final = 1 << 16

_MOST_MEMBERS: Final = 1_000

_MAGIC: Final = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"\xfd7zXZ": ".xz",
    b"PK\x03\x04": ".zip",
}

_BINARY: Final = {b"SQLite format 3\0": ".sqlite", b"PAR1": PARQUET}

# These endings are taken at their word, but for XML, which none of them can be.
_TELLING: Final = frozenset({".nt", ".nq", ".ttl", ".trig", ".n3", ".jsonld", ".csv", ".tsv"})

_XML: Final = re.compile(rb"\s*<(?:\?xml|!DOCTYPE|!--|[A-Za-z][\w.-]*:RDF\b|RDF\b)", re.IGNORECASE)

_RDF_XML: Final = re.compile(rb"<(?:[A-Za-z][\w.-]*:)?RDF\b|22-rdf-syntax-ns#")

_JSON: Final = re.compile(rb'\s*(?:\{\s*(?:"|\})|\[\s*(?:[{\["\]0-9-]))')

_JSON_LD: Final = re.compile(rb'"@(?:context|graph|id|type)"\s*:')

_ENTITIES: Final = re.compile(
    rb'"type"\s*:\s*"(?:item|property|lexeme)"(?=.{0,1000}"(?:labels|claims|lemmas|id"\s*:\s*"[QPL]\d))|'
    rb'"entities"\s*:\s*\{\s*"[QPL]\d',
    re.DOTALL,
)

_GRAPH_JSON: Final = re.compile(rb'"(?:features|neighbors)"\s*:|^\s*\{\s*(?:"\w+_nodes"|\})')

_TOPIC: Final = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\[\s*[\[\]]')

_LINES_OF_JSON: Final = re.compile(rb"\{[^\n]*\}\r?\n\s*\{")

_TERM: Final = rb'(?:<[^<>"{}|^`\\\x00-\x20]*>|_:[^\s]+)'

_LITERAL: Final = rb'"(?:[^"\\\n]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^<>\s]*>)?'

_LINE: Final = re.compile(
    rb"\s*(?:#.*|"
    + _TERM
    + rb"\s*<[^<>\s]*>\s*(?:"
    + _TERM
    + rb"|"
    + _LITERAL
    + rb")\s*("
    + _TERM
    + rb")?\s*\.\s*(?:#.*)?)?\s*"
)

_PREFIX: Final = re.compile(rb"^\s*@?(?:prefix|base)\s+[^\n]*<[^<>\n]*>", re.IGNORECASE | re.MULTILINE)

_STATEMENT: Final = re.compile(rb"^\s*(?:<[^<>\s]+>|_:\w+)\s+(?:a|<[^<>\s]+>|\w*:\w+)\s+\S", re.MULTILINE)

_GRAPH: Final = re.compile(rb"^\s*(?:GRAPH\s+)?(?:<[^<>\s]*>|[\w.-]*:[\w.-]*)?\s*\{\s*$|\bGRAPH\s*[<\w]", re.MULTILINE)


def recognized(source: Source, limits: ReadingLimits) -> Source:
    """Return a file with the form of what it holds.

    Raises:
        InvalidSource: Its name does not tell the form, nor does what it holds, or nothing of it can be read.
    """
    failure: Exception | None = None
    try:
        source = replace(source, packing=source.packing or _packing(source))
        with opened(source, limits) as content:
            head = content.stream.read(_HEAD)
    except (*BAD_FILE, Refused) as error:
        # Where the name tells the form, whoever reads it says what is wrong, and where.
        head, failure = b"", error
    known = source.ending in FORMATS
    form = _form(head, source.ending) or (source.ending if known else None)
    if form is None and failure is not None:
        reason = f", {failure}" if isinstance(failure, Refused) else f" {unreadable(failure)}"
        raise InvalidSource(f"{source.path}{reason}.") from failure
    if form is None:
        ending = f"Unknown file extension: {source.ending}" if source.ending else "A file without an extension"
        place = f"{in_quotes(source.member)} in {source.path}" if source.member else source.path
        raise InvalidSource(f"{ending}, and the content is of no known format: {place}. Expected {expected_endings()}.")
    return replace(source, form=form)


def parts_of(source: Source, limits: ReadingLimits) -> Iterator[Source]:
    """Yield what is to be read of a file: itself, or each graph in an archive, with the form of what it holds.

    Raises:
        InvalidSource: It is an archive that cannot be read, or holds no graph; or its form is unknown.
    """
    if source.packing != ".zip" and (source.packing or _magic(source.path) != ".zip"):
        yield recognized(source, limits)
        return
    try:
        with open_regular(source.path) as file, zipfile.ZipFile(file) as archive:
            members = [each.filename for each in archive.infolist() if not each.is_dir()]
    except (*BAD_FILE, zipfile.BadZipFile) as error:
        raise InvalidSource(f"{source.path} cannot be read as a zip archive: {error}.") from error
    _check_members(source, members)
    shown = [name for name in members if not any(part.startswith((".", "__")) for part in Path(name).parts)]
    if len(shown) > _MOST_MEMBERS:
        raise InvalidSource(
            f"{source.path} holds {len(shown):,} files; at most {_MOST_MEMBERS:,} are read of an archive."
        )
    parts = [Source(source.path, f"{source.name}/{name}", member=name) for name in sorted(shown)]
    wanted = parts if len(parts) == 1 else [part for part in parts if part.ending in FORMATS]
    if not wanted:
        there = listed(map(in_quotes, sorted(shown)), ", ") or "no file"
        raise InvalidSource(
            f"{source.path} holds no graph, but {there}. Expected names that end in {expected_endings()}."
        )
    for part in wanted:
        yield recognized(part, limits)


def _check_members(archive: Source, members: Sequence[str]) -> None:
    """Make sure that what an archive holds lies in it, and is not only further archives.

    Raises:
        InvalidSource: It is otherwise.
    """
    outside = next((name for name in members if ".." in Path(name).parts), None)
    if outside is not None:
        raise InvalidSource(
            f"{archive.path} holds a file that is to lie outside of it, {in_quotes(outside)}, and was not read. Unpack "
            "it yourself, and import the files that you trust."
        )
    if members and all(Path(name).suffix.lower() == ".zip" for name in members):
        raise InvalidSource(
            f"{archive.path} holds another archive, {in_quotes(members[0])}, which is not looked into. Unpack "
            f"{archive.path} first, then import what was in it."
        )


def _magic(path: Path) -> str:
    try:
        with open_regular(path) as file:
            start = file.read(8)
    except OSError:
        return ""
    return next((packing for magic, packing in _MAGIC.items() if start.startswith(magic)), "")


def _packing(source: Source) -> str:
    return "" if source.member else _magic(source.path)


def _form(head: bytes, ending: str) -> str | None:
    """Return the form of a text by its beginning, or None where the name has to tell it."""
    binary = next((form for magic, form in _BINARY.items() if head.startswith(magic)), None)
    if binary is not None:
        return binary
    text = head.removeprefix(b"\xef\xbb\xbf")
    if _XML.match(text) is not None and ending not in {".csv", ".tsv", ".jsonld"}:
        return ".rdf" if _RDF_XML.search(text) is not None or ending in FORMATS else None
    if ending in _TELLING or not text.strip():
        return None
    if _JSON.match(text) is not None:
        return _json(text, ending)
    return _lines(text) or _turtle(text) or _table(text)


def _json(text: bytes, ending: str) -> str | None:
    linked = _JSON_LD.search(text) is not None
    tests = (
        (ENTITY_JSON, _ENTITIES.search(text) is not None and not linked),
        (".jsonld", linked),
        (ending, ending in JSON_LINES),
        (RECORDS, _holds_records(text)),
        (KGDATA, _TOPIC.match(text) is not None),
        (".jsonl", _LINES_OF_JSON.match(text) is not None),
        (GRAPH_JSON, _GRAPH_JSON.search(text) is not None),
        (ENTRIES, _holds_entries(text)),
    )
    return next((form for form, fits in tests if fits), None)


def _holds_records(text: bytes) -> bool:
    """Return whether the beginning of a JSON text is a list of objects, or an object with such a list."""
    stream = JsonStream(io.BytesIO(text))
    try:
        if stream.peek() == "[":
            return _has_object(stream)
        for _ in stream.members():
            if stream.peek() != "[":
                stream.value()
            elif _has_object(stream):
                return True
    except BrokenJson:
        # The part that was read does not decide it.
        return False
    return False


def _holds_entries(text: bytes) -> bool:
    """Return whether the beginning of a JSON text is an object whose first member is an object with values."""
    stream = JsonStream(io.BytesIO(text))
    try:
        first = next(stream.members(), None)
        value = None if first is None else stream.value()
    except BrokenJson:
        return False
    return isinstance(value, dict) and not all(isinstance(each, dict | list) for each in value.values())


def _has_object(stream: JsonStream) -> bool:
    for _ in stream.items():
        if stream.peek() == "{":
            return True
        stream.value()
    return False


def _lines(text: bytes) -> str | None:
    # The last line may be cut off.
    lines = text.split(b"\n")[:20]
    matches = [_LINE.fullmatch(line) for line in (lines[:-1] if len(lines) > 1 else lines)]
    if not all(matches) or not any(match is not None and match[0].strip()[:1] in {b"<", b"_"} for match in matches):
        return None
    return ".nq" if any(match is not None and match[1] for match in matches) else ".nt"


def _turtle(text: bytes) -> str | None:
    if _PREFIX.search(text) is None and _STATEMENT.search(text) is None:
        return None
    return ".trig" if _GRAPH.search(text) is not None else ".ttl"


def _table(text: bytes) -> str | None:
    lines = [line for line in text.split(b"\n")[:20] if line.strip()]
    lines = lines[:-1] if len(lines) > 2 else lines
    for sign, form in ((b"\t", ".tsv"), (b",", ".csv"), (b";", ".csv")):
        counts = {line.count(sign) for line in lines}
        if len(lines) > 1 and len(counts) == 1 and counts.pop() > 0:
            return form
    return None
