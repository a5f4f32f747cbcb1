"""Log records whose texts cannot pass for other records."""

import logging
from types import TracebackType
from typing import TypeAlias

from kg_boundary.shown import visible_line

_ExceptionInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

_BEHIND = "    "


class LogLines(logging.Formatter):
    """Writes each record on one line, and what belongs to it, such as a traceback, on lines that are set in."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is that of the standard library
        """Return the record's own line."""
        return visible_line(super().formatMessage(record))

    def formatException(self, ei: _ExceptionInfo) -> str:  # noqa: N802 - the name is that of the standard library
        """Return a traceback, set in."""
        return _set_in(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - the name is that of the standard library
        """Return the place of a record, set in."""
        return _set_in(super().formatStack(stack_info))


def _set_in(text: str) -> str:
    return "\n".join(f"{_BEHIND}{visible_line(line)}" for line in text.split("\n"))
