"""The settings of a server, nested by subject."""

import ipaddress
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import platformdirs
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr
from pydantic.fields import FieldInfo

from kg_adapters.errors import InvalidRequest
from kg_adapters.http.options import EndpointSettings
from kg_adapters.label_options import RelationSettings
from kg_adapters.labels import chosen_prefixes, language_tag
from kg_adapters.sections import AT_COMMAS, Section, Texts
from kg_adapters.wikidata.options import WikidataSettings
from kg_boundary.addresses import base_url_problem
from kg_boundary.secrets import Redactor
from kg_boundary.shown import in_quotes

APP: Final = "kg-sextant"
ENVIRONMENT_PREFIX: Final = "KG_SEXTANT_"
LanguageTag: TypeAlias = Annotated[str, AfterValidator(language_tag)]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
EmbedderName: TypeAlias = Literal["minilm", "openai", "lexical"]
AuditForm: TypeAlias = Literal["off", "text", "json"]
ObserveScore: TypeAlias = Literal["relation-first", "paper"]


def _cache_folder() -> Path:
    return platformdirs.user_cache_path(APP, appauthor=False)


def _data_folder() -> Path:
    return platformdirs.user_data_path(APP, appauthor=False)


def _lowered(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _base_url(url: str) -> str:
    if problem := base_url_problem(url):
        raise ValueError(problem)
    return url


def _links(texts: tuple[str, ...]) -> tuple[str, ...]:
    from kg_adapters.links import split_link

    try:
        dict(map(split_link, texts))
    except InvalidRequest:
        raise ValueError("each must be a relation, or a relation, = and an http IRI with {} for the id") from None
    return texts


def _prefixes(texts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        chosen_prefixes(texts)
    except InvalidRequest:
        raise ValueError("each must be a prefix with its namespace, an absolute IRI") from None
    return texts


def _hosts(texts: tuple[str, ...]) -> tuple[str, ...]:
    if not all(_AUTHORITY.fullmatch(each) for each in texts):
        raise ValueError("each must be a name or an address, with a port or without one")
    return texts


def _origins(texts: tuple[str, ...]) -> tuple[str, ...]:
    parts = (each.partition("://") for each in texts)
    if not all(scheme in {"http", "https"} and _AUTHORITY.fullmatch(host) for scheme, _, host in parts):
        raise ValueError("each must be a scheme and a host, such as https://chat.example.org, without a path")
    return texts


def _networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    for each in texts:
        try:
            ipaddress.ip_network(each)
        except ValueError:
            raise ValueError("each must be an address or a network, such as 10.0.0.7 or 10.0.0.0/8") from None
    return texts


_AUTHORITY: Final = re.compile(r"(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?", re.IGNORECASE)
_DATABASE: Final = re.compile(r"postgres(?:ql)?://(?:[^@/?#\[\]]*@)?[^@/?#]*(?:[/?]|$)")
BaseUrl: TypeAlias = Annotated[str, AfterValidator(_base_url)]


def _database_url(url: SecretStr | None) -> SecretStr | None:
    # Part of a password that is taken for the host would stand in errors.
    if url is not None and not _DATABASE.match(url.get_secret_value()):
        raise ValueError(
            "it must be a URL such as postgresql://user:password@host/database; in a password, @ is written as %40"
        )
    return url


def _passwords(url: str) -> list[str]:
    """Return the passwords in the URL of a database."""
    parts = urlsplit(url)
    return [unquote(parts.password or ""), *(text for name, text in parse_qsl(parts.query) if "password" in name)]


Port: TypeAlias = Annotated[int, Field(ge=1, le=65_535)]


class SparqlSettings(Section):
    """The limits of the tool `Sparql`."""

    timeout_s: float = Field(
        default=60.0, gt=0, le=3_600, description="The largest `timeout_s` of a `Sparql` call, in seconds."
    )
    max_rows: int = Field(default=1_000, ge=1, le=100_000, description="The largest `max_rows` of a `Sparql` call.")
    workers: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="How many queries over local files run in parallel; default: one per processor, from 2 to 4.",
    )


class ImportSettings(Section):
    """The limits of reading one file."""

    memory_mb: int | None = Field(
        default=None,
        ge=64,
        description="The most megabytes of memory for parsing a file, and about as much for its profile; default: a "
        "quarter of the machine's memory, at most 2,048.",
    )
    literal_mb: int = Field(
        default=64, ge=1, le=1_024, description="The largest size of one literal or IRI in a file, in megabytes."
    )
    inflate_ratio: int = Field(
        default=100,
        ge=1,
        description="How many times its own size a `.gz` file may decompress to; 10 MB are always allowed.",
    )
    inflate_mb: int = Field(
        default=32_768, ge=1, description="How many megabytes a `.gz` file may decompress to, whatever its own size."
    )


class EmbeddingSettings(Section):
    """The model that compares the meanings of texts."""

    embedder: Annotated[EmbedderName, BeforeValidator(_lowered)] = Field(
        default="minilm",
        description="How texts are compared: by meaning, with `minilm` (in the package) or `openai` (any service with "
        "its API), or by their letters (`lexical`).",
    )
    model: str = Field(
        default="text-embedding-3-small", min_length=1, description="The embedding model that the service runs."
    )
    dimensions: int = Field(default=1_536, ge=1, le=16_384, description="The length of that model's vectors.")
    base_url: BaseUrl = Field(
        default="https://api.openai.com/v1", min_length=1, description="The URL of the embedding service."
    )
    api_key: SecretStr | None = Field(default=None, description="The key of the embedding service, if it needs one.")
    timeout_s: float = Field(
        default=5.0,
        gt=0,
        le=600,
        description="How many seconds a tool call waits for the embedding service; then it compares letters.",
    )


class LlmSettings(Section):
    """The language model that questions are answered with."""

    model: str | None = Field(
        default=None, min_length=1, description="The language model of `ask`, `explore` and `eval`; by default none."
    )
    base_url: BaseUrl = Field(
        default="https://api.openai.com/v1",
        min_length=1,
        description="The URL of the model's service: any with OpenAI's API.",
    )
    api_key: SecretStr | None = Field(default=None, description="The key of the model's service, if it needs one.")
    timeout_s: float = Field(
        default=60.0, gt=0, le=3_600, description="How many seconds the model may take for one reply."
    )
    context_tokens: int | None = Field(
        default=None,
        ge=1_000,
        description="The model's context length in tokens, prompt and reply together; by default the service enforces "
        "its own.",
    )
    tools: bool | None = Field(
        default=None,
        description="Whether the model can call functions, as the agent `tools` needs; by default `ask` tries.",
    )
    local_ports: Annotated[tuple[Port, ...], AT_COMMAS] = Field(
        default=(11_434, 1_234, 8_080),
        description="The ports of this machine where `ask` and `explore` look for models without `llm.model`: those of "
        "Ollama, LM Studio and llama.cpp. Empty for none.",
    )
    prompt_price: float = Field(default=0.0, ge=0, description="The price of a million prompt tokens.")
    reply_price: float = Field(default=0.0, ge=0, description="The price of a million reply tokens.")
    judge: str | None = Field(
        default=None,
        min_length=1,
        description="A second model that judges the answers of Graph Counselor, and reflects if `llm.reflector` is not "
        "set.",
    )
    reflector: str | None = Field(
        default=None,
        min_length=1,
        description="A second model for the reflection steps of Graph Counselor, and of ODA with `manner=paper`.",
    )


class MemorySettings(Section):
    """How many memories are kept, and for how long."""

    memories: int = Field(default=10_000, ge=1, description="How many memories may be kept.")
    age_days: float = Field(
        default=30.0, gt=0, description="How many days after its last `memory-append` a memory is deleted."
    )
    store_mb: float = Field(default=1_000, gt=0, description="The largest size of all memories, in megabytes.")
    database: Annotated[SecretStr | None, AfterValidator(_database_url)] = Field(
        default=None,
        description="The URL of a PostgreSQL database for the memories of all servers with this setting, such as "
        "`postgresql://user:password@host/database`; by default they are in a file in the data folder.",
    )


class HostingSettings(Section):
    """Who may call a server over HTTP, what each caller with a login may take, and what is logged of calls."""

    url: BaseUrl | None = Field(
        default=None,
        description="The public URL of the endpoint, such as `https://kg.example.org/mcp`: what clients log in for, "
        "and a name that requests may have. Default: the address of `--http`.",
    )
    hosts: Annotated[Texts, AfterValidator(_hosts)] = Field(
        default=(),
        description="More names that requests may have (their Host header), such as `kg.example.org` or `kg:8000`; "
        "without a port, any port is accepted.",
    )
    origins: Annotated[Texts, AfterValidator(_origins)] = Field(
        default=(), description="Web pages that may call (their Origin header), such as `https://chat.example.org`."
    )
    proxies: Annotated[Texts, AfterValidator(_networks)] = Field(
        default=(),
        description="Addresses or networks of proxies in front of the server, such as `10.0.0.0/8`; headers that a "
        "request was forwarded with are believed from these alone.",
    )
    tls_certificate: Path | None = Field(
        default=None,
        description="The file of the server's certificate and those up to its authority (PEM), for HTTPS; read again "
        "when it changes.",
    )
    tls_key: Path | None = Field(
        default=None,
        description="The file of the certificate's key (PEM), where the certificate's file does not hold it.",
    )
    tokens: Path | None = Field(
        default=None,
        description="The file of hashed tokens of `kg-sextant token`, which callers then need on loopback too; "
        "default: `tokens.json` in the data folder, only where other machines can call.",
    )
    issuer: BaseUrl | None = Field(
        default=None,
        description="The issuer of the authorization server whose tokens (JWTs) callers need, exactly as its metadata "
        "names it.",
    )
    jwks_url: BaseUrl | None = Field(
        default=None, description="Where the keys of that server are; by default, its metadata says."
    )
    page_client_id: str | None = Field(
        default=None, min_length=1, description="The page's client id there; default: the URL of its `client.json`."
    )
    audience: str | None = Field(
        default=None, min_length=1, description="The audience that these tokens must have; default: `hosting.url`."
    )
    tools: Texts | None = Field(
        default=None, description="The only tools that are served, over stdio too, such as `Retrieve,GetNeighbor`."
    )
    read_only: bool = Field(default=False, description="Whether the memory tools are left out, over stdio too.")
    memory_mb: float = Field(
        default=100.0,
        gt=0,
        description="How many megabytes of memories one caller with a login may keep; they are at most a tenth of "
        "`memory.memories`.",
    )
    calls_per_minute: int = Field(
        default=600, ge=0, description="How many messages a caller may send in a minute; 0 for any number."
    )
    calls_at_once: int = Field(
        default=8, ge=0, description="How many messages of a caller are answered at once; 0 for any number."
    )
    seconds_per_minute: float = Field(
        default=240, ge=0, description="How many seconds of work a caller may cause in a minute; 0 for any number."
    )
    rows_per_minute: int = Field(
        default=100_000, ge=0, description="How many rows a caller may get in a minute; 0 for any number."
    )
    metrics: str | None = Field(
        default=None,
        min_length=1,
        description="The address where Prometheus reads metrics, such as `127.0.0.1:9464`; by default there are none.",
    )
    audit: AuditForm = Field(
        default="off",
        description="Whether a line for each call is written on standard error: `off`, `text` or `json`. It says who "
        "called what, how long it took and how it ended, and nothing of what was asked or answered.",
    )


class Settings(Section):
    """Everything that can be set, with the defaults that suit most people."""

    graph: str = Field(
        default="sample",
        min_length=1,
        description="The graph: `sample`, `sample:world`, RDF files, a store, an endpoint's URL, `wikidata`, or "
        "`SCHEME:REST` for an installed adapter.",
    )
    notes: Path | None = Field(
        default=None,
        description="The file of notes about the graph (Markdown); default: `notes.md` in its store or folder, or "
        "`NAME.notes.md` beside its file.",
    )
    cache_folder: Path = Field(
        default_factory=_cache_folder, description="The folder of imported files; it can be deleted at any time."
    )
    data_folder: Path = Field(
        default_factory=_data_folder, description="The folder of memories, records of runs and solved questions."
    )
    languages: Annotated[tuple[LanguageTag, ...], AT_COMMAS, Field(min_length=1)] = Field(
        default=("en", "mul"), description="The languages of labels, most preferred first, such as `en,mul`."
    )
    prefixes: Annotated[Texts, AfterValidator(_prefixes)] = Field(
        default=(),
        description="Prefixes that shorten IRIs of files and endpoints, such as `ex=https://example.org/`.",
    )
    links: Annotated[Texts, AfterValidator(_links)] = Field(
        default=(),
        description="Relations to the same thing in other graphs: `ex:same`, `ex:isbn=https://example.org/isbn/{}`.",
    )
    relations: RelationSettings = RelationSettings()
    max_tokens: int = Field(
        default=2_000, ge=100, le=100_000, description="The default length limit of an answer, in tokens."
    )
    timeout_s: float = Field(
        default=10.0, gt=0, le=600, description="How many seconds a tool call may wait for the graph."
    )
    hub_degree: int = Field(
        default=1_000, ge=2, description="`GetPath` avoids nodes with more neighbours than this (hubs)."
    )
    observe_score: ObserveScore = Field(
        default="relation-first",
        description="How `observe` ranks facts: `relation-first` (fast), or `paper` (as ODA's paper does, slow).",
    )
    compose_retrieve: Literal["name", "nearest"] = Field(
        default="name",
        description="What `Retrieve` returns inside `Compose`: the entities with that `name`, or the single `nearest` "
        "node by embedding.",
    )
    learn: bool = Field(
        default=False,
        description="Whether solved questions are kept and offered to the model as examples for similar ones.",
    )
    agent_parameters: Texts = Field(
        default=(), description="Parameters of the agent that `ask` runs, such as `hops=2,iterations=4`."
    )
    server_token: SecretStr | None = Field(
        default=None, description="The bearer token for the server of `ask --server URL` and `config --server URL`."
    )
    watchdog_s: float = Field(
        default=60.0,
        ge=0,
        description="After how many seconds a server that no longer responds ends its process; 0 for never.",
    )
    log_level: Annotated[LogLevel, BeforeValidator(_lowered)] = Field(
        default="warning", description="What is logged on standard error: debug, info, warning or error."
    )
    sparql: SparqlSettings = SparqlSettings()
    endpoint: EndpointSettings = EndpointSettings()
    wikidata: WikidataSettings = WikidataSettings()
    imports: ImportSettings = ImportSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    llm: LlmSettings = LlmSettings()
    memory: MemorySettings = MemorySettings()
    hosting: HostingSettings = HostingSettings()
    graphs: Mapping[str, "Settings"] = {}
    """The graphs by their names, the first the default, each with its settings; empty with one graph."""

    def of(self, name: str) -> "Settings":
        """Return the settings of one of several graphs: those of `OF_A_GRAPH` are its own, all others are shared.

        They keep the secrets of all graphs, any of which an endpoint may repeat.

        Raises:
            InvalidRequest: There is no such graph.
        """
        own = self.graphs.get(name)
        if own is None:
            raise InvalidRequest(
                f"There is no graph {in_quotes(name)}. The graphs are {', '.join(self.graphs) or 'not named'}."
            )
        mine = {each: getattr(own, each) for each in OF_A_GRAPH}
        return self.model_copy(update={**mine, "graphs": {}, "redactor": self.redactor})

    def value(self, name: str) -> object:
        """Return the value of a setting by its name, such as `endpoint.token`."""
        value: object = self
        for part in name.split("."):
            value = getattr(value, part)
        return value

    @property
    def tokens_file(self) -> Path:
        """The file of hashed tokens."""
        return self.hosting.tokens or self.data_folder / "tokens.json"

    @cached_property
    def redactor(self) -> Redactor:
        """What takes the secrets among these settings, and those of every graph, out of texts and their addresses."""
        whole = Redactor()
        for each in (self, *self.graphs.values()):
            values = [each.value(name) for name in FIELDS]
            secrets = [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
            addresses = [value for value in values if isinstance(value, str) and "://" in value]
            user = [each.endpoint.user] if each.endpoint.user else []
            whole = whole.also(secrets, user).also_in(*addresses)
        database = self.memory.database
        return whole if database is None else whole.also(_passwords(database.get_secret_value()))


OF_A_GRAPH: Final = (
    "graph",
    "notes",
    "languages",
    "prefixes",
    "links",
    "relations",
    "timeout_s",
    "hub_degree",
    "sparql",
    "endpoint",
    "wikidata",
    "imports",
)
"""The settings, and subjects of settings, that each of several graphs may set for itself."""


def _fields() -> dict[str, FieldInfo]:
    fields: dict[str, FieldInfo] = {}
    for name, field in Settings.model_fields.items():
        section = field.annotation
        if name == "graphs":  # holds the same settings again, for each graph
            continue
        if isinstance(section, type) and issubclass(section, BaseModel):
            fields |= {f"{name}.{each}": inner for each, inner in section.model_fields.items()}
        else:
            fields[name] = field
    return fields


FIELDS: Final[Mapping[str, FieldInfo]] = _fields()
"""Every setting by its name, such as `max_tokens` or `endpoint.token`."""


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return ENVIRONMENT_PREFIX + name.upper().replace(".", "__").replace("-", "_")
