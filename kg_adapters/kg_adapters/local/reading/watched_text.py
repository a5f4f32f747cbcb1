"""The text of a document on its way to a parser, counted, and followed for how deep it is nested."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kg_adapters.local.reading.nesting import Nesting

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BUFFER: Final = 1 << 16
_TICK: Final = 1 << 20
_JSON: Final = frozenset({".json", ".jsonld"})
_TURTLE: Final = frozenset({".ttl", ".trig", ".n3"})


class WatchedText(io.BufferedReader):
    """A stream of text; reading on raises `Refused` where it is nested too deeply.

    Args:
        stream: The text.
        ending: The ending of the file's name, without `.gz`.
        on_tick: Called after each megabyte.
    """

    def __init__(self, stream: io.BufferedReader, ending: str, on_tick: Callable[[], None] = lambda: None) -> None:
        self._counted = _Counted(stream, ending, on_tick)
        super().__init__(self._counted, _BUFFER)

    @property
    def ticks(self) -> int:
        """How many whole megabytes were read."""
        return self._counted.read_bytes // _TICK

    def restart(self) -> None:
        """Take it that the parser does not count anything as open any more."""
        if self._counted.nesting is not None:
            self._counted.nesting.restart()


class _Counted(io.RawIOBase):
    """What stands below the buffer of a `WatchedText`."""

    def __init__(self, stream: io.BufferedReader, ending: str, on_tick: Callable[[], None]) -> None:
        super().__init__()
        self._stream = stream
        self._on_tick = on_tick
        # XML is followed where it is handed out by line.
        self.nesting = Nesting(turtle=ending in _TURTLE) if ending in _JSON | _TURTLE else None
        self.read_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        with memoryview(buffer).cast("B") as room:
            data = self._stream.read1(min(len(room), _BUFFER))
            room[: len(data)] = data
        if self.nesting is not None:
            self.nesting.feed(data)
        ticks = self.read_bytes // _TICK
        self.read_bytes += len(data)
        if self.read_bytes // _TICK > ticks:
            self._on_tick()
        return len(data)
