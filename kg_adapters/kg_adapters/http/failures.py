"""Translates everything that can go wrong between this client and an endpoint into errors with readable messages."""

import html
import re
import ssl
from dataclasses import dataclass
from typing import Final

import httpx2
from pydantic import TypeAdapter
from pydantic_core import from_json

from kg_adapters.errors import BackendError, BackendTimeout, BackendUnavailable, InvalidRequest, KGError, causes
from kg_adapters.http.options import ServiceName
from kg_adapters.open_options import setting
from kg_boundary.secrets import Redactor
from kg_boundary.shown import clipped, in_quotes, one_line

MAX_QUOTED: Final = 300
_TAGS: Final = re.compile(r"<(script|style|head)\b.*?</\1\s*>|<[^<>]{0,500}>", re.IGNORECASE | re.DOTALL)
_MARKUP: Final = re.compile(r"\s*<(?:!doctype|html|head|body)\b", re.IGNORECASE)
# Engines put what is wrong behind the query, or before it.
_BEFORE: Final = re.compile(r"\A.*(?:MalformedQueryException|QueryParseException|VisitorException): ")
_BEHIND: Final = re.compile(r" at [\w$.]+\([\w.]+:\d+\).*")
_VIRTUOSO_QUERY: Final = "\nSPARQL query:\n"
_SAYING: Final = ("exception", "detailedmessage", "message", "detail", "error_description", "error")
_DOCUMENT: Final = TypeAdapter(dict[str, object])
_TIMED_OUT: Final = re.compile(
    r"time(?:d)?[ -]?out|TimeoutException|TimeLimitExceeded|execution time|S1T00|QueryInterrupted|QueryCancelled",
    re.IGNORECASE,
)
# One query needs more memory than an engine lets it have; others are answered as before.
_OUT_OF_MEMORY: Final = re.compile(
    r"Tried to allocate|MemoryLimitExceeded|OutOfMemoryError|Insufficient free heap memory|transitive temp memory",
    re.IGNORECASE,
)
_QLEVER_LIMIT: Final = "User submitted timeout was higher"
# QLever reports with 429 that a query was cancelled, most often by its time limit.
_QLEVER_CANCELLED: Final = re.compile(r"Operation (?:timed out|was manually cancelled)")
# Virtuoso answers 500 to queries that it does not want; states 08 and 40 are its own trouble.
_VIRTUOSO_REFUSAL: Final = re.compile(r"Virtuoso (?!08|40)[0-9A-Z]{5} Error")
_DISCONNECTED: Final = re.compile("disconnected|closed connection")
_QUERY_IS_WRONG: Final = frozenset({400, 413, 414, 422})
_FAILED: Final = frozenset({500, 503})
_MAY_PASS: Final = frozenset({429, 502, 503, 504})
_ADVICE: Final = {
    401: "Check the authentication in its settings.",
    403: "It does not permit this client to: check the authentication and the user agent in its settings.",
    404: "There is no {service} at this path: check the URL.",
    405: "Check that the URL is that of the {service}.",
    406: "It cannot answer in JSON, which is required here.",
    407: "The proxy requires authentication: check the proxy's URL.",
    429: "Ask again later, and less often.",
    500: "Ask for less, or again later; if every query fails, its owner can find the reason in its log.",
    501: "It does not support this query.",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request got no answer.

    Args:
        error: The error to raise.
        may_pass: Whether the same request may well succeed a little later.
        counts: Whether it shows that the endpoint itself is in trouble.
        retry_after_s: For how many seconds the endpoint asked to be left alone.
        cause: The foreign error behind it.
    """

    error: KGError
    may_pass: bool = False
    counts: bool = False
    retry_after_s: float | None = None
    cause: Exception | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer with a status that is no success.

    Args:
        status: The HTTP status.
        text: What stands in its body, as far as it was read.
        retry_after_s: For how many seconds it asks to be left alone.
        retry_at: What time it is then.
    """

    status: int
    text: str
    retry_after_s: float | None = None
    retry_at: str = ""


class FailureMessages:
    """Writes the messages of one endpoint's failures.

    Args:
        who: The endpoint, as a sentence begins.
        redactor: Takes out what must never be quoted, should the endpoint echo it.
        service: What it should be.
    """

    def __init__(self, who: str, redactor: Redactor, service: ServiceName = "SPARQL endpoint") -> None:
        self._who = who
        self._service = service
        self._asked = "query" if service == "SPARQL endpoint" else "request"
        self._redactor = redactor

    def refused(self, refusal: Refusal) -> Failure:
        """Return the failure behind an HTTP status."""
        status, said = refusal.status, self.quoted(refusal.text)
        if status in _QUERY_IS_WRONG:
            what = (
                f"finds the {self._asked} too long" if status in {413, 414} else f"says that the {self._asked} is wrong"
            )
            return Failure(InvalidRequest(f"{self._who} {what} (HTTP {status}){said} Change the {self._asked}."))
        reason = _reason(refusal.text)
        if status in _FAILED and _OUT_OF_MEMORY.search(reason):
            what = f"has too little memory for this {self._asked} (HTTP {status}){said}"
            return Failure(BackendError(f"{self._who} {what} Narrow it, or ask for less at once."))
        if (status in _FAILED and _TIMED_OUT.search(reason)) or (status == 429 and _QLEVER_CANCELLED.match(reason)):
            return Failure(
                BackendTimeout(f"{self._who} gave up on the {self._asked} (HTTP {status}){said} Ask for less at once.")
            )
        if status == 403 and reason.startswith(_QLEVER_LIMIT):
            what = f"allows less time for a {self._asked} than it was asked for (HTTP 403){said}"
            return Failure(BackendError(f"{self._who} {what} Lower {setting('timeout_s')}."))
        if status == 500 and _VIRTUOSO_REFUSAL.search(reason):
            return Failure(BackendError(f"{self._who} refuses this query (HTTP 500){said} Change it, or ask for less."))
        return self._unserved(refusal, said)

    def _unserved(self, refusal: Refusal, said: str) -> Failure:
        status, seconds = refusal.status, refusal.retry_after_s
        advice = _ADVICE.get(status, "Ask again later." if status >= 500 else "Check its settings.")
        advice = advice.format(service=self._service)
        if seconds is not None and status in _MAY_PASS:
            advice = f"It asks to be left alone for {seconds:.0f} s: ask again at {refusal.retry_at}."
        what = "is asked too often" if status == 429 else "cannot serve now" if status in _MAY_PASS else "failed"
        kind = BackendUnavailable if status in _MAY_PASS else BackendError
        return Failure(
            kind(f"{self._who} {what} (HTTP {status}){said} {advice}"),
            may_pass=status in _MAY_PASS,
            counts=status >= 500 and status != 501,
            retry_after_s=seconds if status in _MAY_PASS else None,
        )

    def broken(self, error: Exception) -> Failure:
        """Return the failure behind an error of the HTTP client."""
        certificate = next((each for each in causes(error) if isinstance(each, ssl.SSLError)), None)
        if certificate is not None:
            return Failure(BackendUnavailable(self._mistrusted(certificate)), counts=True, cause=error)
        match error:
            case httpx2.ProxyError():
                text, may_pass = "cannot be reached through the proxy. Check the proxy's URL.", True
            case httpx2.ConnectError():
                reason = _connection_problem(error)
                text = f"cannot be reached: {reason}. Check its URL and that it is running, then ask again."
                may_pass = True
            case httpx2.TransportError() if _hung_up(error):
                text = "dropped the connection before its answer was complete. Ask again; if it repeats, ask for less."
                may_pass = True
            case _:
                text, may_pass = f"answered what HTTP does not allow ({type(error).__name__}). Check its URL.", False
        return Failure(BackendUnavailable(f"{self._who} {text}"), may_pass=may_pass, counts=True, cause=error)

    def _mistrusted(self, error: Exception) -> str:
        if not isinstance(error, ssl.SSLCertVerificationError):
            return f"{self._who} does not speak TLS as it should. Check that its URL starts with https rightly."
        step = (
            "Its owner must renew it."
            if "expired" in error.verify_message
            else "If a private authority signed it, name that authority's file in the setting ca_file."
        )
        return f"{self._who} has a certificate that cannot be trusted: {error.verify_message}. {step}"

    def late(self, timeout_s: float, doing: str, before: Failure | None) -> Failure:
        """Return the failure of an answer that did not come in time.

        Args:
            timeout_s: How many seconds there were.
            doing: What was under way, as in "waiting for its answer".
            before: The failure that the last request ended with, if it was being repeated.
        """
        earlier = f" Before that: {before.error}" if before else ""
        seconds = timeout_s if timeout_s < 1 else round(timeout_s, 1)
        text = f"{self._who} gave no answer within {seconds:g} s; time ran out while {doing}."
        name = "embedding.timeout_s" if self._service == "embedding service" else "timeout_s"
        return Failure(BackendTimeout(f"{text} To wait longer, raise {setting(name)}.{earlier}"), counts=True)

    def too_large(self, max_bytes: int) -> Failure:
        """Return the failure of an answer that has more bytes than allowed."""
        size = f"{max_bytes / 1e6:g} MB"
        text = f"The answer of the{self._who[3:]} is larger than {size} and was not read further."
        if self._service == "embedding service":
            return Failure(BackendError(text))
        return Failure(BackendError(f"{text} Ask for less (a smaller LIMIT), or raise the setting endpoint.max_mb."))

    def unpackable(self, encoding: str) -> Failure:
        """Return the failure of an answer whose compression cannot be undone."""
        named = in_quotes(self._brief(encoding, 40))
        return Failure(BackendError(f"{self._who} compressed its answer ({named}) in a way that cannot be read."))

    def wrong_type(self, media_type: str, text: str) -> Failure:
        """Return the failure of an answer of another type than was asked for."""
        shown = self._brief(media_type, 80) or "an unnamed type"
        step = f"Check that the URL is that of the {self._service}."
        return Failure(BackendError(f"{self._who} answered with {shown} instead of results{self.quoted(text)} {step}"))

    def unreadable(self, what: str, cause: Exception) -> Failure:
        """Return the failure of an answer that is not what its type promises; `what` is part of a sentence."""
        step = f"Ask again; if it repeats, ask for less, or tell the {self._service.removeprefix('SPARQL ')}'s owner."
        shown = self._brief(what)
        return Failure(BackendError(f"{self._who} sent an answer that cannot be read: {shown}. {step}"), cause=cause)

    def redirected(self, origin: str) -> Failure:
        """Return the failure of an answer that leads elsewhere; `origin` is where, without path and credentials."""
        where = f"to {self._brief(origin)}" if origin else "to nowhere"
        step = f"If that is the {self._service.removeprefix('SPARQL ')}, set its URL."
        return Failure(BackendError(f"{self._who} redirects {where}, and redirects are not followed there. {step}"))

    def quoted(self, text: str) -> str:
        """Return an endpoint's own message, in plain words, as the end of a sentence; else a full stop."""
        # What is written in HTML or JSON may hold secrets in other forms still, once it is read.
        said = self._brief(_plain(self._redactor.message(text))).rstrip(".")
        return f": {said}." if said else "."

    def _brief(self, text: str, most: int = MAX_QUOTED) -> str:
        return _shortened(self._redactor.message(text), most)


def _hung_up(error: httpx2.TransportError) -> bool:
    """Return whether the other side ended the connection, rather than break the rules of HTTP."""
    return isinstance(error, httpx2.NetworkError) or _DISCONNECTED.search(str(error)) is not None


def _connection_problem(error: Exception) -> str:
    for each in causes(error):
        if isinstance(each, ConnectionRefusedError):
            return "the connection was refused"
        if isinstance(each, OSError) and each.strerror:
            return each.strerror.lower()
    return "no connection could be made"


def _plain(text: str) -> str:
    stripped = _reason(text)
    if _MARKUP.match(stripped):
        stripped = html.unescape(_TAGS.sub(" ", stripped))
    return _BEHIND.sub("", _BEFORE.sub("", " ".join(stripped.split())))


def _reason(text: str) -> str:
    """Return an engine's message without the query, which it may repeat."""
    stripped = text.partition(_VIRTUOSO_QUERY)[0].strip()
    return (_said_in_json(stripped) or stripped) if stripped.startswith("{") else stripped


def _said_in_json(text: str) -> str | None:
    try:
        # Of a long document only the beginning is read.
        document = _DOCUMENT.validate_python(from_json(text, allow_partial=True))
    except ValueError:
        return None
    if isinstance(nested := document.get("error"), dict):
        document = _DOCUMENT.validate_python(nested)
    said = {name.lower(): value for name, value in document.items() if isinstance(value, str)}
    found = next((said[name] for name in _SAYING if said.get(name)), None)
    return f"{said['code']}: {found}" if found and said.get("code") else found


def _shortened(text: str, most: int) -> str:
    words = one_line(text)
    return clipped(words, most)
