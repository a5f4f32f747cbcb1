"""How a SPARQL endpoint, a web API or an embedding service is reached, and within which limits."""

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Final, TypeAlias
from typing import Literal as Choice
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationInfo

from kg_adapters.calls import RETRY_S
from kg_adapters.errors import InvalidRequest
from kg_adapters.terms import Iri
from kg_boundary.secrets import Redactor
from kg_boundary.shown import in_quotes

TextSearch: TypeAlias = Choice["none", "virtuoso", "lucene", "qlever", "blazegraph"]
"""The full-text index that an endpoint has."""
DialectName: TypeAlias = Choice["standard", "virtuoso", "blazegraph", "qlever", "graphdb", "fuseki"]
"""The engine behind an endpoint; `standard` is plain SPARQL 1.1."""

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
# What the transport itself says about a request; another value would break it, or lead past the settings.
_OWN_HEADERS: Final = frozenset(
    {"accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host"}
    | {"transfer-encoding", "user-agent"}
)
_LUCENE: Final = frozenset({"fuseki", "graphdb"})
_OWN_PARAMETERS: Final = frozenset({"query", "update"})


def _package_version() -> str:
    try:
        return version("kg-sextant")
    except PackageNotFoundError:
        return "0"


def endpoint_url(url: str) -> str:
    """Return the URL of an endpoint.

    Raises:
        ValueError: It is none that can be asked.
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


def _dialect(name: DialectName, info: ValidationInfo) -> DialectName:
    if info.data.get("text_search") == "lucene" and name not in _LUCENE:
        raise ValueError("the full-text index lucene is asked in another way by each engine: set fuseki or graphdb")
    return name


class _Settings(BaseModel):
    # A message about a wrong value must not show the value: it may be a secret.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False)


class BasicAuthentication(_Settings):
    """A user and a password, sent with every request; use it over https only."""

    kind: Choice["basic"] = "basic"
    user: Annotated[str, Field(pattern=r"^[^:\x00-\x1f\x7f]*$")]
    password: SecretStr


class DigestAuthentication(_Settings):
    """A user and a password that answer the endpoint's challenge and are never sent themselves."""

    kind: Choice["digest"] = "digest"
    user: str
    password: SecretStr


class BearerAuthentication(_Settings):
    """A token, sent with every request; use it over https only."""

    kind: Choice["bearer"] = "bearer"
    token: SecretStr


Authentication: TypeAlias = Annotated[
    BasicAuthentication | DigestAuthentication | BearerAuthentication, Field(discriminator="kind")
]
ServiceName: TypeAlias = Choice["SPARQL endpoint", "web API", "embedding service"]
GraphIri: TypeAlias = Annotated[str, AfterValidator(_graph)]


class EndpointOptions(_Settings):
    """Where an endpoint is and how it is asked; secrets do not show in its `repr`, nor in errors.

    Args:
        url: Where queries go: http or https, without credentials, `?` or `#`.
        service: What is there, for messages.
        default_graphs: IRIs of the graphs that patterns outside GRAPH match; the endpoint's own choice when empty.
        named_graphs: IRIs of the graphs that GRAPH may match; the endpoint's own choice when empty.
        authentication: How this client proves who it is; None for an open endpoint.
        timeout_s: The most seconds that one query may take where the caller says nothing else.
        max_bytes: The most bytes of one answer, unpacked.
        max_concurrency: The most requests at once.
        max_retries: How often a request is repeated after a failure that may pass.
        backoff_s: The pause before the first repetition, in seconds; it doubles with each.
        max_backoff_s: The longest such pause, in seconds.
        failures_until_pause: After so many failed queries in a row nothing more is asked for a while.
        pause_s: How many seconds pass until one query tries the endpoint again.
        max_url_length: Queries that would make a longer URL are sent by POST.
        user_agent: What this client calls itself.
        headers: More headers for every request, such as an API key; their values are secret.
        parameters: More parameters for every request.
        text_search: The full-text index that the endpoint has.
        dialect: The engine behind the endpoint.
        ca_file: A PEM file of the authorities to trust instead of the system's; certificates are always checked.
        use_environment_proxies: Whether the proxies named by `HTTPS_PROXY` and its like are used.
        redactor: What else nobody must be shown, beside the secrets among these options.
    """

    url: Annotated[str, AfterValidator(endpoint_url)]
    service: ServiceName = "SPARQL endpoint"
    default_graphs: tuple[GraphIri, ...] = ()
    named_graphs: tuple[GraphIri, ...] = ()
    authentication: Authentication | None = None
    timeout_s: Annotated[float, Field(gt=0)] = 10.0
    max_bytes: Annotated[int, Field(ge=1_000)] = 32_000_000
    max_concurrency: Annotated[int, Field(ge=1)] = 6
    max_retries: Annotated[int, Field(ge=0, le=20)] = 3
    backoff_s: Annotated[float, Field(gt=0)] = 0.25
    max_backoff_s: Annotated[float, Field(gt=0)] = 8.0
    failures_until_pause: Annotated[int, Field(ge=1)] = 5
    pause_s: Annotated[float, Field(gt=0)] = RETRY_S
    max_url_length: Annotated[int, Field(ge=0)] = 2_000
    user_agent: Annotated[str, AfterValidator(_user_agent)] = f"kg-sextant/{_package_version()}"
    headers: Annotated[Mapping[str, SecretStr], AfterValidator(_headers)] = Field(default_factory=dict[str, SecretStr])
    parameters: Annotated[Mapping[str, str], AfterValidator(_parameters)] = Field(default_factory=dict[str, str])
    text_search: TextSearch = "none"
    dialect: Annotated[DialectName, AfterValidator(_dialect)] = Field(default="standard", validate_default=True)
    ca_file: Path | None = None
    use_environment_proxies: bool = False
    redactor: Redactor = Redactor()

    @property
    def who(self) -> str:
        """The service, as a sentence begins."""
        return f"The {self.service.removeprefix('SPARQL ')} {self.host}"

    @property
    def host(self) -> str:
        """The endpoint's host and port as its URL writes them, for messages."""
        return urlsplit(self.url).netloc
