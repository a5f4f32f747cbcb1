"""Reads files that people name: regular ones within a limit, and nothing that would be waited for or has no end."""

import errno
import io
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

MAX_BYTES: Final = 100_000_000
MAX_SETTINGS_BYTES: Final = 64_000
"""How many bytes a file of settings may have."""
_MAX_DOTS: Final = 1_000
"""How many dots a line of TOML may have: reading a key takes time with the square of its parts."""

T = TypeVar("T")


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file for reading, and nothing that would be waited for, such as a pipe.

    Raises:
        OSError: It is not there, may not be read or is not a regular file.
    """
    return io.open(open_handle(path), "rb")  # noqa: UP020 - an open handle; the caller closes it


def open_handle(path: Path) -> int:
    """Return the descriptor of a file as `open_regular` opens it; the caller closes it.

    Raises:
        OSError: See `open_regular`.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "Not a regular file", str(path))


def read_regular(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: It is not there, may not be read, is not a regular file or has more bytes.
    """
    with open_regular(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"It has more than {max_bytes:,} bytes", str(path))
    return content


def read_toml(path: Path) -> dict[str, object]:
    """Return the content of a file of settings.

    Raises:
        OSError: See `read_regular`.
        ValueError: It is not TOML in UTF-8, or nested too deep.
    """
    return parse_toml(read_regular(path, MAX_SETTINGS_BYTES).decode())


def parse_toml(text: str) -> dict[str, object]:
    """Return the content of a text in TOML.

    Raises:
        ValueError: It is malformed, or nested too deep.
    """
    import tomllib  # noqa: PLC0415 - takes milliseconds, for those who have a file

    if any(line.count(".") > _MAX_DOTS for line in text.split("\n")):
        raise ValueError(f"a line has more than {_MAX_DOTS:,} dots")
    return parsed(tomllib.loads, text)


def parsed(parse: Callable[[str], T], text: str) -> T:
    """Return what a parser makes of a text.

    Raises:
        ValueError: It is malformed, or nested too deep.
    """
    try:
        return parse(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
