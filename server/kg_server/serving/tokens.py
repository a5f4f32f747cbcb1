"""A private file of hashed bearer tokens: each is shown once, when it is made."""

import hmac
import logging
import re
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import Annotated, Final, Literal, TypeAlias

from filelock import FileLock
from pydantic import Field, JsonValue, ValidationError

from kg_adapters.errors import InvalidRequest
from kg_adapters.sections import Section
from kg_boundary.private_files import private_folder, write_private
from kg_boundary.regular_files import read_regular
from kg_boundary.shown import shown_within

PREFIX: Final = "kgs_"
"""What every token begins with, so that it differs from a JWT and scanners for secrets find it."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_RANDOM_BYTES: Final = 32
_MAX_FILE_BYTES: Final = 4_000_000
_DAY_S: Final = 86_400


_Second: TypeAlias = Annotated[int, Field(ge=0, le=250_000_000_000)]
"""Seconds since 1970, until some time before the year 10,000."""


class StaticToken(Section):
    """What is known of one token: everything but the token."""

    name: Annotated[str, Field(pattern=f"^{_NAME.pattern}$")]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    scopes: tuple[str, ...]
    tools: tuple[str, ...] | None = None
    created: _Second
    expires: _Second | None = None

    @property
    def expired(self) -> bool:
        """Whether its time is over."""
        return self.expires is not None and self.expires <= time.time()


class _Content(Section):
    """Entries are kept as they are: one that is malformed here may be another version's."""

    version: Literal[1] = 1
    tokens: tuple[JsonValue, ...] = ()

    def readable(self, path: Path) -> tuple[StaticToken, ...]:
        """Return the tokens without malformed entries, which are logged and give access to nobody.

        Raises:
            ValidationError: All are malformed.
        """
        found: list[StaticToken] = []
        for number, entry in enumerate(self.tokens, start=1):
            try:
                found.append(StaticToken.model_validate(entry))
            except ValidationError as error:
                fields = ", ".join(sorted({str(place) for each in error.errors() for place in each["loc"][:1]}))
                logger.warning("Entry %d of the tokens in %s is left out: %s", number, path, fields or "no token")
                if number == len(self.tokens) and not found:
                    raise
        return tuple(found)


def _name_of(entry: JsonValue) -> JsonValue:
    return entry.get("name") if isinstance(entry, dict) else None


logger = logging.getLogger(__name__)


class TokenFile:
    """The tokens in one file, which is read again whenever it has changed.

    Args:
        path: The file; without it there are no tokens.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state: tuple[int, ...] | None = None
        self._tokens: tuple[StaticToken, ...] = ()
        self._entries: tuple[JsonValue, ...] = ()

    def tokens(self) -> tuple[StaticToken, ...]:
        """Return the tokens, expired ones included and malformed entries left out.

        Raises:
            InvalidRequest: The file cannot be read, or is not one of tokens.
        """
        # Each request comes here on the event loop: a stat takes a microsecond, and a change shows at once.
        try:
            status = self.path.stat()
            state = (status.st_mtime_ns, status.st_size, status.st_ino)
            if state != self._state:
                content = read_regular(self.path, _MAX_FILE_BYTES)
                read = _Content.model_validate_json(content)
                self._tokens, self._entries, self._state = read.readable(self.path), read.tokens, state
        except FileNotFoundError:
            self._tokens, self._entries, self._state = (), (), None
        except (OSError, ValidationError) as error:
            self._tokens, self._entries, self._state = (), (), None
            reason = error.strerror if isinstance(error, OSError) else "it is not a file of tokens"
            raise InvalidRequest(f"The tokens in {self.path} cannot be read: {reason}.") from error
        return self._tokens

    def find(self, token: str) -> StaticToken | None:
        """Return what is known of a token; None for one that is unknown, revoked or expired.

        Raises:
            InvalidRequest: As by `tokens`.
        """
        # A token is 256 random bits, so that nobody can find it from its hash by trying.
        digest = sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
        found = [each for each in self.tokens() if hmac.compare_digest(each.sha256, digest)]
        return found[0] if found and not found[0].expired else None

    def add(self, name: str, scopes: Sequence[str], tools: Sequence[str] | None, expires_days: float | None) -> str:
        """Make a token and return it; it is kept nowhere, and cannot be shown again.

        Raises:
            InvalidRequest: The name is malformed or taken, or the file cannot be read or written.
        """
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"A token cannot be named {shown_within(name, 80)}: names have up to 64 letters, digits and . _ @ -"
            )
        token = f"{PREFIX}{token_urlsafe(_RANDOM_BYTES)}"
        now = int(time.time())
        made = StaticToken(
            name=name,
            sha256=sha256(token.encode()).hexdigest(),
            scopes=tuple(scopes),
            tools=None if tools is None else tuple(tools),
            created=now,
            expires=None if expires_days is None else now + int(expires_days * _DAY_S),
        )
        with self._locked():
            self.tokens()
            if any(_name_of(each) == name for each in self._entries):
                raise InvalidRequest(f"There is a token {name} already. Revoke it first, or choose another name.")
            self._write((*self._entries, made.model_dump(mode="json", exclude_none=True)))
        return token

    def revoke(self, name: str) -> None:
        """Delete a token, which is refused from the next request on.

        Raises:
            InvalidRequest: There is none of this name, or the file cannot be read or written.
        """
        with self._locked():
            known = self.tokens()
            kept = tuple(each for each in self._entries if _name_of(each) != name)
            if len(kept) == len(self._entries):
                there = f"The tokens are {', '.join(each.name for each in known)}." if known else "There are no tokens."
                raise InvalidRequest(f"There is no token {shown_within(name, 80)}. {there}")
            self._write(kept)

    @contextmanager
    def _locked(self) -> Generator[None]:
        lock = FileLock(self.path.with_name(f"{self.path.name}.lock"), mode=0o600)
        try:
            private_folder(self.path.parent)
            lock.acquire()
        except OSError as error:
            raise InvalidRequest(f"No tokens can be kept in {self.path.parent}: {error.strerror}.") from error
        try:
            yield
        finally:
            lock.release()

    def _write(self, entries: tuple[JsonValue, ...]) -> None:
        content = _Content(tokens=entries).model_dump_json(indent=1)
        try:
            # A revoked token must not come back when the machine fails.
            write_private(self.path, content.encode(), durable=True)
        except OSError as error:
            raise InvalidRequest(f"The tokens in {self.path} cannot be written: {error.strerror}.") from error
