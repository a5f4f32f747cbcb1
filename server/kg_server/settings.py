"""The settings of a server."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import platformdirs
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from kg_adapters.errors import InvalidRequest
from kg_adapters.labels import chosen_prefixes, language_tag
from kg_boundary.addresses import base_url_problem
from kg_boundary.secrets import Redactor

APP: Final = "kg-sextant"
ENVIRONMENT_PREFIX: Final = "KG_SEXTANT_"
LanguageTag: TypeAlias = Annotated[str, AfterValidator(language_tag)]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
EmbedderName: TypeAlias = Literal["minilm", "openai", "lexical"]
ObserveScore: TypeAlias = Literal["relation-first", "paper"]


def _cache_folder() -> Path:
    return platformdirs.user_cache_path(APP, appauthor=False)


def _data_folder() -> Path:
    return platformdirs.user_data_path(APP, appauthor=False)


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _lowered(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _base_url(url: str) -> str:
    if problem := base_url_problem(url):
        raise ValueError(problem)
    return url


def _prefixes(texts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        chosen_prefixes(texts)
    except InvalidRequest:
        raise ValueError("each must be a prefix with its namespace, an absolute IRI") from None
    return texts


Names: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_split)]
BaseUrl: TypeAlias = Annotated[str, AfterValidator(_base_url)]


class Settings(BaseModel):
    """Everything that can be set, with the defaults that suit most people."""

    # A message about a wrong value must not show the value: it may be a secret.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    graph: str = Field(
        default="sample",
        min_length=1,
        description="`sample`, `sample:world`, files, a store, an endpoint's URL, `wikidata` or `SCHEME:REST`.",
    )
    cache_folder: Path = Field(
        default_factory=_cache_folder, description="Where imported files are kept; can be deleted at any time."
    )
    data_folder: Path = Field(default_factory=_data_folder, description="Where things that must last are kept.")
    languages: Annotated[tuple[LanguageTag, ...], BeforeValidator(_split), Field(min_length=1)] = Field(
        default=("en", "mul"), description="Languages of labels, the preferred first, as in `en,mul`."
    )
    label_relations: Names = Field(
        default=(), description="Relations to names, before the usual ones: IRIs, or prefixed names as `ex:title`."
    )
    alias_relations: Names = Field(default=(), description="Relations to other names, before the usual ones.")
    description_relations: Names = Field(default=(), description="Relations to descriptions, before the usual ones.")
    type_relations: Names = Field(default=(), description="Relations to classes, before the usual ones.")
    label_keys: Names = Field(
        default=(), description="Features that name the nodes of a `graph.json`, as `opinion=plain_text`."
    )
    prefixes: Annotated[Names, AfterValidator(_prefixes)] = Field(
        default=(), description="Short forms of IRIs of files and endpoints, as `ex=https://example.org/`."
    )
    max_tokens: int = Field(
        default=2_000, ge=100, le=100_000, description="How long an answer may be, in tokens, by default."
    )
    timeout_s: float = Field(
        default=10.0, gt=0, le=600, description="Seconds that one tool call may wait for the graph."
    )
    sparql_timeout_s: float = Field(
        default=60.0, gt=0, le=3_600, description="The longest that `Sparql` may ask for, seconds."
    )
    sparql_max_rows: int = Field(
        default=1_000, ge=1, le=100_000, description="The most rows that `Sparql` may ask for."
    )
    sparql_workers: int | None = Field(
        default=None, ge=1, le=64, description="Queries at once over local files; unset: 2 to 4, by processors."
    )
    sparql_worker_mb: int | None = Field(
        default=None,
        ge=256,
        description="Megabytes that each of them may take; unset: half of the memory in all, up to 4,295.",
    )
    sparql_max_waiting: int = Field(
        default=64, ge=1, le=10_000, description="How many queries may wait for their turn before others are refused."
    )
    endpoint_dialect: Literal["standard", "virtuoso", "blazegraph", "qlever", "graphdb", "fuseki"] = Field(
        default="standard", description="The engine behind a SPARQL endpoint; `standard` suits all."
    )
    endpoint_text_search: Literal["none", "virtuoso", "lucene", "qlever", "blazegraph"] = Field(
        default="none", description="The full-text index that it has; without one, only some labels are searched."
    )
    endpoint_default_graphs: Annotated[tuple[str, ...], BeforeValidator(_split)] = Field(
        default=(), description="IRIs of the graphs to read; unless given, the endpoint chooses."
    )
    endpoint_named_graphs: Annotated[tuple[str, ...], BeforeValidator(_split)] = Field(
        default=(), description="IRIs of the graphs that `GRAPH` may name."
    )
    endpoint_user: str | None = Field(default=None, description="The user name for it.")
    endpoint_password: SecretStr | None = Field(default=None, description="The password of that user.")
    endpoint_digest: bool = Field(default=False, description="Whether to use HTTP digest authentication.")
    endpoint_token: SecretStr | None = Field(default=None, description="A bearer token, in place of user and password.")
    endpoint_ca_file: Path | None = Field(
        default=None, description="A PEM file of the authorities to trust for it, in place of the system's."
    )
    endpoint_max_concurrency: int = Field(default=6, ge=1, le=100, description="The most requests to it at once.")
    endpoint_max_retries: int = Field(default=3, ge=0, le=20, description="How often a failed request is repeated.")
    endpoint_max_mb: int = Field(default=32, ge=1, le=4_096, description="The most megabytes of one of its answers.")
    endpoint_answers_kept_s: float = Field(
        default=600.0, ge=0, description="Seconds that its answers are remembered; 0 for not at all."
    )
    wikidata_contact: str | None = Field(
        default=None, description="Your e-mail address or page, which Wikimedia wants to know; it then allows more."
    )
    wikidata_query_url: str = Field(
        default="https://query.wikidata.org/sparql", description="Where Wikidata's query service is."
    )
    wikidata_scholarly_url: str = Field(
        default="https://query-scholarly.wikidata.org/sparql",
        description="Where the query service of scholarly articles is; empty for none.",
    )
    wikidata_api_url: str = Field(
        default="https://www.wikidata.org/w/api.php", description="Where its web API is, for names."
    )
    wikidata_dialect: Literal["standard", "virtuoso", "blazegraph", "qlever", "graphdb", "fuseki"] = Field(
        default="standard", description="The engine behind its query service; `standard` suits all."
    )
    wikidata_requests_per_minute: int | None = Field(
        default=None, ge=1, description="The most requests to one host; by default what Wikimedia allows."
    )
    wikidata_max_concurrency: int = Field(default=5, ge=1, le=100, description="The most queries at once.")
    wikidata_maxlag_s: int = Field(
        default=5, ge=1, description="Its web API may refuse while its copies lag so many seconds."
    )
    wikidata_most_counted: int = Field(
        default=100_000, ge=1, description="How many edges of a hub are counted at most."
    )
    wikidata_replies_kept_s: float = Field(
        default=86_400.0, ge=0, description="Seconds that its replies are kept in the cache folder; 0 for not at all."
    )
    wikidata_qualifiers: bool = Field(default=False, description="Whether `Feature` shows qualifiers of statements.")
    wikidata_external_ids: bool = Field(default=False, description="Whether `Feature` shows ids in other databases.")
    import_memory_mb: int | None = Field(
        default=None,
        ge=64,
        description="The most memory that parsing a file takes, and about that of its profile; unset: a quarter of the "
        "machine's, at most 2,048.",
    )
    import_stall_s: float = Field(
        default=60.0, gt=0, description="Seconds without progress after which parsing a file is stopped."
    )
    import_literal_mb: int = Field(
        default=64, ge=1, le=1_024, description="The most megabytes of one literal or IRI in a file."
    )
    import_inflate_ratio: int = Field(
        default=100, ge=1, description="How many times its size a `.gz` may decompress to; 10 MB are always allowed."
    )
    import_inflate_mb: int = Field(
        default=32_768, ge=1, description="The most megabytes that one `.gz` may decompress to."
    )
    hub_degree: int = Field(default=1_000, ge=2, description="Paths avoid nodes with more neighbours than this.")
    max_expansions: int = Field(default=2_000_000, ge=1, description="How many edges one path search may look at.")
    embedder: Annotated[EmbedderName, BeforeValidator(_lowered)] = Field(
        default="minilm",
        description="What compares meanings: `minilm` (in the package), `openai` (a service) or `lexical` (letters).",
    )
    embedding_model: str = Field(
        default="text-embedding-3-small", min_length=1, description="The model of an `openai` embedder."
    )
    embedding_dimensions: int = Field(default=1_536, ge=1, le=16_384, description="The length of the model's vectors.")
    embedding_base_url: BaseUrl = Field(
        default="https://api.openai.com/v1", min_length=1, description="The URL of its service."
    )
    embedding_api_key: SecretStr | None = Field(default=None, description="The key of its service, if it needs one.")
    embedding_format: Literal["float", "base64"] = Field(
        default="float", description="How its service sends vectors; some know only `float`."
    )
    embedding_timeout_s: float = Field(
        default=5.0, gt=0, le=600, description="Its seconds in a tool call; then texts are compared by letters."
    )
    embedding_price: float = Field(default=0.0, ge=0, description="What a million tokens of it cost, for the log.")
    llm: str | None = Field(
        default=None, min_length=1, description="The model that `ask` answers with; unset: no model."
    )
    llm_base_url: BaseUrl = Field(
        default="https://api.openai.com/v1",
        min_length=1,
        description="The URL of its service: any OpenAI-compatible one.",
    )
    llm_api_key: SecretStr | None = Field(default=None, description="The key of its service, if it needs one.")
    llm_timeout_s: float = Field(default=60.0, gt=0, le=3_600, description="Seconds that one reply may take.")
    llm_context_tokens: int | None = Field(
        default=None,
        ge=1_000,
        description="The most tokens that it takes, prompt and reply together; unset: its service knows.",
    )
    llm_tools: bool | None = Field(
        default=None, description="Whether it can call functions, as the agent `tools` needs; unset: `ask` finds out."
    )
    llm_prompt_price: float = Field(default=0.0, ge=0, description="What a million tokens of prompts cost.")
    llm_reply_price: float = Field(default=0.0, ge=0, description="What a million tokens of replies cost.")
    judge_llm: str | None = Field(
        default=None, min_length=1, description="Another model, to judge Graph Counselor's answers and to reflect."
    )
    reflector_llm: str | None = Field(
        default=None, min_length=1, description="Another model, to reflect: in Graph Counselor, and the paper's ODA."
    )
    agent_parameters: Annotated[tuple[str, ...], BeforeValidator(_split)] = Field(
        default=(), description="Parameters of the agent that `ask` runs, as in `hops=2,iterations=4`."
    )
    observe_score: ObserveScore = Field(
        default="relation-first",
        description="What `observe` ranks by: `relation-first`, or `paper`, which is ODA's and slow.",
    )
    compose_retrieve: Literal["name", "nearest"] = Field(
        default="name",
        description="What `Retrieve` in `Compose` gives: who bears a `name`, or the one node `nearest` by embedding.",
    )
    memory_triples_per_call: int = Field(
        default=15, ge=1, le=1_000, description="The most triples that one `memory-append` takes."
    )
    memory_max_facts: int = Field(default=10_000, ge=1, description="The most facts of one memory.")
    memory_max_count: int = Field(default=10_000, ge=1, description="The most memories in the data folder.")
    memory_max_age_days: float = Field(
        default=30.0, gt=0, description="Days after its last append that a memory is deleted."
    )
    memory_abandoned_days: float = Field(
        default=1.0, gt=0, description="Days without use after which a memory with a single append is deleted."
    )
    memory_max_fact_kb: int = Field(default=64, ge=1, description="The most kilobytes of the texts of one fact.")
    memory_max_mb: int = Field(default=16, ge=1, description="The most megabytes of the texts of one memory.")
    memory_file_max_mb: int = Field(default=1_000, ge=1, description="The most megabytes of the file of all memories.")
    learn: bool = Field(
        default=False, description="Whether solved questions are kept, and those like a new one offered as examples."
    )
    http_host: str = Field(default="127.0.0.1", min_length=1, description="The address to listen on under HTTP.")
    http_port: int = Field(
        default=8_000, ge=0, le=65_535, description="The port to listen on under HTTP; 0 takes a free one."
    )
    http_max_connections: int = Field(default=256, ge=1, description="The most connections at once under HTTP.")
    stdio_max_requests: int = Field(
        default=64, ge=1, description="The most requests answered at once under stdio; more wait unread."
    )
    message_max_mb: int = Field(
        default=4, ge=1, le=1_024, description="The most megabytes of one message that a client sends."
    )
    watchdog_s: float = Field(
        default=60.0, ge=0, description="Seconds after which a server that stands still ends itself; 0: never."
    )
    log_level: Annotated[LogLevel, BeforeValidator(_lowered)] = Field(
        default="warning", description="How much is logged on standard error: debug, info, warning or error."
    )

    @cached_property
    def redactor(self) -> Redactor:
        """What takes the secrets among these settings out of texts, those in addresses included."""
        values = [getattr(self, name) for name in type(self).model_fields]
        secrets = [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
        addresses = [value for value in values if isinstance(value, str) and "://" in value]
        user = [self.endpoint_user] if self.endpoint_user else []
        return Redactor().also(secrets, user).also_in(*addresses)
