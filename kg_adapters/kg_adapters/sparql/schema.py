"""The definition of an endpoint's graph: counted or sampled, and cached on disk with its prefixes and profile."""

import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol, TypeAlias
from typing import Literal as Choice

import anyio
import anyio.to_thread
from pydantic import TypeAdapter, ValidationError

from kg_adapters.errors import BackendUnavailable, InvalidRequest, KGError
from kg_adapters.models import ClassSummary, Count, FeatureSummary, GraphSchema, RelationSummary
from kg_adapters.prefixes import WELL_KNOWN, WIKIDATA, Prefixes, prefixes_in_use
from kg_adapters.profile import GraphProfile
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.dialects import Engine
from kg_adapters.sparql.queries.profiles import SurveyQueries
from kg_adapters.sparql.rows import Bindings, rows
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import XSD, Iri, Literal, Node, Term, Triple, node_key
from kg_boundary.private_files import private_folder, write_private
from kg_boundary.regular_files import read_regular
from kg_boundary.shown import counted

MAX_CLASSES: Final = 2_000
MAX_RELATIONS: Final = 5_000
_LOOKED_AT: Final = 20_000
_MAX_IRIS: Final = 500
# Of the time that is left: what the size may take, and then what counting everything may take before a sample does.
_SIZE_SHARE, _WHOLE_SHARE = 0.25, 0.6


_FEW: Final = 10_000
"""How many statements of a slow endpoint are read; all else would block its other callers for long."""
_FEW_S: Final = 1.0
"""Where the size is not known, an endpoint is slow that takes longer than this to send them."""
_SLOW_S, _SLOW_RATE, _TINY = 0.25, 300_000, 2_000
"""An endpoint is slow that takes longer to count its statements, counts fewer of them a second, and has more."""


@dataclass(frozen=True, slots=True)
class GraphSize:
    """How many statements an endpoint has, and how many seconds it took to count them."""

    statements: int
    seconds: float

    @property
    def is_slow(self) -> bool:
        """Whether the endpoint is so slow that queries over the whole graph would block its other callers."""
        return self.seconds > _SLOW_S and _TINY < self.statements < _SLOW_RATE * self.seconds


async def size_of(
    asker: QueryAsker, queries: SurveyQueries, timeout_s: float, clock: Callable[[], float]
) -> GraphSize | None:
    """Return the size of a graph; None where the endpoint answers without a number.

    Raises:
        KGError: There is no answer in time.
    """
    stats = None if asker.state is None else await asker.state.current()
    if stats is not None:
        return GraphSize(stats.statements, 0.0)
    start = clock()
    answer = await asker.ask_whole(queries.size(), timeout_s=timeout_s)
    number = next((row.number("n") for row in rows(answer)), None)
    return None if number is None else GraphSize(number, clock() - start)


class LabelReader(Protocol):
    """Reads the labels of terms."""

    async def __call__(self, terms: Collection[Node]) -> Mapping[Node, str]:
        """Return the labels of terms; those without one are left out."""
        ...


@dataclass(frozen=True, slots=True)
class SurveyLimits:
    """How much of a graph is counted.

    Args:
        counted: Graphs with more statements than this are sampled.
        sampled: How many statements a sample has, about.
        timeout_s: How many seconds the queries may take together; what is not answered by then is left out.
        classes: The most classes that are listed.
        relations: The most relations, and the most features, that are listed.
    """

    counted: int = 3_000_000
    sampled: int = 100_000
    timeout_s: float = 8.0
    classes: int = MAX_CLASSES
    relations: int = MAX_RELATIONS


_Kind: TypeAlias = Choice["classes", "relations", "features", "entities"]


