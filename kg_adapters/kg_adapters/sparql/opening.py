"""Opens the graph behind a SPARQL endpoint."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

import anyio
from pydantic import ValidationError

from kg_adapters.errors import InvalidRequest, KGError
from kg_adapters.http.options import EndpointOptions
from kg_adapters.labels import Vocabulary
from kg_adapters.open_options import OpenOptions
from kg_adapters.prefixes import WIKIDATA, Prefixes
from kg_adapters.sparql.adapter import SparqlAdapter, SparqlParts
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.detection import Detector
from kg_adapters.sparql.dialects import DIALECTS, Dialect, Engine
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.sparql.index_state import IndexState
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql.schema import SchemaFile, SurveyLimits, Surveyor, with_well_known
from kg_adapters.sparql.search import EndpointSearch
from kg_boundary.shown import in_plain_words

OPENING_S: Final = 3.0
"""How long finding the prefixes and the engine may take, since no call can be answered before the graph is open."""
_SURVEYED: Final = 0.8
"""The part of the time for a call in which the graph is counted for the schema; the rest is for its answer."""


async def open_sparql(
    name: str,
    options: OpenOptions,
    *,
    endpoint: EndpointOptions | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> SparqlAdapter:
    """Open the graph behind an endpoint.

    The first time it asks for some IRIs, to know which prefixes to use, and, where the settings leave it open, which
    engine it is; an endpoint that does not answer is opened as one of plain SPARQL 1.1 with the well-known prefixes, so
    that calls can report what is wrong with it.

    Args:
        name: The endpoint's URL.
        options: The languages, the named graphs to read, and where to cache what was found.
        endpoint: How the endpoint is reached; by default as in the options.
        clock: Returns the time, in seconds, by which an endpoint is found to be slow.

    Raises:
        InvalidRequest: The URL, or the IRI of a graph, is invalid.
    """
    reached = endpoint or options.endpoint or _plain(name, options.graphs)
    answerer = SparqlEndpoint(reached)
    usual = Vocabulary(languages=options.languages) if options.languages else Vocabulary()
    vocabulary = options.chosen.joined(usual, options.prefixes)
    key = _key(reached, vocabulary)
    found, engine = await _Opening(answerer, vocabulary, SchemaFile(options.cache_folder, key)).found()
    queries = Queries.of(engine.dialect_of(), vocabulary)
    asker = QueryAsker(answerer, queries.dialect, reached.timeout_s)
    state = IndexState(answerer, clock) if engine.dialect == "qlever" else None
    index = None if state is None else await state.current()
    prefixes = replace(found, blank_nodes=queries.dialect.blank_nodes is not None)
    return SparqlAdapter(
        SparqlParts(
            name=options.name or _shown(reached.url),
            endpoint=answerer,
            queries=queries,
            prefixes=_with_chosen(options.prefixes, prefixes),
            graphs=(*reached.default_graphs, *reached.named_graphs),
            search=EndpointSearch(asker, queries.names, engine.text_search),
            engine=engine,
            state=state,
            # Its prefixes are those of the other file, so that ids keep their meaning.
            file=SchemaFile(options.cache_folder, key if index is None else (*key, index.id)),
            timeout_s=reached.timeout_s,
            survey=SurveyLimits(timeout_s=_SURVEYED * reached.timeout_s),
            clock=clock,
        )
    )


class _Opening:
    """Finds out what is needed to ask an endpoint, from the file or by asking."""

    def __init__(self, endpoint: SparqlEndpoint, vocabulary: Vocabulary, file: SchemaFile) -> None:
        self._endpoint = endpoint
        self._vocabulary = vocabulary
        self._file = file
        self._end = anyio.current_time() + OPENING_S
        told = endpoint.options
        self._told = Engine(
            "standard" if told.dialect == "auto" else told.dialect,
            "none" if told.text_search == "auto" else told.text_search,
        )

    async def found(self) -> tuple[Prefixes, Engine]:
        """Return the prefixes and the engine; what could not be found out now is asked for at the next opening."""
        known = self._file.engine()
        prefixes = self._file.prefixes()
        if prefixes is None:
            try:
                prefixes = await self._surveyed((known or self._told).dialect_of())
            except KGError:
                # What does not answer is not asked for more.
                known = known or self._told
        engine = _fitting(known or await self._engine())
        return prefixes or with_well_known(WIKIDATA, blank_nodes=False), engine

    async def _surveyed(self, dialect: Dialect) -> Prefixes | None:
        asker = QueryAsker(self._endpoint, dialect, self._endpoint.options.timeout_s)
        surveyor = Surveyor(asker, Queries.of(dialect, self._vocabulary).survey)
        found = await surveyor.prefixes(timeout_s=OPENING_S)
        if found is not None:
            self._file.keep_prefixes(found)
        return found

    async def _engine(self) -> Engine:
        told = self._endpoint.options
        if "auto" not in {told.dialect, told.text_search} and told.dialect != "graphdb":
            return self._told
        detector = Detector(self._endpoint, self._vocabulary, self._end)
        dialect = await detector.dialect() if told.dialect == "auto" else told.dialect
        if dialect is None:
            return self._told
        engine = replace(self._told, dialect=dialect, longest_limit_s=await detector.longest_limit_s(dialect))
        engine = replace(engine, connector=await detector.connector(engine.dialect_of()))
        index = await detector.text_search(engine.dialect_of()) if told.text_search == "auto" else told.text_search
        if index is None:
            return engine
        engine = replace(engine, text_search=index)
        self._file.keep_engine(engine)
        return engine


def _fitting(engine: Engine) -> Engine:
    """Return an engine without an index that it is not known to ask."""
    fits = engine.text_search != "lucene" or DIALECTS[engine.dialect].text_search == "lucene"
    return engine if fits else replace(engine, text_search="none")


def _with_chosen(chosen: Mapping[str, str], found: Prefixes) -> Prefixes:
    taken = set(chosen.values())
    others = {prefix: name for prefix, name in found.namespaces.items() if name not in taken}
    return replace(
        found, namespaces={**chosen, **{prefix: others[prefix] for prefix in others if prefix not in chosen}}
    )


def _plain(url: str, graphs: tuple[str, ...]) -> EndpointOptions:
    try:
        return EndpointOptions(url=url, default_graphs=graphs)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]["msg"]
        # The URL itself may hold a secret.
        raise InvalidRequest(f"The endpoint's URL cannot be used: {in_plain_words(problem)}.") from None


def _key(reached: EndpointOptions, vocabulary: Vocabulary) -> tuple[str, ...]:
    graphs = (*sorted(reached.default_graphs), "", *sorted(reached.named_graphs))
    usual = replace(Vocabulary(), languages=vocabulary.languages)
    relations = [] if vocabulary == usual else ["", *(iri.value for iri in (*vocabulary.labels, *vocabulary.types))]
    relations += [] if vocabulary.standard_inverses else ["declared inverses"]
    return (reached.url, reached.dialect, reached.text_search, *vocabulary.languages, "", *graphs, *relations)


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}".rstrip("/")
