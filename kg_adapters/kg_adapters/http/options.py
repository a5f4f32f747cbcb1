"""How a SPARQL endpoint, a web API or an embedding service is reached, and within which limits."""

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Final, Self, TypeAlias
from typing import Literal as Choice
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, model_validator

from kg_adapters.errors import RETRY_S, InvalidRequest
from kg_adapters.sections import AT_COMMAS, Section
from kg_adapters.terms import Iri
from kg_boundary.secrets import Redactor
from kg_boundary.shown import in_quotes

TextSearch: TypeAlias = Choice["none", "virtuoso", "lucene", "qlever", "blazegraph"]
"""The full-text index that an endpoint has."""
DialectName: TypeAlias = Choice["standard", "virtuoso", "blazegraph", "qlever", "graphdb", "fuseki"]
"""The engine behind an endpoint; `standard` is plain SPARQL 1.1."""
Auto: TypeAlias = Choice["auto"]
"""What an endpoint is asked for when it is opened."""

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
# Headers that the transport sets itself; another value would break the request, or bypass the settings.
_OWN_HEADERS: Final = frozenset(
    {"accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host"}
    | {"transfer-encoding", "user-agent"}
)
_LUCENE: Final = frozenset({"auto", "fuseki", "graphdb"})
_OWN_PARAMETERS: Final = frozenset({"query", "update"})


def _package_version() -> str:
    try:
        return version("kg-sextant")
    except PackageNotFoundError:
        return "0"


def endpoint_url(url: str) -> str:
    """Return the URL of an endpoint.

    Raises:
        ValueError: It is not the URL of an endpoint.
    """
    try:
        parts = urlsplit(url)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ValueError(f"it is not a URL: {error}") from error
    problem = _url_problem(url, parts)
    if problem is None and port_is_valid:
        return url
    raise ValueError(problem or "its port is 0")


def _url_problem(url: str, parts: SplitResult) -> str | None:
    if parts.scheme not in {"http", "https"}:
        return "it must start with http:// or https://"
    if parts.username is not None or parts.password is not None:
        return "it must not hold a user or password; give them as authentication"
    if not parts.hostname:
        return "it names no host"
    if parts.fragment or parts.query:
        return "it must end before ? or #; give more parameters as parameters"
    if re.search(r"[^\x21-\x7e]", url):
        return "it holds a blank, a control or a character that must be percent-encoded"
    return None


def _graph(iri: str) -> str:
    try:
        return Iri(iri).value
    except InvalidRequest:
        raise ValueError("each must be an absolute IRI such as http://example.org/graph") from None


def _user_agent(text: str) -> str:
    if not text.strip() or _HEADER_VALUE.fullmatch(text) is None:
        raise ValueError("it must be printable ASCII")
    return text


def _headers(headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
    for name, value in headers.items():
        if _HEADER_NAME.fullmatch(name) is None or _HEADER_VALUE.fullmatch(value.get_secret_value()) is None:
            raise ValueError(f"the header {in_quotes(name)} cannot be sent")
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"the header {name} cannot be set here; use its own setting, if there is one")
    return headers


def _parameters(parameters: Mapping[str, str]) -> Mapping[str, str]:
    if taken := sorted(_OWN_PARAMETERS & parameters.keys()):
        raise ValueError(f"the parameter {taken[0]} is the query itself")
    return parameters


def _dialect(name: DialectName | Auto, info: ValidationInfo) -> DialectName | Auto:
    if info.data.get("text_search") == "lucene" and name not in _LUCENE:
        raise ValueError("the full-text index lucene is asked in another way by each engine: set fuseki or graphdb")
    return name


ServiceName: TypeAlias = Choice["SPARQL endpoint", "web API", "embedding service"]
GraphIri: TypeAlias = Annotated[str, AfterValidator(_graph)]
_MB: Final = 1_000_000


