"""Every shape of query that can be built for an endpoint, by the function that builds it."""

import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import product

from kg_adapters.algebra import Instances
from kg_adapters.errors import Unsupported
from kg_adapters.set_requests import SetRequest, SharedBy
from kg_adapters.sparql import queries as package
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql.queries.descriptions import APART
from kg_adapters.sparql.queries.edges import NAMED_APART, Fill, GroupSpan, Scope
from kg_adapters.sparql.queries.edges import GroupKey as EdgeGroup
from kg_adapters.sparql.queries.profiles import ClassMembers
from kg_adapters.sparql.queries.sets import SetQueries, ways
from kg_adapters.terms import RDF_LANG_STRING, Attribute, Literal, Triple
from kg_adapters.testing import iri, typed
from set_expressions import drawn

HOSTILE = (
    '" } } UNION { ?s ?p ?o } #',
    "back\\slash",
    "two\nlines\r\tand a tab",
    "'''",
    '"""',
    "水星 ☿ 🪐",
    "\\u0022",
    "?x $y",
)
QUESTIONS = 25
ENTITIES = [iri("a"), iri("東京")]
NAMED = frozenset({iri("r"), iri("s")})
SPANS = (
    GroupSpan(iri("a"), EdgeGroup(False, iri("r")), 0, 5),
    GroupSpan(iri("東京"), EdgeGroup(True, iri("r")), 7, 9),
    GroupSpan(iri("a"), EdgeGroup(False, iri("r"), literal=True), 2, 5),
)
SCOPES = (
    Scope("both"),
    Scope("in", NAMED),
    Scope("in", frozenset(iri(f"r{number}") for number in range(NAMED_APART + 1))),
    Scope("out", frozenset()),
    Scope("both", values=True),
    Scope("out", NAMED, values=True),
)
VALUES = (typed("1.5", "decimal"), typed("no number", "integer"), Literal("\x07"), Literal("x", RDF_LANG_STRING, "en"))
TEXTS = (" ".join(HOSTILE), "plain words", "one", "five words of a name")
OWNERS = (ClassMembers(0, (iri("c"),)), ClassMembers(1, (iri("d"), iri("e"))))
RESULTS = (iri("a"), Literal("x"))

Built = Iterator[str | None]


def _around(queries: Queries) -> Built:
    for scope in SCOPES:
        for fill, labelled in ((Fill(), False), (Fill(5, 100, 50), True), (Fill(spans=SPANS), True)):
            yield queries.edges.around(ENTITIES, scope, fill, labelled=labelled)


def _features(queries: Queries) -> Built:
    for entities in (ENTITIES, [iri(f"a{number}") for number in range(APART + 1)]):
        for relations in (None, sorted(NAMED)):
            yield queries.descriptions.features(entities, relations, 5, 100)


def _stated(queries: Queries) -> Built:
    attributes = (Attribute(iri("a"), iri("r"), value) for value in VALUES)
    yield queries.edges.stated([Triple(iri("a"), iri("r"), iri("b")), *attributes])


def _indexed(queries: Queries) -> Built:
    if (index := queries.dialect.text_search) != "none":
        for text, kind in product(TEXTS, (None, iri("Town"))):
            yield queries.names.indexed(text, kind, index, 5)


def _holding(queries: Queries) -> Built:
    if (index := queries.dialect.text_search) != "none":
        yield queries.names.holding("kyoto", index)


def _samples(queries: Queries) -> Built:
    for direction in ("out", "in"):
        yield queries.profiles.sample(OWNERS, 7, direction, 100)
    yield queries.profiles.types(OWNERS, 7, ("out", "in"), 100)


def _pairs(queries: Queries) -> Built:
    for back in (False, True):
        yield queries.profiles.pairs(sorted(NAMED), back=back, most=100)


def _sets(queries: Queries) -> Built:
    """Yield what random questions of every sort are asked by, but for those that the engine is not asked."""
    writer = SetQueries(queries.sets)
    for question in drawn(QUESTIONS, ()):
        try:
            request = SetRequest(question, limit=5)
            yield writer.answer(request)
            for only_count in (False, True):
                yield writer.explained(question, only_count=only_count)
            if not isinstance(question, SharedBy):
                yield ways(queries.sets, dict.fromkeys(RESULTS, question.of)).text
        except Unsupported:
            assert not queries.dialect.nests_sets
    yield writer.members(Instances(iri("c")), None)


def _named(build: Callable[[Queries, str], str | None]) -> Callable[[Queries], Built]:
    return lambda queries: (build(queries, text) for text in TEXTS)


def _survey(build: Callable[[Queries, int | None], str]) -> Callable[[Queries], Built]:
    return lambda queries: (build(queries, sampled) for sampled in (None, 1_000))


