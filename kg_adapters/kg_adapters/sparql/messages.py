"""Requests and replies, before and after HTTP."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it is to be sent; who sends it adds what is the same for all.

    Args:
        method: The HTTP method.
        url: Where it goes, with its parameters.
        accepted: The media types that the answer may have, the preferred first.
        headers: More headers.
        body: What is sent behind them.
    """

    method: str
    url: str
    accepted: tuple[str, ...]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A successful answer: its headers have lower-case names, its body is unpacked.

    Args:
        url: Where it came from.
        status: The HTTP status.
        headers: What it says about itself.
        body: All of it, or what came before a `BodyWatch` had enough.
        cut: Whether a `BodyWatch` had enough, so that the rest was not read.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False

    @property
    def media_type(self) -> str:
        """What the body says it is, in lower case and without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class BodyWatch(Protocol):
    """What looks at a body while it comes."""

    async def take(self, part: bytes) -> bool:
        """Look at the next part, of at most `SLICE_BYTES`, and say whether the rest is not wanted."""
        ...


Watching: TypeAlias = Callable[[HttpReply], BodyWatch]
"""Makes what looks at the body of a reply, given the reply without it; called again for each repetition."""


class _TakesAll:
    async def take(self, part: bytes) -> bool:
        del part
        return False


def unwatched(_: HttpReply) -> BodyWatch:
    """Return what wants all of a body."""
    return _TakesAll()
