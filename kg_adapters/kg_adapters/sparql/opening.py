"""Opens the graph behind a SPARQL endpoint."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from kg_adapters.errors import InvalidRequest, KGError
from kg_adapters.http.options import EndpointOptions
from kg_adapters.labels import Vocabulary
from kg_adapters.open_options import OpenOptions
from kg_adapters.prefixes import WIKIDATA, Prefixes
from kg_adapters.sparql.adapter import SparqlAdapter, SparqlParts
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql.schema import SchemaFile, SurveyLimits, Surveyor, with_well_known
from kg_adapters.sparql.search import EndpointSearch
from kg_boundary.shown import in_plain_words

OPENING_S: Final = 3.0
"""How long finding the prefixes may take, since no call can be answered before the graph is open."""
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

    The first time it asks for some IRIs, to know which prefixes to use; an endpoint that does not answer is opened with
    the well-known ones, so that calls can report what is wrong with it.

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
    queries = Queries.of(DIALECTS[reached.dialect], vocabulary)
    asker = QueryAsker(answerer, queries.dialect, reached.timeout_s)
    file = SchemaFile(options.cache_folder, _key(reached, vocabulary))
    return SparqlAdapter(
        SparqlParts(
            name=_shown(reached.url),
            endpoint=answerer,
            queries=queries,
            prefixes=_with_chosen(options.prefixes, await _prefixes(Surveyor(asker, queries.survey), file, queries)),
            graphs=(*reached.default_graphs, *reached.named_graphs),
            search=EndpointSearch(asker, queries.names, reached.text_search),
            file=file,
            timeout_s=reached.timeout_s,
            survey=SurveyLimits(timeout_s=_SURVEYED * reached.timeout_s),
            clock=clock,
        )
    )


async def _prefixes(surveyor: Surveyor, file: SchemaFile, queries: Queries) -> Prefixes:
    known = file.prefixes()
    if known is not None:
        return known
    try:
        found = await surveyor.prefixes(timeout_s=OPENING_S)
    except KGError:
        found = None
    if found is None:
        return with_well_known(WIKIDATA, blank_nodes=queries.dialect.blank_nodes is not None)
    file.keep_prefixes(found)
    return found


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
    return (reached.url, reached.dialect, *vocabulary.languages, "", *graphs, *relations)


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}".rstrip("/")