class EndpointSettings(Section):
    """What people set about the SPARQL endpoint of their graph; secrets do not show in its `repr`, nor in errors."""

    text_search: TextSearch | Auto = Field(
        default="auto",
        description="The full-text index of the endpoint; `auto` tries the engine's own. Without one, only some labels "
        "are searched.",
    )
    dialect: Annotated[DialectName | Auto, AfterValidator(_dialect)] = Field(
        default="auto",
        validate_default=True,
        description="The engine of the endpoint; `auto` finds out, and `standard` works with every engine.",
    )
    default_graphs: Annotated[tuple[GraphIri, ...], AT_COMMAS] = Field(
        default=(), description="IRIs of the graphs to query; by default the endpoint chooses."
    )
    named_graphs: Annotated[tuple[GraphIri, ...], AT_COMMAS] = Field(
        default=(), description="IRIs of the graphs that `GRAPH` in a query may name."
    )
    user: Annotated[str, Field(pattern=r"^[^:\x00-\x1f\x7f]*$")] | None = Field(
        default=None, description="The user name for the endpoint."
    )
    password: SecretStr | None = Field(default=None, description="The password of that user.")
    digest: bool = Field(default=False, description="Whether to use HTTP digest authentication instead of basic.")
    token: SecretStr | None = Field(default=None, description="A bearer token, instead of user and password.")
    ca_file: Path | None = Field(
        default=None, description="A PEM file of certificate authorities to trust, instead of the system's."
    )
    max_concurrency: int = Field(default=6, ge=1, le=100, description="How many requests run in parallel.")
    max_retries: int = Field(default=3, ge=0, le=20, description="How often a failed request is retried.")
    max_mb: float = Field(
        default=32, ge=0.001, le=4_096, description="The largest size of one response, decompressed, in megabytes."
    )
    answers_kept_s: float = Field(
        default=600.0, ge=0, description="For how many seconds responses are cached; 0 turns the cache off."
    )

    @model_validator(mode="after")
    def _authentication_is_clear(self) -> Self:
        if self.token is not None and (self.user is not None or self.password is not None):
            raise ValueError("set either the token, or user and password; not both")
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password go together: set both or neither")
        return self


class EndpointOptions(EndpointSettings):
    """Where an endpoint is and how it is asked.

    Args:
        url: Where queries go: http or https, without credentials, `?` or `#`.
        service: What is there, for messages.
        timeout_s: The most seconds that one query may take unless the caller sets another deadline.
        backoff_s: The pause before the first repetition, in seconds; it doubles with each.
        max_backoff_s: The longest such pause, in seconds.
        failures_until_pause: After so many failed queries in a row nothing more is asked for a while.
        pause_s: How many seconds pass until one query tries the endpoint again.
        max_url_length: Queries that would make a longer URL are sent by POST.
        user_agent: What this client calls itself.
        headers: More headers for every request, such as an API key; their values are secret.
        parameters: More parameters for every request.
        use_environment_proxies: Whether the proxies named by `HTTPS_PROXY` and its like are used.
        redactor: Removes other secrets than those among these options.
    """

    url: Annotated[str, AfterValidator(endpoint_url)]
    service: ServiceName = "SPARQL endpoint"
    timeout_s: Annotated[float, Field(gt=0)] = 10.0
    backoff_s: Annotated[float, Field(gt=0)] = 0.25
    max_backoff_s: Annotated[float, Field(gt=0)] = 8.0
    failures_until_pause: Annotated[int, Field(ge=1)] = 5
    pause_s: Annotated[float, Field(gt=0)] = RETRY_S
    max_url_length: Annotated[int, Field(ge=0)] = 2_000
    user_agent: Annotated[str, AfterValidator(_user_agent)] = f"kg-sextant/{_package_version()}"
    headers: Annotated[Mapping[str, SecretStr], AfterValidator(_headers)] = Field(default_factory=dict[str, SecretStr])
    parameters: Annotated[Mapping[str, str], AfterValidator(_parameters)] = Field(default_factory=dict[str, str])
    use_environment_proxies: bool = False
    redactor: Redactor = Redactor()

    @property
    def max_bytes(self) -> int:
        """The most bytes of one answer, unpacked."""
        return int(self.max_mb * _MB)

    @property
    def who(self) -> str:
        """The service, as a sentence begins."""
        return f"The {self.service.removeprefix('SPARQL ')} {self.host}"

    @property
    def host(self) -> str:
        """The endpoint's host and port as its URL writes them, for messages."""
        return urlsplit(self.url).netloc
