"""For whom something is done, where the callers of a process can be told apart."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_CALLER: Final[ContextVar[str]] = ContextVar("_CALLER", default="")


@contextmanager
def calling_as(caller: str) -> Generator[None]:
    """Let what happens in this context, and in tasks that are started in it, happen for a caller."""
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)


def current_caller() -> str:
    """Return for whom something is done now; the same empty text for all that cannot be told apart."""
    return _CALLER.get()
