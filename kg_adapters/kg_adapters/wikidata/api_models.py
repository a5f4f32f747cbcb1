"""What the web API answers: only what is read of it, and nothing taken on trust."""

from typing import Annotated
from typing import Literal as Choice

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _map(value: object) -> object:
    # PHP writes an empty map as a list.
    return {} if value == [] else value


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Text(_Said):
    """A text in a language."""

    language: str
    value: str


class Redirect(_Said):
    """An entity that was merged into another."""

    merged: str = Field(alias="from")
    to: str


Texts = Annotated[dict[str, Text], BeforeValidator(_map)]


class Entity(_Said):
    """One entity of `wbgetentities`; `missing` is there when it does not exist."""

    id: str = ""
    labels: Texts = Field(default_factory=dict[str, Text])
    aliases: Annotated[dict[str, list[Text]], BeforeValidator(_map)] = Field(default_factory=dict[str, list[Text]])
    descriptions: Texts = Field(default_factory=dict[str, Text])
    redirects: Redirect | None = None
    missing: object = None


class ApiError(_Said):
    """Why there is no answer; it comes with HTTP status 200."""

    code: str
    info: str = ""
    lag: float | None = None


class EntitiesAnswer(_Said):
    """The answer to `wbgetentities`."""

    error: ApiError | None = None
    entities: Annotated[dict[str, Entity], BeforeValidator(_map)] = Field(default_factory=dict[str, Entity])


class Matched(_Said):
    """Which text a search found."""

    type: str
    text: str = ""
    language: str = ""


class Hit(_Said):
    """One entity that `wbsearchentities` found."""

    id: str
    match: Matched


class SearchAnswer(_Said):
    """The answer to `wbsearchentities`."""

    error: ApiError | None = None
    search: list[Hit] | None = None


class Page(_Said):
    """One page that the full-text search found; that of an item bears its id."""

    title: str


class Pages(_Said):
    """What the full-text search found."""

    search: list[Page]


class PagesAnswer(_Said):
    """The answer to `list=search`."""

    error: ApiError | None = None
    query: Pages | None = None


Kind = Choice["item", "property"]
