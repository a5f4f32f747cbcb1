"""Requests and replies, before and after HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    """A successful answer: its headers have lower-case names, its body is complete and unpacked."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        """What the body says it is, in lower case and without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()
