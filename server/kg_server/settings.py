"""The settings of a server, nested by subject."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import platformdirs
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr
from pydantic.fields import FieldInfo

from kg_adapters.errors import InvalidRequest
from kg_adapters.http.options import EndpointSettings
from kg_adapters.labels import chosen_prefixes, language_tag
from kg_adapters.sections import AT_COMMAS, Section, Texts
from kg_adapters.wikidata.options import WikidataSettings
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


BaseUrl: TypeAlias = Annotated[str, AfterValidator(_base_url)]


class RelationSettings(Section):
    """Which relations name, describe and type entities."""

    labels: Texts = Field(
        default=(), description="Relations to names, before the usual ones: IRIs, or prefixed names as `ex:title`."
    )
    aliases: Texts = Field(default=(), description="Relations to other names, before the usual ones.")
    descriptions: Texts = Field(default=(), description="Relations to descriptions, before the usual ones.")
    types: Texts = Field(default=(), description="Relations to classes, before the usual ones.")
    label_keys: Texts = Field(
        default=(), description="Features that name the nodes of a `graph.json`, as `opinion=plain_text`."
    )


class SparqlSettings(Section):
    """What the tool `Sparql` may take."""

    timeout_s: float = Field(
        default=60.0, gt=0, le=3_600, description="The longest that `Sparql` may ask for, seconds."
    )
    max_rows: int = Field(default=1_000, ge=1, le=100_000, description="The most rows that `Sparql` may ask for.")
    workers: int | None = Field(
        default=None, ge=1, le=64, description="Queries at once over local files; unset: 2 to 4, by processors."
    )
    worker_mb: int | None = Field(
        default=None,
        ge=256,
        description="Megabytes that each of them may take; unset: half of the memory in all, up to 4,295.",
    )


class ImportSettings(Section):
    """What one file may ask for while it is read."""

    memory_mb: int | None = Field(
        default=None,
        ge=64,
        description="The most memory that parsing a file takes, and about that of its profile; unset: a quarter of the "
        "machine's, at most 2,048.",
    )
    stall_s: float = Field(
        default=60.0, gt=0, description="Seconds without progress after which parsing a file is stopped."
    )
    literal_mb: int = Field(
        default=64, ge=1, le=1_024, description="The most megabytes of one literal or IRI in a file."
    )
    inflate_ratio: int = Field(
        default=100, ge=1, description="How many times its size a `.gz` may decompress to; 10 MB are always allowed."
    )
    inflate_mb: int = Field(default=32_768, ge=1, description="The most megabytes that one `.gz` may decompress to.")


class EmbeddingSettings(Section):
    """What compares meanings."""

    embedder: Annotated[EmbedderName, BeforeValidator(_lowered)] = Field(
        default="minilm",
        description="What compares meanings: `minilm` (in the package), `openai` (a service) or `lexical` (letters).",
    )
    model: str = Field(default="text-embedding-3-small", min_length=1, description="The model of an `openai` embedder.")
    dimensions: int = Field(default=1_536, ge=1, le=16_384, description="The length of the model's vectors.")
    base_url: BaseUrl = Field(default="https://api.openai.com/v1", min_length=1, description="The URL of its service.")
    api_key: SecretStr | None = Field(default=None, description="The key of its service, if it needs one.")
    timeout_s: float = Field(
        default=5.0, gt=0, le=600, description="Its seconds in a tool call; then texts are compared by letters."
    )


class LlmSettings(Section):
    """The language model that `ask` answers with."""

    model: str | None = Field(
        default=None, min_length=1, description="The model that `ask` answers with; unset: no model."
    )
    base_url: BaseUrl = Field(
        default="https://api.openai.com/v1",
        min_length=1,
        description="The URL of its service: any OpenAI-compatible one.",
    )
    api_key: SecretStr | None = Field(default=None, description="The key of its service, if it needs one.")
    timeout_s: float = Field(default=60.0, gt=0, le=3_600, description="Seconds that one reply may take.")
    context_tokens: int | None = Field(
        default=None,
        ge=1_000,
        description="The most tokens that it takes, prompt and reply together; unset: its service knows.",
    )
    tools: bool | None = Field(
        default=None, description="Whether it can call functions, as the agent `tools` needs; unset: `ask` finds out."
    )
    prompt_price: float = Field(default=0.0, ge=0, description="What a million tokens of prompts cost.")
    reply_price: float = Field(default=0.0, ge=0, description="What a million tokens of replies cost.")
    judge: str | None = Field(
        default=None, min_length=1, description="Another model, to judge Graph Counselor's answers and to reflect."
    )
    reflector: str | None = Field(
        default=None, min_length=1, description="Another model, to reflect: in Graph Counselor, and the paper's ODA."
    )


class MemorySettings(Section):
    """How much memories may hold, and for how long."""

    triples_per_call: int = Field(
        default=15, ge=1, le=1_000, description="The most triples that one `memory-append` takes."
    )
    facts: int = Field(default=10_000, ge=1, description="The most facts of one memory.")
    memories: int = Field(default=10_000, ge=1, description="The most memories in the data folder.")
    age_days: float = Field(default=30.0, gt=0, description="Days after its last append that a memory is deleted.")
    store_mb: float = Field(default=1_000, gt=0, description="The most megabytes of the file of all memories.")


class HttpSettings(Section):
    """Where and to how many HTTP is served."""

    host: str = Field(default="127.0.0.1", min_length=1, description="The address to listen on under HTTP.")
    port: int = Field(
        default=8_000, ge=0, le=65_535, description="The port to listen on under HTTP; 0 takes a free one."
    )
    max_connections: int = Field(default=256, ge=1, description="The most connections at once under HTTP.")


class Settings(Section):
    """Everything that can be set, with the defaults that suit most people."""

    graph: str = Field(
        default="sample",
        min_length=1,
        description="`sample`, `sample:world`, files, a store, an endpoint's URL, `wikidata` or `SCHEME:REST`.",
    )
    cache_folder: Path = Field(
        default_factory=_cache_folder, description="Where imported files are kept; can be deleted at any time."
    )
    data_folder: Path = Field(default_factory=_data_folder, description="Where things that must last are kept.")
    languages: Annotated[tuple[LanguageTag, ...], AT_COMMAS, Field(min_length=1)] = Field(
        default=("en", "mul"), description="Languages of labels, the preferred first, as in `en,mul`."
    )
    prefixes: Annotated[Texts, AfterValidator(_prefixes)] = Field(
        default=(), description="Short forms of IRIs of files and endpoints, as `ex=https://example.org/`."
    )
    relations: RelationSettings = RelationSettings()
    max_tokens: int = Field(
        default=2_000, ge=100, le=100_000, description="How long an answer may be, in tokens, by default."
    )
    timeout_s: float = Field(
        default=10.0, gt=0, le=600, description="Seconds that one tool call may wait for the graph."
    )
    hub_degree: int = Field(default=1_000, ge=2, description="Paths avoid nodes with more neighbours than this.")
    max_expansions: int = Field(default=2_000_000, ge=1, description="How many edges one path search may look at.")
    observe_score: ObserveScore = Field(
        default="relation-first",
        description="What `observe` ranks by: `relation-first`, or `paper`, which is ODA's and slow.",
    )
    compose_retrieve: Literal["name", "nearest"] = Field(
        default="name",
        description="What `Retrieve` in `Compose` gives: who bears a `name`, or the one node `nearest` by embedding.",
    )
    learn: bool = Field(
        default=False, description="Whether solved questions are kept, and those like a new one offered as examples."
    )
    agent_parameters: Texts = Field(
        default=(), description="Parameters of the agent that `ask` runs, as in `hops=2,iterations=4`."
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
    sparql: SparqlSettings = SparqlSettings()
    endpoint: EndpointSettings = EndpointSettings()
    wikidata: WikidataSettings = WikidataSettings()
    imports: ImportSettings = ImportSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    llm: LlmSettings = LlmSettings()
    memory: MemorySettings = MemorySettings()
    http: HttpSettings = HttpSettings()

    def value(self, name: str) -> object:
        """Return the value of a setting by its name, such as `endpoint.token`."""
        value: object = self
        for part in name.split("."):
            value = getattr(value, part)
        return value

    @cached_property
    def redactor(self) -> Redactor:
        """What takes the secrets among these settings out of texts, those in addresses included."""
        values = [self.value(name) for name in FIELDS]
        secrets = [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
        addresses = [value for value in values if isinstance(value, str) and "://" in value]
        user = [self.endpoint.user] if self.endpoint.user else []
        return Redactor().also(secrets, user).also_in(*addresses)


def _fields() -> dict[str, FieldInfo]:
    fields: dict[str, FieldInfo] = {}
    for name, field in Settings.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            fields |= {f"{name}.{each}": inner for each, inner in section.model_fields.items()}
        else:
            fields[name] = field
    return fields


FIELDS: Final[Mapping[str, FieldInfo]] = _fields()
"""Every setting by its name, such as `max_tokens` or `endpoint.token`."""


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return ENVIRONMENT_PREFIX + name.upper().replace(".", "__")
