"""Takes secrets out of what leaves the process, in every form that a service may repeat them in.

A message is redacted first, then its control characters are escaped, then it is shortened: a secret that is cut before
is not found as a whole, and one that is escaped before is found only because escapes are undone here as well.
"""

import logging
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final
from urllib.parse import quote

from kg_boundary.addresses import MASK, credentials_in, masked
from kg_boundary.log_lines import LogLines
from kg_boundary.readings import readings
from kg_boundary.secret_forms import STRONG, Form, forms_of, places

_MASK_BYTES: Final = MASK.encode()
# Whose credentials they are, a service may know better than the settings: a proxy's, or those of a cookie.
_CREDENTIALS: Final = re.compile(
    r"(authorization.{1,24}?\b(?:basic|bearer|digest|negotiate|token|apikey)(?:\s|\+|%20)+)[^\s\"'<>,;&]+",
    re.IGNORECASE | re.DOTALL,
)
_PLAIN_RUN: Final = re.compile(rb"([A-Za-z0-9]+)")
_LEAST_PLAIN: Final = 2
_WIDTH: Final = 12
"""How many characters an escape of one may take."""
_MARGIN: Final = 1_000
"""How much of a large text is read around the trace of a secret."""
LARGE: Final = 20_000
"""Of texts with more bytes only what stands near a trace of a secret is read closely."""


@dataclass(frozen=True)
class Redactor:
    """Takes secrets out of texts.

    Args:
        secrets: Passwords, tokens and keys; empty ones are ignored.
        users: Who has them.
    """

    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    users: frozenset[str] = field(default=frozenset(), repr=False)

    def also(self, secrets: Iterable[str] = (), users: Iterable[str] = ()) -> "Redactor":
        """Return one that takes out these too."""
        more = Redactor(self.secrets | {*secrets} - {""}, self.users | {*users} - {""})
        return self if more == self else more

    def also_in(self, *addresses: str, key: str | None = None) -> "Redactor":
        """Return one that takes out what addresses hold that may be secret too, and a key."""
        found = [each for address in addresses for each in credentials_in(address)]
        return self.also([key or "", *(secret for _, secret in found)], [user for user, _ in found])

    def message(self, text: str) -> str:
        """Return a text for people or models without secrets, echoed credentials and what addresses may hide.

        Of a secret that is cut by the end of the text, or by an ellipsis, the beginning is taken out too.
        """
        return masked(self.text(text))

    def text(self, text: str) -> str:
        """Return a text like `message`, with its addresses as they are: those of a graph are its names."""
        # A lone half of a character, which cannot be written, becomes a question mark.
        without = self._without(text.encode("utf-8", "replace"), self._forms, cut=True)
        shown = text if without is None else without.decode("utf-8", "replace")
        return _CREDENTIALS.sub(rf"\1{MASK}", shown)

    def data(self, content: bytes) -> bytes:
        """Return what a service answered without the secrets that it repeats; everything else stays as it is.

        Secrets of fewer than eight characters stay: they are words, which answers are made of. In large answers so do
        those in escapes that nobody needs, as of letters.
        """
        without = self._without(content, self._strong_forms, cut=False)
        return content if without is None else without

    async def in_slices(self, slices: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """Yield an answer like `data`, while it comes; a secret that two slices share is found as well."""
        forms = self._strong_forms
        held = b""
        kept = _WIDTH * max((len(form.value) for form in forms), default=0)
        async with aclosing(slices):
            async for part in slices:
                content = held + part
                end = max(0, len(content) - kept)
                spans = _spans(content, forms, cut=False)
                # What begins before the end of what is given out, and ends behind it, waits as a whole.
                end = min((start for start, last in spans if start < end < last), default=end)
                held = content[end:]
                if shown := _replaced(content[:end], [span for span in spans if span[1] <= end]):
                    yield shown
        if held:
            yield self.data(held)

    @cached_property
    def _forms(self) -> tuple[Form, ...]:
        return forms_of(sorted(self.secrets), sorted(self.users))

    @cached_property
    def _strong_forms(self) -> tuple[Form, ...]:
        return forms_of(sorted(each for each in self.secrets if len(each) >= STRONG), sorted(self.users))

    def _without(self, content: bytes, forms: tuple[Form, ...], *, cut: bool) -> bytes | None:
        """Return content without the forms; None where it has none of them."""
        if not forms:
            return None
        found = _spans(content, forms, cut=cut)
        return _replaced(content, found) if found else None


class RedactingFormatter(LogLines):
    """Formats a line of the log, with its traceback, as `LogLines` does, and takes the secrets out.

    Args:
        redacted: Takes them out, as `Redactor.message` does.
        form: The form of a line, as of `logging.Formatter`.
    """

    def __init__(self, redacted: Callable[[str], str], form: str) -> None:
        super().__init__(form)
        self._redacted = redacted

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return self._redacted(super().format(record))


def _spans(content: bytes, forms: tuple[Form, ...], *, cut: bool) -> list[tuple[int, int]]:
    """Return where the forms stand, in their order; no two of these places touch."""
    found: set[tuple[int, int]] = set()
    if not forms:
        return []
    for start, end in _near(content, forms, cut=cut) if len(content) > LARGE else [(0, len(content))]:
        found.update((start + first, start + last) for first, last in _found(content[start:end], forms, cut=cut))
    return _merged(sorted(found))


def _found(content: bytes, forms: tuple[Form, ...], *, cut: bool) -> Iterator[tuple[int, int]]:
    for reading in readings(content):
        for form in forms:
            for start, end in places(reading.text, form, cut=cut):
                yield reading.starts[start], reading.ends[end - 1]


def _near(content: bytes, forms: tuple[Form, ...], *, cut: bool) -> list[tuple[int, int]]:
    """Return the parts of a large content in which a form may stand: where its letters and digits come in a row."""
    parts = [(len(content) - _MARGIN, len(content))] if cut else []
    for form in forms:
        spans = (found.span() for found in _trace(form.value).finditer(content))
        parts.extend((max(0, start - _MARGIN), end + _MARGIN) for start, end in spans)
    return _merged(sorted(parts))


def _trace(value: bytes) -> re.Pattern[bytes]:
    """Return what finds a value where all but its letters and digits may be escaped."""
    parts = _PLAIN_RUN.split(value)
    if sum(map(len, parts[1::2])) < _LEAST_PLAIN:
        return re.compile(b"|".join(re.escape(each) for each in (value, quote(value, safe="").encode())))
    # What stands before the first letter and behind the last is looked at closely anyway.
    between = enumerate(parts[1:-1])
    wide = (each if not place % 2 else b".{%d,%d}" % (len(each), _WIDTH * len(each)) for place, each in between)
    return re.compile(b"".join(wide), re.DOTALL)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _replaced(content: bytes, spans: list[tuple[int, int]]) -> bytes:
    parts: list[bytes] = []
    last = 0
    for start, end in spans:
        parts += content[last:start], _MASK_BYTES
        last = end
    return b"".join((*parts, content[last:]))
