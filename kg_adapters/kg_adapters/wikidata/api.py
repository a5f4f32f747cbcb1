"""Wikidata's web API: the actions `wbgetentities` and `wbsearchentities`, and its full-text search."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final, TypeVar
from typing import Literal as Choice
from urllib.parse import urlencode

import anyio
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from kg_adapters.errors import BackendError, BackendUnavailable, causes
from kg_adapters.http.client import EndpointClient
from kg_adapters.http.failures import Failure
from kg_adapters.http.messages import HttpReply, HttpRequest
from kg_adapters.http.pacing import Pace, Timing, retry_after_s
from kg_adapters.http.reply_file import ReplyFile
from kg_adapters.wikidata.options import WikidataOptions


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
    redirects: Redirect | None = None
    missing: object = None


class ApiError(_Said):
    """Why there is no answer; it comes with HTTP status 200."""

    code: str
    info: str = ""


class Matched(_Said):
    """Which text a search found."""

    type: str
    text: str = ""
    language: str = ""


class Hit(_Said):
    """One entity that `wbsearchentities` found."""

    id: str
    match: Matched


class Page(_Said):
    """One page that the full-text search found; that of an item bears its id."""

    title: str


class Pages(_Said):
    """What the full-text search found."""

    search: list[Page]


class ApiAnswer(_Said):
    """The answer to any action: each fills in its part, or there is an error."""

    error: ApiError | None = None
    entities: Annotated[dict[str, Entity], BeforeValidator(_map)] = Field(default_factory=dict[str, Entity])
    search: list[Hit] | None = None
    query: Pages | None = None


Kind = Choice["item", "property"]

BATCH: Final = 50
"""The most ids, or hits, of one request."""

MAX_TEXT: Final = 250
"""The most characters of a text that is searched for; longer ones are cut."""

ALIKE: Final = 20
"""The most entities that are compared with a misspelled name."""

_MAX_WORDS: Final = 12

_FORGIVEN_FROM: Final = 4

_WORD: Final = re.compile(r"\w+")

_ID: Final = re.compile(r"[QPL][1-9][0-9]{0,9}")

_LARGEST: Final = 2**31 - 1

_PASSING: Final = frozenset({"maxlag", "ratelimited", "readonly", "internal_api_error_DBQueryTimeoutError"})

_JSON: Final = ("application/json",)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """What the API states about an entity.

    Args:
        id: Its id; another one than was asked for where that was merged into it.
        label: Its name in the first language that it has one in.
        aliases: Its other names in the languages of the options; of items only where a property was asked for too.
    """

    id: str
    label: str | None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApiMatch:
    """An entity that a search found, and the text that matched: its label or an alias."""

    id: str
    text: str
    is_alias: bool


class WikidataApi:
    """Asks the web API.

    Args:
        options: Where it is, the languages and all limits.
        pace: Decides when each request may be sent.
        timing: Where time and chance come from.
        replies: Caches replies; None for no cache.
    """

    def __init__(
        self,
        options: WikidataOptions,
        *,
        pace: Pace,
        timing: Timing | None = None,
        replies: ReplyFile | None = None,
    ) -> None:
        self._options = options
        self._endpoint = options.api_endpoint
        self._timing = timing or Timing()
        self._client = EndpointClient(self._endpoint, timing=self._timing, pace=pace, replies=replies)

    async def entities(self, ids: Collection[str]) -> Mapping[str, NamedEntity]:
        """Return what is known of entities, by the id that was asked for; those that do not exist are left out.

        Fifty of them cost a request, and one more where some have no label in the languages of the options: those get
        one in any. The requests are sent side by side, as far as the limits let them.

        Raises:
            BackendError: There is no answer, or it cannot be read.
        """
        wanted = sorted({each for each in ids if _can_exist(each)})
        found: dict[str, NamedEntity] = {}

        async def ask(batch: Sequence[str]) -> None:
            languages = {"languages": "|".join(self._options.all_languages), "languagefallback": "1"}
            props = "labels" + ("|aliases" if any(map(_is_property, batch)) else "")
            named = await self._about(batch, props=props, **languages)
            found.update(named)
            if nameless := [each for each, entity in named.items() if entity.label is None]:
                found.update(await self._about(nameless, props="labels"))

        try:
            async with anyio.create_task_group() as tasks:
                for first in range(0, len(wanted), BATCH):
                    tasks.start_soon(ask, wanted[first : first + BATCH])
        except* BackendError as group:
            failure = next(each for each in causes(group) if isinstance(each, BackendError))
        else:
            return found
        raise failure

    async def search(self, text: str, *, limit: int, kind: Kind = "item") -> Sequence[ApiMatch]:
        """Return the entities whose label or alias begins like a text, best first, at most fifty.

        Raises:
            BackendError: There is no answer, or it cannot be read.
        """
        if not text.strip() or limit < 1:
            return []
        language = self._options.all_languages[0]
        return await self._ask(
            self._matches,
            action="wbsearchentities",
            search=text.strip()[:MAX_TEXT],
            language=language,
            uselang=language,
            type=kind,
            limit=str(min(limit, BATCH)),
        )

    async def alike(self, text: str) -> Sequence[ApiMatch]:
        """Return the names of items that hold the words of a text, each of them with at most one slip of the pen.

        It costs two requests: the full-text search, and the labels and aliases of what that found.

        Raises:
            BackendError: There is no answer, or it cannot be read.
        """
        words = _WORD.findall(text[:MAX_TEXT])[:_MAX_WORDS]
        if not words:
            return []
        ids = await self._ask(
            self._ids,
            action="query",
            list="search",
            srsearch=" ".join(f"{word}~1" if len(word) >= _FORGIVEN_FROM else word for word in words),
            srnamespace="0",
            srprop="",
            srinfo="",
            srlimit=str(ALIKE),
        )
        if not ids:
            return []
        languages = "|".join(self._options.all_languages)
        return await self._ask(
            lambda answer: [match for each in answer.entities.values() for match in _names(each)],
            action="wbgetentities",
            ids="|".join(ids),
            props="labels|aliases",
            languages=languages,
        )

    async def aclose(self) -> None:
        """Close the connections; calling it twice is harmless."""
        await self._client.aclose()

    def _matches(self, answer: ApiAnswer) -> Sequence[ApiMatch]:
        if answer.search is None:
            raise self._unreadable("search")
        return [_match(hit) for hit in answer.search if _can_exist(hit.id)]

    def _ids(self, answer: ApiAnswer) -> Sequence[str]:
        if answer.query is None:
            raise self._unreadable("query")
        return [page.title for page in answer.query.search if _can_exist(page.title)]

    async def _about(self, ids: Sequence[str], **parameters: str) -> Mapping[str, NamedEntity]:
        return await self._ask(
            lambda answer: self._named(answer.entities, ids),
            action="wbgetentities",
            ids="|".join(ids),
            **parameters,
        )

    def _named(self, entities: Mapping[str, Entity], asked: Sequence[str]) -> Mapping[str, NamedEntity]:
        # What was merged stands under its old id or under its new one.
        said = {**{each.redirects.merged: each for each in entities.values() if each.redirects}, **entities}
        if silent := [each for each in asked if each not in said]:
            # An answer that leaves an id out does not prove that there is no such entity.
            raise self._unreadable(f"nothing about {silent[0]}")
        return {each: self._name(each, said[each]) for each in asked if not _is_gone(said[each])}

    def _name(self, asked: str, entity: Entity) -> NamedEntity:
        merged = entity.redirects is not None and entity.redirects.merged == asked
        spoken = (entity.aliases.get(language, ()) for language in self._options.all_languages)
        others = tuple(dict.fromkeys(text.value for texts in spoken for text in texts))
        return NamedEntity(
            entity.redirects.to if entity.redirects and merged else asked, self._chosen(entity.labels), others
        )

    def _chosen(self, texts: Mapping[str, Text]) -> str | None:
        """Return a text in the preferred language, or in that which sorts first."""
        found = next((texts[each] for each in (*self._options.all_languages, *sorted(texts)) if each in texts), None)
        return None if found is None else found.value

    async def _ask(self, use: Callable[[ApiAnswer], T], **parameters: str) -> T:
        form = {"format": "json", "formatversion": "2", "maxlag": str(self._options.maxlag_s), **parameters}
        request = HttpRequest("GET", f"{self._endpoint.url}?{urlencode(form)}", _JSON)
        return await self._client.ask(request, partial(self._read, use), timeout_s=self._options.timeout_s)

    def _read(self, use: Callable[[ApiAnswer], T], reply: HttpReply) -> T | Failure:
        try:
            answer = ApiAnswer.model_validate_json(reply.body)
            return use(answer) if answer.error is None else self._refusal(answer.error, reply)
        except ValidationError as error:
            where = ".".join(map(str, error.errors(include_url=False, include_input=False)[0]["loc"])) or "its form"
            return Failure(self._unreadable(where))
        except BackendError as error:
            return Failure(error)

    def _unreadable(self, what: str) -> BackendError:
        return BackendError(
            f"{self._endpoint.host} answered what its web API does not ({what}). Check that the URL is that of "
            "Wikidata's api.php."
        )

    def _refusal(self, error: ApiError, reply: HttpReply) -> Failure:
        who, said = self._endpoint.host, f"{error.code}: {error.info}"[:200]
        if error.code not in _PASSING:
            return Failure(BackendError(f"{who} refuses the question for names ({said}). Report this as a bug."))
        asked_s = retry_after_s(reply.headers.get("retry-after"), self._timing.now())
        when = "later" if asked_s is None else f"in {max(1, round(asked_s))} s"
        unavailable = BackendUnavailable(f"{who} cannot serve names now ({said}). Ask again {when}.")
        return Failure(unavailable, may_pass=True, retry_after_s=asked_s)


def _can_exist(text: str) -> bool:
    """Return whether a text can be an id: one that cannot fails the whole request."""
    return _ID.fullmatch(text) is not None and int(text[1:]) <= _LARGEST


def _is_property(text: str) -> bool:
    return text.startswith("P")


def _is_gone(entity: Entity) -> bool:
    return entity.missing is not None and entity.missing is not False


def _match(hit: Hit) -> ApiMatch:
    return ApiMatch(hit.id, hit.match.text or hit.id, hit.match.type == "alias")


def _names(entity: Entity) -> Iterator[ApiMatch]:
    if _can_exist(entity.id) and not _is_gone(entity):
        yield from (ApiMatch(entity.id, text.value, is_alias=False) for text in entity.labels.values())
        others = (text for texts in entity.aliases.values() for text in texts)
        yield from (ApiMatch(entity.id, text.value, is_alias=True) for text in others)
