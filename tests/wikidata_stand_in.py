"""Wikidata on loopback: its query service, the scholarly one, and three actions of its web API, over small graphs.

Answers have the shapes, status codes, limits and headers that Wikimedia documents. It is a `FaultEndpoint`, so it can
be told to throttle, fail, stall and cut answers short: `stand_in.endpoint.follow(refusing(429), stand_in.script)`.
"""

import json
import math
import re
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio.to_thread
import pyoxigraph
from rapidfuzz.distance import OSA

from fault_endpoint import JSON_RESULTS, Asked, FaultEndpoint, Script, Wire, answering, refusing, serving
from kg_adapters.prefixes import WIKIDATA
from kg_adapters.terms import Iri
from kg_adapters.wikidata.options import WikidataOptions

CONTACT = "someone@example.org"
QUERY, SCHOLARLY, API = "/sparql", "/scholarly", "/w/api.php"
MOST_IDS = 50
PREFIXES = "".join(f"PREFIX {prefix}: <{name}>\n" for prefix, name in WIKIDATA.namespaces.items()) + (
    "PREFIX psv: <http://www.wikidata.org/prop/statement/value/>\n"
    "PREFIX owl: <http://www.w3.org/2002/07/owl#>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
    "PREFIX geo: <http://www.opengis.net/ont/geosparql#>\n"
)
_NAMES = ("http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/2004/02/skos/core#altLabel")
_WORD = re.compile(r"\w+")
_PROPERTY_LABEL = re.compile(r"<http://www\.wikidata\.org/prop/direct/(P\d+)> <(http://www\.w3\.org/[^>]*)> ")


def wd(name: str) -> Iri:
    """Return an item or property."""
    return Iri(f"http://www.wikidata.org/entity/{name}")


def wdt(name: str) -> Iri:
    """Return a relation."""
    return Iri(f"http://www.wikidata.org/prop/direct/{name}")


def graph(turtle: str) -> pyoxigraph.Store:
    """Return a graph in Wikidata's form, with its prefixes declared."""
    store = pyoxigraph.Store()
    store.bulk_load(PREFIXES + turtle, pyoxigraph.RdfFormat.TURTLE)
    return store


def as_wikidata(lines: Iterable[str]) -> pyoxigraph.Store:
    """Return N-Triples of truthy statements in Wikidata's form, where the names of properties are their items'."""
    found: list[str] = []
    properties: set[str] = set()
    for line in lines:
        if named := _PROPERTY_LABEL.match(line):
            properties.add(named[1])
            found.append(f"<{WIKIDATA.namespaces['wd']}{named[1]}>" + line[line.index(" ") :])
        else:
            found.append(line)
    wikibase = WIKIDATA.namespaces["wikibase"]
    for each in sorted(properties):
        item, direct = (f"<{WIKIDATA.namespaces[prefix]}{each}>" for prefix in ("wd", "wdt"))
        found.append(f"{item} <{wikibase}directClaim> {direct} .\n")
        found.append(f"{item} <{wikibase}propertyType> <{wikibase}WikibaseItem> .\n")
    store = pyoxigraph.Store()
    store.bulk_load("".join(found), pyoxigraph.RdfFormat.N_TRIPLES)
    return store


