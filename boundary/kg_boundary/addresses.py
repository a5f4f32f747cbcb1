"""Masks what may be a password in the addresses of a text."""

import re
import shlex
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

MASK: Final = "…"
"""What stands where something is not shown."""

# An apostrophe may stand in an address, and may be the quotation mark behind it.
_ADDRESS: Final = re.compile(r"""(?<=://)(?:[^\s"<>']|'(?=[^\s"<>'.,:;)\]}]))+""")
_USER: Final = re.compile(r"[^/?#]*@")
# A password with a slash or a question mark in it belongs to no valid address, and is written all the same. What stands
# behind the colon is a port where it has digits alone up to the path.
_USER_WITH_ANYTHING: Final = re.compile(r"[^/?#@:]*:(?!\d{1,5}(?:[/?#]|$)).*@")
_QUERY: Final = re.compile(r"\?[^#]+")
_ASSIGNMENT: Final = re.compile(r"#[^#]*=.*")
_SECRET_NAME: Final = re.compile(r"key|token|secret|pass|pwd|auth|credential|signature|\bsig\b|cookie", re.IGNORECASE)
_HEADER: Final = re.compile(r"(?:bearer|basic|token)\s+(\S+)|(?:key|token|secret|cookie):\s*(\S+)", re.IGNORECASE)
_CLOSING: Final = ".,:;)]}"


def masked(text: str) -> str:
    """Return a text in which no address shows a user, a password, a query or what is assigned in a fragment."""
    return _ADDRESS.sub(lambda found: _masked(found[0]), text) if "://" in text else text


def base_url_problem(url: str) -> str | None:
    """Return why a URL cannot have paths appended, in words that show nothing of it; None where it can."""
    if not url.lower().startswith(("http://", "https://")):
        return "it must start with http:// or https://"
    if "?" in url or "#" in url:
        return "it must end before ? or #: what follows would be sent at a wrong place; give a key as the key"
    return None


def credentials_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield what may be secret in an address, as pairs of user and secret; the user is empty where there is none.

    Values of a query are, where their name says so; all that it holds is masked wherever the address is shown.
    """
    try:
        parts = urlsplit(text)
    except ValueError:
        return
    if not parts.scheme or not parts.netloc:
        return
    userinfo, at, _ = parts.netloc.rpartition("@")
    if at:
        user, _, password = userinfo.partition(":")
        # A lone user is a token, as in https://TOKEN@host.
        yield (unquote(user), unquote(password)) if password else ("", unquote(user))
    for assignment in (parts.query, parts.fragment if "=" in parts.fragment else ""):
        pairs = parse_qsl(assignment)
        yield from (("", value) for name, value in pairs if _SECRET_NAME.search(name))
        if assignment and not pairs:
            yield "", unquote_plus(assignment.removesuffix("="))


def masked_command(line: str) -> str:
    """Return a command line that shows no more than its program: any other word may be a secret."""
    program, *others = line.split(maxsplit=1) or [""]
    return f"{masked(program)} {MASK}" if others else masked(program)


def credentials_in_command(line: str) -> Iterator[str]:
    """Yield the words of a command line that are secrets by their names, as in `--api-key KEY` and `TOKEN=KEY`."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    for word, before in zip(words, ["", *words], strict=False):
        name, assigned, value = ("", "", "") if _ADDRESS.search(word.partition("=")[0]) else word.partition("=")
        if assigned and _SECRET_NAME.search(name):
            yield value
        elif before.startswith("-") and "=" not in before and _SECRET_NAME.search(before):
            yield word.rpartition(" ")[2]
        elif found := _HEADER.search(word):
            yield found[1] or found[2]
        yield from (secret for _, secret in credentials_in(value or word))


def _masked(address: str) -> str:
    shown = address.rstrip(_CLOSING)
    end = address[len(shown) :]
    user = _USER_WITH_ANYTHING.match(shown) or _USER.match(shown)
    if user:
        shown = f"{MASK}@{shown[user.end() :]}"
    return _ASSIGNMENT.sub(f"#{MASK}", _QUERY.sub(f"?{MASK}", shown)) + end
