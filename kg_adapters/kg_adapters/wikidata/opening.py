"""Opens Wikidata, or a mirror of it."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import ValidationError

from kg_adapters.errors import InvalidRequest
from kg_adapters.http.options import EndpointOptions
from kg_adapters.http.pacing import RATES, Pace, Rates, Timing
from kg_adapters.http.reply_file import ReplyFile
from kg_adapters.open_options import OpenOptions
from kg_adapters.sparql.adapter import SparqlParts
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.sparql.profile_survey import ProfileLimits
from kg_adapters.sparql.schema import SchemaFile, SurveyLimits
from kg_adapters.wikidata.adapter import WikidataAdapter, WikidataService
from kg_adapters.wikidata.api import WikidataApi
from kg_adapters.wikidata.features import FeatureReader, StatedValues
from kg_adapters.wikidata.names import SharedNames, WikidataNames, WikidataSearch
from kg_adapters.wikidata.options import ANONYMOUS_PER_MINUTE, KNOWN_PER_MINUTE, QUERY_URL, WikidataOptions
from kg_adapters.wikidata.queries import PREFIXES, ValueQueries, queries_for
from kg_boundary.shown import in_plain_words

NAME = "wikidata"
REPLIES = "wikidata-replies.sqlite"
# Their names come from the web API, fifty a request.
SURVEY = SurveyLimits(classes=100, relations=150)
PROFILED = ProfileLimits(
    read=0,
    classes=24,
    together=800,
    rows=50_000,
    relations=40,
    pairs=100,
    sampled=50_000,
    queries=24,
    total_s=900.0,
    whole=False,
)
"""Counts over all people or places end with the query service's own limit, so some of each have to do."""
SHARE = 5
"""Of how many requests that may be sent one is for the profile."""
CONTACT_ADVICE = (
    "Set wikidata.contact to your e-mail address or a page about you: Wikimedia then allows "
    f"{KNOWN_PER_MINUTE} requests a minute instead of {ANONYMOUS_PER_MINUTE}."
)


async def open_wikidata(
    rest: str, options: OpenOptions, *, timing: Timing | None = None, rates: Rates = RATES
) -> WikidataAdapter:
    """Open Wikidata; nothing is asked before the first call.

    Args:
        rest: The URL of the SPARQL endpoint of a mirror that holds all of Wikidata, or nothing.
        options: How it is reached, and where to cache what was found.
        timing: Where time and chance come from.
        rates: Who decides when requests may be sent: by default one for all graphs of the process.

    Raises:
        InvalidRequest: The URL is invalid.
    """
    reached = _options(rest, options)
    opening = _Opening(reached, options, timing or Timing(), rates)
    scholarly = reached.scholarly_endpoint
    return WikidataAdapter(
        *opening.parts_of(reached.query_endpoint),
        None if scholarly is None else WikidataService(*opening.parts_of(scholarly)),
        opening.api,
        opening.names,
    )


def advice(options: WikidataOptions) -> Sequence[str]:
    """Return which settings would raise the limits of the service: full sentences."""
    return [CONTACT_ADVICE] if options.contact is None and options.asks_wikimedia else []


def _options(mirror: str, options: OpenOptions) -> WikidataOptions:
    reached = options.wikidata or WikidataOptions(languages=options.languages or ("en",))
    if not mirror:
        return reached
    try:
        return WikidataOptions.model_validate({**dict(reached), "query_url": mirror, "scholarly_url": None})
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]["msg"]
        raise InvalidRequest(f"The mirror's URL cannot be used: {in_plain_words(problem)}.") from None


class _Opening:
    """Puts the parts together."""

    def __init__(self, reached: WikidataOptions, options: OpenOptions, timing: Timing, rates: Rates) -> None:
        self._reached = reached
        self._options = options
        self._timing = timing
        self._rates = rates
        engine = DIALECTS[reached.dialect]
        # Half of what links two nodes may be at the other endpoint.
        joins = engine.joins and reached.scholarly_endpoint is None
        dialect = replace(engine, orders_hubs=False, merges_graphs=False, joins=joins)
        self._queries = queries_for(dialect, reached.all_languages, reached.most_counted)
        self._memory = SharedNames(expiry_s=reached.names_kept_s)
        self.api = WikidataApi(reached, pace=self._pace(reached.api_endpoint), timing=timing, replies=self._replies())
        self.names = WikidataNames(self.api, self._memory, SharedNames(expiry_s=reached.names_kept_s))

    def parts_of(self, reached: EndpointOptions) -> tuple[SparqlParts, FeatureReader]:
        """Return what the adapter over one endpoint is made of."""
        queries = self._queries
        endpoint = SparqlEndpoint(reached, timing=self._timing, pace=self._pace(reached), replies=self._replies())
        asker = QueryAsker(endpoint, queries.dialect, reached.timeout_s)
        values = ValueQueries(queries.dialect, queries.vocabulary)
        parts = SparqlParts(
            name=self._options.name or (NAME if reached.url == QUERY_URL else reached.host),
            endpoint=endpoint,
            queries=queries,
            prefixes=PREFIXES,
            search=WikidataSearch(self.api, asker, values),
            file=SchemaFile(self._options.cache_folder, (reached.url, NAME, *queries.vocabulary.languages)),
            memory=self._memory,
            timeout_s=reached.timeout_s,
            survey=SURVEY,
            profiled=replace(PROFILED, pause_s=SHARE * 60 / self._reached.per_minute),
            value_rows=lambda: StatedValues(queries.vocabulary),
        )
        reader = FeatureReader(
            asker,
            values,
            self.names.labels,
            with_qualifiers=self._reached.qualifiers,
            with_external_ids=self._reached.external_ids,
        )
        return parts, reader

    def _replies(self) -> ReplyFile | None:
        kept_s = self._reached.replies_kept_s
        return ReplyFile(self._options.cache_folder / REPLIES, expiry_s=kept_s) if kept_s else None

    def _pace(self, reached: EndpointOptions) -> Pace:
        advised = " ".join(advice(self._reached))
        return self._rates.of(reached.host, self._reached.per_minute, advice=advised, timing=self._timing)
