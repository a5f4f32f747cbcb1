"""Checksums of rows: they tell damage, a byte that flipped or a row in a wrong place, and not forgery (no key)."""

import hashlib
import struct
from typing import Final, TypeAlias

Column: TypeAlias = int | float | str | bytes | None

_BYTES: Final = 8
_DIGEST_BYTES: Final = 16


def checksum(*columns: Column) -> bytes:
    """Return 8 bytes over the values of a row and their kinds, in order."""
    digest = hashlib.blake2b(digest_size=_BYTES)
    for column in columns:
        digest.update(_packed(column))
    return digest.digest()


def digest_of_texts(*texts: str) -> bytes:
    """Return 16 bytes that stand for texts, so that a file can look them up without holding them twice."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for text in texts:
        digest.update(_packed(text))
    return digest.digest()


def _packed(column: Column) -> bytes:
    """Return a value so that no two rows look alike. Texts and bytes may: a file that is read as bytes has no texts."""
    match column:
        case None:
            return b"n"
        case int():
            return b"i%d;" % column
        case float():
            return b"f" + struct.pack(">d", column)
        case str():
            return _packed(column.encode())
        case bytes():
            return b"b%d;" % len(column) + column