@dataclass(frozen=True)
class _Findings:
    """The rows of each query that was answered, and which answers are about the whole graph."""

    rows: dict[_Kind, list[Bindings]] = field(default_factory=dict["_Kind", list[Bindings]])
    whole: set[_Kind] = field(default_factory=set["_Kind"])
    failures: list[KGError] = field(default_factory=list[KGError])

    @property
    def nothing(self) -> bool:
        """Whether no list was answered."""
        return not self.rows.keys() & {"classes", "relations", "features"}

    def terms(self) -> list[Node]:
        """Return what the lists are about."""
        listed = (row.node("c") or row.node("p") for found in self.rows.values() for row in found)
        return [term for term in listed if term is not None]


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A schema, and whether the endpoint answered every question for it."""

    schema: GraphSchema
    all_answered: bool


class Surveyor:
    """Describes a graph.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
        limits: How much is counted.
        clock: Returns the time, in seconds, by which an endpoint is found to be slow.
    """

    def __init__(
        self,
        asker: QueryAsker,
        queries: SurveyQueries,
        limits: SurveyLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._asker = asker
        self._queries = queries
        self._limits = limits or SurveyLimits()
        self._clock = clock

    async def prefixes(self, *, timeout_s: float) -> Prefixes | None:
        """Return the prefixes for a graph: those in use among some of its IRIs, and the well-known ones.

        None where there is nothing in it yet.

        Args:
            timeout_s: The most seconds that it may take.

        Raises:
            BackendError: The endpoint does not answer.
        """
        query = self._queries.iris(_LOOKED_AT, _MAX_IRIS)
        answer = await self._asker.ask_whole(query, timeout_s=timeout_s)
        if not answer.rows:
            return None
        found = (row.iri("i") for row in rows(answer))
        used = prefixes_in_use(sorted(iri.value for iri in found if iri is not None), {})
        return with_well_known(used, blank_nodes=self._asker.dialect.blank_nodes is not None)

    async def schema(self, prefixes: Prefixes, labels: LabelReader) -> Surveyed:
        """Return the definition of the graph.

        Raises:
            KGError: The endpoint does not answer any of the queries.
        """
        end = anyio.current_time() + min(self._limits.timeout_s, self._asker.timeout_s)
        size = await self._size(end)
        if self._queries.namespace is None and (size is None or size.is_slow):
            start = self._clock()
            few = await self._asker.ask(self._queries.statements(_FEW), timeout_s=_left_s(end))
            if size is not None or self._clock() - start > _FEW_S:
                found = await anyio.to_thread.run_sync(_counted, few, self._queries.vocabulary.types)
                return Surveyed(replace(await self._summed(found, prefixes, labels), note=_slow(size)), True)
        whole = size is not None and size.statements <= self._limits.counted
        found = await self._findings(None if whole else self._limits.sampled, end)
        if found.nothing and found.failures:
            raise found.failures[0]
        schema = await self._summed(found, prefixes, labels)
        return Surveyed(schema, {"classes", "relations", "features"} <= found.rows.keys())

    async def _summed(self, found: _Findings, prefixes: Prefixes, labels: LabelReader) -> GraphSchema:
        terms = found.terms()
        return _Summary(found, await labels(terms) if terms else {}, self._limits).schema(prefixes)

    async def _size(self, end: float) -> GraphSize | None:
        try:
            return await size_of(self._asker, self._queries, _left_s(end, _SIZE_SHARE), self._clock)
        except BackendUnavailable:
            # The other queries would fail for the same reason, with a less helpful message.
            raise
        except KGError:
            return None

    async def _findings(self, sampled: int | None, end: float) -> _Findings:
        found, queries, limits = _Findings(), self._queries, self._limits
        writers: dict[_Kind, Callable[[int | None], str]] = {
            "classes": lambda sample: queries.classes(sample, limits.classes + 1),
            "relations": lambda sample: queries.relations(sample, limits.relations + 1),
            "features": lambda sample: queries.features(sample, limits.relations + 1),
        }
        async with anyio.create_task_group() as tasks:
            for kind, write in writers.items():
                tasks.start_soon(self._look, found, kind, write, sampled, end)
            if sampled is None:
                tasks.start_soon(self._ask, found, "entities", queries.entities(), True, _left_s(end))
        return found

    async def _look(
        self, found: _Findings, kind: _Kind, write: Callable[[int | None], str], sampled: int | None, end: float
    ) -> None:
        """Ask about a sample, or about the whole graph unless that takes too long."""
        if sampled is None and await self._ask(found, kind, write(None), True, _left_s(end, _WHOLE_SHARE)):
            return
        await self._ask(found, kind, write(self._limits.sampled), False, _left_s(end))

    async def _ask(self, found: _Findings, kind: _Kind, query: str, whole: bool, timeout_s: float) -> bool:
        try:
            answer = await self._asker.ask(query, timeout_s=timeout_s)
        except KGError as error:
            found.failures.append(error)
            return False
        found.rows[kind] = list(rows(answer))
        if whole and not answer.truncated:
            found.whole.add(kind)
        return True


def _left_s(end: float, share: float = 1.0) -> float:
    return max(0.0, end - anyio.current_time()) * share


def with_well_known(used: Prefixes, *, blank_nodes: bool) -> Prefixes:
    """Return prefixes in use together with the well-known ones, which any graph may come to need."""
    offered = {**WELL_KNOWN, **(WIKIDATA.namespaces if used.entities is not None else {})}
    taken = set(used.namespaces.values())
    more = {prefix: name for prefix, name in offered.items() if prefix not in used.namespaces and name not in taken}
    return Prefixes({**used.namespaces, **more}, used.entities, used.relations, blank_nodes)


def _slow(size: GraphSize | None) -> str:
    """Return why a schema is of a few statements, and lacks a profile."""
    took = "cannot count" if size is None else f"took {size.seconds:.1f} s to count"
    number = "statements" if size is None else counted(size.statements, "statement")
    return (
        f"The endpoint is slow: it {took} its {number}. So this describes {_FEW:,} of them at most, and classes have "
        "no profile."
    )


def _counted(few: Solutions, types: Collection[Iri]) -> _Findings:
    """Return what some statements hold, as the rows of the queries about all of them."""
    instances, seen = defaultdict[Term, set[Node]](set), set[Node]()
    edges, features, examples = Counter[Iri](), Counter[Iri](), dict[tuple[Iri, bool], tuple[Node, Term]]()
    for row in rows(few):
        head, relation, tail = row.node("s"), row.iri("p"), row.term("o")
        if head is None or relation is None or tail is None:
            continue
        is_edge = not isinstance(tail, Literal)
        (edges if is_edge else features)[relation] += 1
        examples.setdefault((relation, is_edge), (head, tail))
        seen |= {head} if isinstance(tail, Literal) else {head, tail}
        if is_edge and relation in types:
            instances[tail].add(head)
    members = [(each, _number(len(heads)), min(heads, key=node_key)) for each, heads in instances.items()]
    relations = [(each, _number(number), *examples[each, True]) for each, number in edges.items()]
    values = [(each, _number(number), *examples[each, False]) for each, number in features.items()]
    found = _Findings()
    found.rows["classes"] = list(rows(Solutions(("c", "n", "x"), tuple(members))))
    found.rows["relations"] = list(rows(Solutions(("p", "n", "x", "y"), tuple(relations))))
    found.rows["features"] = list(rows(Solutions(("p", "n", "x", "y"), tuple(values))))
    found.rows["entities"] = list(rows(Solutions(("n",), ((_number(len(seen)),),))))
    if len(few.rows) < _FEW and not few.truncated:
        found.whole.update(found.rows)
    return found


def _number(value: int) -> Literal:
    return Literal(str(value), Iri(f"{XSD}integer"))


class _Summary:
    """Makes rows a schema."""

    def __init__(self, found: _Findings, labels: Mapping[Node, str], limits: SurveyLimits) -> None:
        self._found = found
        self._labels = labels
        self._limits = limits

    def schema(self, prefixes: Prefixes) -> GraphSchema:
        found, limits = self._found, self._limits
        classes = sorted(self._classes(), key=lambda each: (-each.instances.value, node_key(each.iri)))
        relations = sorted(self._relations(), key=lambda each: (-each.triples.value, each.iri))
        features = sorted(self._features(), key=lambda each: (-each.statements.value, each.iri))
        fits = len(classes) <= limits.classes and max(len(relations), len(features)) <= limits.relations
        triples = sum(each.triples.value for each in relations)
        entities = sum(row.number("n") or 0 for row in found.rows.get("entities", ()))
        return GraphSchema(
            entities=Count(entities, exact="entities" in found.whole),
            triples=Count(triples, exact="relations" in found.whole and fits),
            classes=tuple(classes[: limits.classes]),
            relations=tuple(relations[: limits.relations]),
            features=tuple(features[: limits.relations]),
            prefixes=prefixes,
            complete=fits and {"classes", "relations", "features"} <= found.whole,
        )

    def _classes(self) -> Iterator[ClassSummary]:
        for row in self._found.rows.get("classes", ()):
            node = row.node("c")
            if node is not None:
                yield ClassSummary(node, self._labels.get(node), self._count(row, "classes"), row.node("x"))

    def _relations(self) -> Iterator[RelationSummary]:
        for row in self._found.rows.get("relations", ()):
            relation, head, tail = row.iri("p"), row.node("x"), row.node("y")
            if relation is not None:
                example = Triple(head, relation, tail) if head is not None and tail is not None else None
                yield RelationSummary(relation, self._labels.get(relation), self._count(row, "relations"), example)

    def _features(self) -> Iterator[FeatureSummary]:
        for row in self._found.rows.get("features", ()):
            relation, value = row.iri("p"), row.term("y")
            if relation is not None:
                example = value if isinstance(value, Literal) else None
                yield FeatureSummary(relation, self._labels.get(relation), self._count(row, "features"), example)

    def _count(self, row: Bindings, kind: _Kind) -> Count:
        return Count(row.number("n") or 0, exact=kind in self._found.whole)


FORMAT: Final = 4
FOLDER: Final = "endpoints"
EXPIRY_S: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class EndpointContent:
    """What one file holds: prefixes, and a schema if it was asked for; or a profile.

    Args:
        format: The version of the file's form.
        time: When it was written, in seconds since 1970.
        prefixes: The graph's prefixes, which stay as they are so that ids keep their meaning.
        schema: Its definition.
        profile: Its profile.
        engine: What answers.
    """

    format: int
    time: float
    prefixes: Prefixes | None = None
    schema: GraphSchema | None = None
    profile: GraphProfile | None = None
    engine: Engine | None = None


_CONTENT: Final = TypeAdapter(EndpointContent)


class SchemaFile:
    """The files for one endpoint and choice of graphs; one that is damaged or of another version counts as missing.

    Args:
        cache_folder: Where they are kept.
        key: What identifies this graph.
        expiry_s: After how many seconds a schema or profile is out of date.
        clock: Returns the time, in seconds since 1970.
    """

    def __init__(
        self,
        cache_folder: Path,
        key: tuple[str, ...],
        *,
        expiry_s: float = EXPIRY_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        name = hashlib.sha256("\n".join(key).encode()).hexdigest()[:24]
        self.path = cache_folder / FOLDER / f"{name}.json"
        self.profile_path = self.path.with_name(f"{name}-profile.json")
        self.engine_path = self.path.with_name(f"{name}-engine.json")
        self._expiry_s = expiry_s
        self._clock = clock

    def prefixes(self) -> Prefixes | None:
        """Return the prefixes, or None where none are kept."""
        return self._read(self.path).prefixes

    def schema(self) -> GraphSchema | None:
        """Return the schema, or None where none is kept that is young enough."""
        kept = self._read(self.path)
        return kept.schema if self._is_young(kept.time) else None

    def profile(self) -> GraphProfile | None:
        """Return the profile, or None where none is kept that is young enough."""
        kept = self._read(self.profile_path)
        return kept.profile if self._is_young(kept.time) else None

    def engine(self) -> Engine | None:
        """Return the engine, or None where none is kept that was found lately."""
        kept = self._read(self.engine_path)
        return kept.engine if self._is_young(kept.time) else None

    def keep_engine(self, engine: Engine) -> None:
        """Write the engine that was found."""
        self._write(self.engine_path, EndpointContent(FORMAT, self._clock(), engine=engine))

    def keep_prefixes(self, prefixes: Prefixes) -> None:
        """Write prefixes; a schema that went with other ones is dropped."""
        self._write(self.path, EndpointContent(FORMAT, self._clock(), prefixes))

    def keep_schema(self, schema: GraphSchema) -> None:
        """Write a schema with its prefixes."""
        self._write(self.path, EndpointContent(FORMAT, self._clock(), schema.prefixes, schema))

    def keep_profile(self, profile: GraphProfile) -> None:
        """Write a profile."""
        self._write(self.profile_path, EndpointContent(FORMAT, self._clock(), profile=profile))

    def _read(self, path: Path) -> EndpointContent:
        nothing = EndpointContent(FORMAT, 0.0)
        try:
            kept = _CONTENT.validate_json(read_regular(path))
        except (OSError, ValidationError, InvalidRequest):
            return nothing
        return kept if kept.format == FORMAT else nothing

    def _is_young(self, time_s: float) -> bool:
        return 0 <= self._clock() - time_s < self._expiry_s

    def _write(self, path: Path, content: EndpointContent) -> None:
        # A full or read-only disk costs the next start some seconds, and nothing else.
        with suppress(OSError):
            private_folder(path.parent, ours=True)
            write_private(path, _CONTENT.dump_json(content, exclude_defaults=True))
