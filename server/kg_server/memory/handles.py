"""Handles: who knows one may read and extend a memory, so that they are as secret as a password."""

import hashlib
import secrets
from typing import Final

PREFIX: Final = "mem_"
_RANDOM_BYTES: Final = 18


def new_handle() -> str:
    """Return a handle that nobody can guess: 144 random bits."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def digest_of(handle: str) -> bytes:
    """Return what a store keeps in place of a handle, 32 bytes.

    A file of digests gives no handle away, and looking one up takes as long whatever the handle has in common with one
    that exists.
    """
    return hashlib.sha256(handle.strip().encode(errors="surrogatepass")).digest()