@dataclass
class WikidataStandIn:
    """A running stand-in; `merged` and `deleted` are what its web API knows beside the graphs."""

    main: pyoxigraph.Store
    scholarly: pyoxigraph.Store = field(default_factory=pyoxigraph.Store)
    merged: Mapping[str, str] = field(default_factory=dict[str, str])
    lag_s: float = 0.0
    endpoint: FaultEndpoint = field(default_factory=lambda: FaultEndpoint([]))

    def options(self, **more: object) -> WikidataOptions:
        """Return how it is reached."""
        base = self.endpoint.url.removesuffix(QUERY)
        told = {"query_url": base + QUERY, "scholarly_url": base + SCHOLARLY, "api_url": base + API}
        return WikidataOptions.model_validate(
            {**told, "contact": CONTACT, "max_retries": 0, "requests_per_minute": 100_000, "replies_kept_s": 0, **more}
        )

    def asked(self, path: str) -> list[Asked]:
        """Return the requests that came to a path."""
        return [each for each in self.endpoint.requests if each.path == path]

    async def script(self, asked: Asked, wire: Wire) -> None:
        """Answer one request as Wikidata does."""
        if "kg-sextant/" not in asked.headers.get("user-agent", ""):
            await answering("Please set a user-agent and respect our robot policy", status=403)(asked, wire)
        elif asked.path == API:
            await self._answer_api(asked, wire)
        else:
            store = self.scholarly if asked.path == SCHOLARLY else self.main
            await self._answer_query(store, asked, wire)

    async def _answer_query(self, store: pyoxigraph.Store, asked: Asked, wire: Wire) -> None:
        def run() -> bytes:
            found = store.query(asked.query)
            if isinstance(found, pyoxigraph.QueryTriples):
                return pyoxigraph.serialize(found, format=pyoxigraph.RdfFormat.N_TRIPLES) or b""
            return found.serialize(format=pyoxigraph.QueryResultsFormat.JSON) or b""

        try:
            body = await anyio.to_thread.run_sync(run)
        except SyntaxError as error:
            await answering(f"MalformedQueryException: {error}", status=400, media_type="text/plain")(asked, wire)
            return
        kind = JSON_RESULTS if body.startswith(b"{") else "application/n-triples"
        await answering(body, media_type=kind)(asked, wire)

    async def _answer_api(self, asked: Asked, wire: Wire) -> None:
        told = {name: values[0] for name, values in asked.parameters.items()}
        headers: dict[str, str] = {}
        body: Mapping[str, object]
        if self.lag_s > float(told["maxlag"]):
            info = f"Waiting for a database server: {self.lag_s} seconds lagged."
            body = {"error": {"code": "maxlag", "info": info, "lag": self.lag_s}, "servedby": "mw1"}
            headers = {"Retry-After": "5", "X-Database-Lag": f"{self.lag_s:.0f}"}
        elif told["action"] == "wbgetentities":
            body = self._entities(told)
        elif told["action"] == "query":
            body = self._pages(told)
        else:
            body = self._found(told)
        reply = answering(json.dumps(body), media_type="application/json; charset=utf-8", headers=headers)
        await reply(asked, wire)

    def _entities(self, told: Mapping[str, str]) -> Mapping[str, object]:
        ids = told["ids"].split("|")
        if len(ids) > MOST_IDS:
            return {"error": {"code": "toomanyvalues", "info": f"Too many values; the limit is {MOST_IDS}."}}
        return {
            "entities": {each: self._entity(each, _languages(told), told.get("props", "")) for each in ids},
            "success": 1,
        }

    def _entity(self, asked: str, languages: list[str] | None, props: str) -> Mapping[str, object]:
        current = self.merged.get(asked, asked)
        labels = self._texts(current, "http://www.w3.org/2000/01/rdf-schema#label", languages)
        if not labels and not self._exists(current):
            return {"id": asked, "missing": ""}
        said: dict[str, object] = {
            "type": "item",
            "id": current,
            # PHP writes an empty map as a list.
            "labels": labels or [],
            "descriptions": self._texts(current, "http://schema.org/description", languages) or [],
        }
        if "aliases" in props:
            aliases = self._texts(current, "http://www.w3.org/2004/02/skos/core#altLabel", languages)
            said["aliases"] = {language: [text] for language, text in aliases.items()} or []
        if current != asked:
            said["redirects"] = {"from": asked, "to": current}
        return said

    def _exists(self, name: str) -> bool:
        return any(True for store in self._stores for _ in store.quads_for_pattern(_item(name), None, None))

    def _texts(self, name: str, relation: str, languages: list[str] | None) -> Mapping[str, object]:
        """Return texts by the language asked for, or all; English ones stand in for languages that the item lacks."""
        found = {
            quad.object.language or "": quad.object.value
            for store in self._stores
            for quad in store.quads_for_pattern(_item(name), pyoxigraph.NamedNode(relation), None)
            if isinstance(quad.object, pyoxigraph.Literal)
        }
        texts: dict[str, object] = {}
        for language in sorted(found) if languages is None else languages:
            source = next((each for each in (language, "mul", "en") if each in found), None)
            if source is not None:
                texts[language] = {"value": found[source], "language": source, "for-language": language}
        return texts

    def _found(self, told: Mapping[str, str]) -> Mapping[str, object]:
        begins = told["search"].lower()
        hits: dict[str, Mapping[str, object]] = {}
        for kind, relation in (("label", "2000/01/rdf-schema#label"), ("alias", "2004/02/skos/core#altLabel")):
            for quad in self.main.quads_for_pattern(None, pyoxigraph.NamedNode(f"http://www.w3.org/{relation}"), None):
                name = str(quad.subject).strip("<>").rpartition("/")[2]
                value = quad.object
                if not isinstance(value, pyoxigraph.Literal) or not value.value.lower().startswith(begins):
                    continue
                if name.startswith("Q" if told["type"] == "item" else "P"):
                    match = {"type": kind, "language": value.language, "text": value.value}
                    hit = {"id": name, "match": match, "concepturi": str(quad.subject)}
                    # Nothing that begins with the text is shorter than the text itself.
                    hits[name] = min(hits.get(name, hit), hit, key=lambda each: len(str(each["match"])))
        ordered = sorted(hits.values(), key=lambda hit: (len(str(hit["match"])), len(str(hit["id"])), str(hit["id"])))
        return {"searchinfo": {"search": told["search"]}, "search": ordered[: int(told["limit"])], "success": 1}

    def _pages(self, told: Mapping[str, str]) -> Mapping[str, object]:
        """Search the names of items for words; one letter of those with a tilde may be wrong, but not the first two."""
        wanted = told["srsearch"].lower().split()
        found: dict[str, set[str]] = {}
        for name in _NAMES:
            for quad in self.main.quads_for_pattern(None, pyoxigraph.NamedNode(name), None):
                page = str(quad.subject).strip("<>").rpartition("/")[2]
                if page.startswith("Q") and isinstance(quad.object, pyoxigraph.Literal):
                    found.setdefault(page, set()).update(_WORD.findall(quad.object.value.lower()))
        pages = [
            page for page, words in found.items() if all(any(_is(word, each) for word in words) for each in wanted)
        ]
        titles = [{"ns": 0, "title": page} for page in sorted(pages)[: int(told["srlimit"])]]
        return {"batchcomplete": True, "query": {"search": titles}}

    @property
    def _stores(self) -> tuple[pyoxigraph.Store, ...]:
        return self.main, self.scholarly