def _one(build: Callable[[Queries], str | None]) -> Callable[[Queries], Built]:
    return lambda queries: iter((build(queries),))


SHAPES: Mapping[str, Callable[[Queries], Built]] = {
    "EdgeQueries.around": _around,
    "EdgeQueries.spans": _one(lambda queries: queries.edges.spans(SPANS, Scope("both"), labelled=True)),
    "EdgeQueries.degrees": lambda queries: (queries.edges.degrees(ENTITIES, scope) for scope in SCOPES),
    "EdgeQueries.neighbor_counts": _one(lambda queries: queries.edges.neighbor_counts(ENTITIES)),
    "EdgeQueries.stated": _stated,
    "EdgeQueries.joined": lambda queries: (
        queries.edges.joined(iri("a"), iri("東京"), hops, without, 5)
        for hops in (1, 2, 3)
        for without in ((), sorted(NAMED))
    ),
    "DescriptionQueries.labels": _one(lambda queries: queries.descriptions.labels(ENTITIES)),
    "DescriptionQueries.describe": _one(lambda queries: queries.descriptions.describe(ENTITIES, 10)),
    "DescriptionQueries.features": _features,
    "NameQueries.exact": _named(lambda queries, text: queries.names.exact(text, iri("Town"), 5)),
    "NameQueries.of": _one(lambda queries: queries.names.of(ENTITIES, 5)),
    "NameQueries.scan": _named(lambda queries, text: queries.names.scan(text, iri("Town"), scanned=9, limit=5)),
    "NameQueries.indexed": _indexed,
    "NameQueries.valued": lambda queries: (queries.names.valued([text], 5) for text in ("Kyoto", *HOSTILE)),
    "NameQueries.some": _one(lambda queries: queries.names.some(5)),
    "NameQueries.holding": _holding,
    "NameQueries.connectors": lambda queries: (
        iter((queries.names.connectors(),)) if queries.dialect.name == "graphdb" else iter(())
    ),
    "SurveyQueries.size": _one(lambda queries: queries.survey.size()),
    "SurveyQueries.statements": _one(lambda queries: queries.survey.statements(5)),
    "SurveyQueries.classes": _survey(lambda queries, sampled: queries.survey.classes(sampled, 5)),
    "SurveyQueries.relations": _survey(lambda queries, sampled: queries.survey.relations(sampled, 5)),
    "SurveyQueries.features": _survey(lambda queries, sampled: queries.survey.features(sampled, 5)),
    "SurveyQueries.entities": _one(lambda queries: queries.survey.entities()),
    "SurveyQueries.iris": _one(lambda queries: queries.survey.iris(10, 5)),
    "ProfileQueries.classes": lambda queries: (query for query, _ in queries.profiles.classes(1_000)),
    "ProfileQueries.unwanted": _one(lambda queries: queries.profiles.unwanted(NAMED)),
    "ProfileQueries.sample": _samples,
    "ProfileQueries.types": _samples,
    "ProfileQueries.broader": lambda queries: (queries.profiles.broader(each) for each in (None, [iri("c")])),
    "ProfileQueries.sizes": _one(lambda queries: queries.profiles.sizes(OWNERS)),
    "ProfileQueries.having": lambda queries: (queries.profiles.having(each) for each in OWNERS),
    "ProfileQueries.declared_links": _one(lambda queries: queries.profiles.declared_links()),
    "ProfileQueries.pairs": _pairs,
    "SetQueries.answer": _sets,
    "SetQueries.explained": _sets,
    "SetQueries.members": _sets,
}
"""What builds queries, with how the queries of each shape come about."""


def builders() -> set[str]:
    """Return the public functions of all classes of queries, as the code has them, but for those that say yes or no."""
    found: set[str] = set()
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for name, kind in vars(import_module(module.name)).items():
            if inspect.isclass(kind) and kind.__module__ == module.name and name.endswith("Queries"):
                found |= {
                    f"{name}.{method}"
                    for method, what in vars(kind).items()
                    if inspect.isfunction(what)
                    and method[0] != "_"
                    and inspect.signature(what).return_annotation is not bool
                }
    return found


def as_plain(query: str) -> str:
    """Return a query without what no parser of SPARQL 1.1 reads: how Virtuoso is asked for a score."""
    return query.replace(" OPTION (SCORE ?w)", "")


def every_query(queries: Queries) -> dict[str, None]:
    """Return every query that can be built, each once, in a fixed order."""
    return dict.fromkeys(
        query for build in dict.fromkeys(SHAPES.values()) for query in build(queries) if query is not None
    )


def shortest_queries(queries: Queries) -> set[str]:
    """Return the shortest query of each function, for parsers that take their time."""
    built = ([query for query in build(queries) if query is not None] for build in SHAPES.values())
    return {min(each, key=len) for each in built if each}
