"""JSON-LD that names the context of schema.org, which is on the web: one of our own stands in for it."""

import io
import json
import re
from collections.abc import Iterator
from typing import IO, Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.errors import InvalidSource
from kg_adapters.terms import XSD

SCHEMA: Final = "http://schema.org/"
_ADDRESS: Final = re.compile(r"https?://(?:www\.)?schema\.org(?:/|/docs/jsonldcontext\.jsonld?|/version/[\w./-]+)?")
_NAMED: Final = re.compile(rb'"@context"\s*:\s*(?:\[[^\]]{0,2000}?)?"https?://(?:www\.)?schema\.org')
_LINKS: Final = (
    *("sameAs", "url", "image", "logo", "photo", "mainEntityOfPage", "contentUrl", "embedUrl", "thumbnailUrl"),
    *("license", "codeRepository", "downloadUrl", "additionalType", "isBasedOn", "significantLink", "relatedLink"),
    *("discussionUrl", "installUrl", "hasMap", "availability", "itemCondition", "eventStatus", "eventAttendanceMode"),
    *("dayOfWeek", "inDefinedTermSet", "acquireLicensePage", "usageInfo", "publishingPrinciples", "schemaVersion"),
)
_TIMES: Final = (
    *("birthDate", "deathDate", "datePublished", "dateCreated", "dateModified", "datePosted", "foundingDate"),
    *("dissolutionDate", "startDate", "endDate", "uploadDate", "validFrom", "validThrough", "validUntil", "startTime"),
    *("endTime", "doorTime", "releaseDate", "expires", "availabilityStarts", "availabilityEnds", "priceValidUntil"),
    *("lastReviewed", "departureTime", "arrivalTime", "sdDatePublished", "contentReferenceTime", "dateReceived"),
)
_DATE: Final = SCHEMA + "Date"
CONTEXT: Final[dict[str, object]] = {
    "@vocab": SCHEMA,
    "schema": SCHEMA,
    "id": "@id",
    "type": "@type",
    **{name: {"@id": SCHEMA + name, "@type": "@id"} for name in _LINKS},
    **{name: {"@id": SCHEMA + name, "@type": _DATE} for name in _TIMES},
}
"""Terms of schema.org: all are in one vocabulary, some lead to addresses, some to dates."""
_FORMS: Final = (
    (re.compile(r"\d{4}"), "gYear"),
    (re.compile(r"\d{4}-\d\d"), "gYearMonth"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "date"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?"), "dateTime"),
)

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


def names_schema_org(head: bytes) -> bool:
    """Say whether a document that begins so names the context of schema.org."""
    return _NAMED.search(head) is not None


def with_context(stream: IO[bytes], name: str) -> io.BytesIO:
    """Return a document, read as a whole, with our context in the place of that of schema.org.

    Args:
        stream: The document.
        name: What messages call it.

    Raises:
        InvalidSource: It is no JSON.
    """
    try:
        content: Json = json.load(stream)
    except json.JSONDecodeError as error:
        raise InvalidSource(f"{name}, line {error.lineno}, column {error.colno}: {error.msg}.") from error
    except UnicodeDecodeError as error:
        raise InvalidSource(f"{name} is not UTF-8 text: byte {error.start:,} is {error.reason}.") from error
    except ValueError as error:
        raise InvalidSource(f"{name} holds a whole number with more digits than can be read.") from error
    return io.BytesIO(json.dumps(_replaced(content)).encode())


def with_dates(quads: Iterator[ox.Quad]) -> Iterator[ox.Quad]:
    """Yield statements with the dates of schema.org typed by their form, and as text where they have none."""
    for quad in quads:
        value = quad.object
        if isinstance(value, ox.Literal) and value.datatype.value == _DATE:
            yield ox.Quad(quad.subject, quad.predicate, _date(value.value), quad.graph_name)
        else:
            yield quad


def _date(text: str) -> ox.Literal:
    kind = next((name for form, name in _FORMS if form.fullmatch(text) is not None), "string")
    return ox.Literal(text, datatype=ox.NamedNode(XSD + kind))


def _replaced(value: Json) -> Json:
    match value:
        case dict():
            return {key: _context(item) if key == "@context" else _replaced(item) for key, item in value.items()}
        case list():
            return [_replaced(item) for item in value]
        case _:
            return value


def _context(value: Json) -> Json:
    if isinstance(value, list):
        return [_context(item) for item in value]
    if isinstance(value, str) and _ADDRESS.fullmatch(value) is not None:
        ours: Json = json.loads(json.dumps(CONTEXT))
        return ours
    return value