@asynccontextmanager
async def running(stand_in: WikidataStandIn) -> AsyncGenerator[WikidataStandIn]:
    """Let a stand-in serve for the time of a block."""
    async with serving(stand_in.script) as endpoint:
        stand_in.endpoint = endpoint
        yield stand_in


def _item(name: str) -> pyoxigraph.NamedNode:
    return pyoxigraph.NamedNode(WIKIDATA.namespaces["wd"] + name)


def _languages(told: Mapping[str, str]) -> list[str] | None:
    return told["languages"].split("|") if "languages" in told else None


def _is(word: str, wanted: str) -> bool:
    if not wanted.endswith("~1"):
        return word == wanted
    return word[:2] == wanted[:2] and OSA.distance(word, wanted.removesuffix("~1")) <= 1


MINUTE_S = 60.0
_PROGRAM = re.compile(r"[A-Za-z][\w.-]*/\d\S*")
_CONTACT = re.compile(r"\(\S*(?:@|https?://)\S+\)")


@dataclass(frozen=True, slots=True)
class Limits:
    """How many requests a client may send in any minute, and have under way at once."""

    known_per_minute: int = 200
    stranger_per_minute: int = 10
    queries_at_once: int = 5
    api_at_once: int = 3


@dataclass
class Limited:
    """Follows a script for those who keep to the limits, and refuses the others as Wikimedia does.

    Args:
        script: What answers.
        clock: Seconds that only go forward: those that the client lives by.
        limits: How much is too much.
    """

    script: Script
    clock: Callable[[], float]
    limits: Limits = field(default_factory=Limits)
    refusals: list[str] = field(default_factory=list[str])
    _came: defaultdict[tuple[str, str], deque[float]] = field(default_factory=lambda: defaultdict(deque))
    _at_once: defaultdict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))

    async def __call__(self, asked: Asked, wire: Wire) -> None:
        """Answer a request, or refuse it."""
        client = asked.headers.get("user-agent", "")
        if _PROGRAM.match(client) is None:
            await self._refuse(refusing(403, "Set a user agent that says who you are."), "nameless", asked, wire)
            return
        place = (client, asked.path)
        wait_s = self._wait_s(place)
        if wait_s > 0:
            too_often = refusing(429, "You have sent too many requests.", Retry_After=str(math.ceil(wait_s)))
            await self._refuse(too_often, "too often", asked, wire)
        elif self._at_once[place] >= self._most_at_once(asked.path):
            too_many = refusing(429, "You have too many requests under way.", Retry_After="1")
            await self._refuse(too_many, "too many at once", asked, wire)
        else:
            await self._serve(place, asked, wire)

    async def _serve(self, place: tuple[str, str], asked: Asked, wire: Wire) -> None:
        self._came[place].append(self.clock())
        self._at_once[place] += 1
        try:
            await self.script(asked, wire)
        finally:
            self._at_once[place] -= 1

    async def _refuse(self, refusal: Script, why: str, asked: Asked, wire: Wire) -> None:
        self.refusals.append(why)
        await refusal(asked, wire)

    def _wait_s(self, place: tuple[str, str]) -> float:
        came, now = self._came[place], self.clock()
        while came and came[0] + MINUTE_S <= now:
            came.popleft()
        allowed = self.limits.known_per_minute if _CONTACT.search(place[0]) else self.limits.stranger_per_minute
        return came[0] + MINUTE_S - now if len(came) >= allowed else 0.0

    def _most_at_once(self, path: str) -> int:
        return self.limits.api_at_once if path.endswith("/api.php") else self.limits.queries_at_once
