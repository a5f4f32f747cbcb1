"""How Wikidata is reached, and how politely."""

import re
from importlib.metadata import version
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from kg_adapters.http.options import DialectName, EndpointOptions, endpoint_url
from kg_adapters.labels import language_tag
from kg_adapters.sections import Section
from kg_boundary.secrets import Redactor

QUERY_URL: Final = "https://query.wikidata.org/sparql"
SCHOLARLY_URL: Final = "https://query-scholarly.wikidata.org/sparql"
API_URL: Final = "https://www.wikidata.org/w/api.php"
ANONYMOUS_PER_MINUTE: Final = 10
KNOWN_PER_MINUTE: Final = 200
"""What Wikimedia allows a client that names a contact (https://www.mediawiki.org/wiki/Wikimedia_APIs/Rate_limits)."""
MAX_API_CONCURRENCY: Final = 3
MAX_API_MB: Final = 8
"""Fifty entities with their names in all languages are two or three; an answer of the web API is decoded at once."""
WIKIMEDIA: Final = ".wikidata.org"
LAST_LANGUAGES: Final = ("mul", "en")
_CONTACT: Final = re.compile(r"[^@\s()]+@[^@\s()]+\.[^@\s()]+|https?://[^\s()]+")


def _contact(text: str) -> str:
    if _CONTACT.fullmatch(text) is None or not text.isascii():
        raise ValueError("it must be an e-mail address or the URL of a page, where Wikimedia can reach you")
    return text


Url = Annotated[str, AfterValidator(endpoint_url)]


class WikidataSettings(Section):
    """What people set about Wikidata, or a mirror of it."""

    contact: Annotated[str, AfterValidator(_contact)] | None = Field(
        default=None,
        description="Your e-mail address or the URL of your page; with it Wikimedia allows more requests.",
    )
    query_url: Url = Field(default=QUERY_URL, description="The URL of the query service.")
    scholarly_url: Annotated[Url | None, BeforeValidator(lambda url: url or None)] = Field(
        default=SCHOLARLY_URL,
        description="The URL of the query service for scholarly articles, which is asked about entities that the main "
        "one lacks; empty for none.",
    )
    api_url: Url = Field(default=API_URL, description="The URL of the web API, which finds names.")
    dialect: DialectName = Field(
        default="standard", description="The engine of the query service; `standard` works with every engine."
    )
    requests_per_minute: int | None = Field(
        default=None, ge=1, description="How many requests one host gets per minute; by default what Wikimedia allows."
    )
    replies_kept_s: float = Field(
        default=86_400.0,
        ge=0,
        description="For how many seconds responses are kept in the cache folder; 0 turns this off.",
    )
    qualifiers: bool = Field(default=False, description="Whether `Feature` shows the qualifiers of statements.")
    external_ids: bool = Field(
        default=False, description="Whether `Feature` shows the entity's ids in other databases."
    )


class WikidataOptions(WikidataSettings):
    """Where Wikidata or a mirror of it is, who asks, and how much.

    Args:
        languages: The languages of labels, the preferred first; names for all languages and English names come after
            them.
        max_concurrency: The most queries at once.
        timeout_s: The most seconds that one query may take.
        max_mb: The most megabytes of one answer, unpacked.
        max_retries: How often a request is repeated after a failure that may pass.
        maxlag_s: The web API is asked to refuse when its copies are further behind than so many seconds.
        most_counted: How many edges of one direction are read to count those of a batch of entities.
        names_kept_s: How many seconds names are cached.
        redactor: Removes secrets.
    """

    languages: Annotated[tuple[Annotated[str, AfterValidator(language_tag)], ...], Field(min_length=1)] = ("en",)
    max_concurrency: Annotated[int, Field(ge=1)] = 5
    timeout_s: Annotated[float, Field(gt=0)] = 10.0
    max_mb: Annotated[float, Field(ge=0.001)] = 32
    max_retries: Annotated[int, Field(ge=0, le=20)] = 3
    maxlag_s: Annotated[int, Field(ge=1)] = 5
    most_counted: Annotated[int, Field(ge=1)] = 100_000
    names_kept_s: Annotated[float, Field(gt=0)] = 3_600.0
    redactor: Redactor = Redactor()

    @property
    def all_languages(self) -> tuple[str, ...]:
        """The languages of labels, the last resorts included."""
        return tuple(dict.fromkeys((*(language.lower() for language in self.languages), *LAST_LANGUAGES)))

    @property
    def per_minute(self) -> int:
        """The most requests to one host in a minute."""
        if self.requests_per_minute is not None:
            return self.requests_per_minute
        return ANONYMOUS_PER_MINUTE if self.contact is None else KNOWN_PER_MINUTE

    @property
    def user_agent(self) -> str:
        """What this client calls itself, in the form that Wikimedia asks for."""
        contact = "" if self.contact is None else f" ({self.contact})"
        return f"kg-sextant/{version('kg-sextant')}{contact} httpx2/{version('httpx2')}"

    @property
    def asks_wikimedia(self) -> bool:
        """Whether any request goes to Wikimedia, which wants to know who asks."""
        urls = (self.query_url, self.scholarly_url, self.api_url)
        return any((urlsplit(url).hostname or "").endswith(WIKIMEDIA) for url in urls if url is not None)

    @property
    def query_endpoint(self) -> EndpointOptions:
        """How the SPARQL endpoint is reached."""
        return self._endpoint(self.query_url, self.max_concurrency)

    @property
    def scholarly_endpoint(self) -> EndpointOptions | None:
        """How the endpoint of the scholarly articles is reached."""
        return None if self.scholarly_url is None else self._endpoint(self.scholarly_url, self.max_concurrency)

    @property
    def api_endpoint(self) -> EndpointOptions:
        """How the web API is reached."""
        told = self._endpoint(self.api_url, min(MAX_API_CONCURRENCY, self.max_concurrency))
        return told.model_copy(update={"service": "web API", "max_mb": min(MAX_API_MB, self.max_mb)})

    def _endpoint(self, url: str, max_concurrency: int) -> EndpointOptions:
        return EndpointOptions(
            url=url,
            dialect=self.dialect,
            timeout_s=self.timeout_s,
            max_mb=self.max_mb,
            max_concurrency=max_concurrency,
            max_retries=self.max_retries,
            user_agent=self.user_agent,
            redactor=self.redactor,
        )
