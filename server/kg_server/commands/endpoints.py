"""How the SPARQL endpoint or Wikidata is reached that a command reads, from its settings."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kg_adapters.errors import InvalidRequest
from kg_adapters.registry import URLS, WIKIDATA
from kg_boundary.validation import in_plain_words
from kg_server.settings import Settings

if TYPE_CHECKING:
    from pydantic import ValidationError

    from kg_adapters.sparql.options import Authentication, EndpointOptions
    from kg_adapters.wikidata.options import WikidataOptions

# What is left of a call's time lets the endpoint's own reason reach the caller.
_SHARE: Final = 0.9


def endpoint_of(settings: Settings) -> "EndpointOptions | None":
    """Return how the graph's endpoint is reached, or None where the graph is none.

    Raises:
        InvalidRequest: A setting is wrong, or two of them do not go together.
    """
    if not settings.graph.startswith(URLS):
        return None
    from pydantic import ValidationError

    from kg_adapters.sparql.options import EndpointOptions

    try:
        return EndpointOptions(
            url=settings.graph,
            default_graphs=settings.endpoint_default_graphs,
            named_graphs=settings.endpoint_named_graphs,
            authentication=_authentication(settings),
            timeout_s=settings.timeout_s * _SHARE,
            max_bytes=settings.endpoint_max_mb * 1_000_000,
            max_concurrency=settings.endpoint_max_concurrency,
            max_retries=settings.endpoint_max_retries,
            text_search=settings.endpoint_text_search,
            dialect=settings.endpoint_dialect,
            ca_file=settings.endpoint_ca_file,
            redactor=settings.redactor,
        )
    except ValidationError as error:
        raise _wrong(error, "endpoint_", {"url": "graph"}) from error


def wikidata_of(settings: Settings) -> "WikidataOptions | None":
    """Return how Wikidata is reached, or None where the graph is another one.

    Raises:
        InvalidRequest: A setting is wrong.
    """
    if settings.graph.partition(":")[0] != WIKIDATA:
        return None
    from pydantic import ValidationError

    from kg_adapters.wikidata.options import WikidataOptions

    try:
        return WikidataOptions(
            contact=settings.wikidata_contact,
            query_url=settings.wikidata_query_url,
            scholarly_url=settings.wikidata_scholarly_url or None,
            api_url=settings.wikidata_api_url,
            dialect=settings.wikidata_dialect,
            languages=settings.languages,
            requests_per_minute=settings.wikidata_requests_per_minute,
            max_concurrency=settings.wikidata_max_concurrency,
            timeout_s=settings.timeout_s * _SHARE,
            max_bytes=settings.endpoint_max_mb * 1_000_000,
            max_retries=settings.endpoint_max_retries,
            maxlag_s=settings.wikidata_maxlag_s,
            most_counted=settings.wikidata_most_counted,
            replies_kept_s=settings.wikidata_replies_kept_s,
            with_qualifiers=settings.wikidata_qualifiers,
            with_external_ids=settings.wikidata_external_ids,
            redactor=settings.redactor,
        )
    except ValidationError as error:
        raise _wrong(error, "wikidata_", {"languages": "languages"}) from error


def _wrong(error: "ValidationError", prefix: str, names: Mapping[str, str]) -> InvalidRequest:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = str(first["loc"][0])
    message = in_plain_words(first["msg"])
    return InvalidRequest(f"The setting {names.get(field, prefix + field)}: {message}.")


def _authentication(settings: Settings) -> "Authentication | None":
    from kg_adapters.sparql.options import BasicAuthentication, BearerAuthentication, DigestAuthentication

    user, password, token = settings.endpoint_user, settings.endpoint_password, settings.endpoint_token
    if token is not None:
        if user is not None or password is not None:
            raise InvalidRequest("Set either endpoint_token, or endpoint_user and endpoint_password; not both.")
        return BearerAuthentication(token=token)
    if user is None and password is None:
        return None
    if user is None or password is None:
        raise InvalidRequest("endpoint_user and endpoint_password go together: set both or neither.")
    return (DigestAuthentication if settings.endpoint_digest else BasicAuthentication)(user=user, password=password)
