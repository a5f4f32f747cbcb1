"""Extract the surroundings of named entities into a store."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from kg_adapters.errors import InvalidSource
from kg_adapters.extraction.journal import (
    Cut,
    Journal,
    Look,
    Plan,
    Request,
    Text,
    Texts,
    Unknown,
    Value,
    ValueChoice,
    Values,
)
from kg_adapters.extraction.seeds import find_seeds
from kg_adapters.extraction.walking import Asker, Stated, StatementReader, Walk, Walked
from kg_adapters.index.build.arrays import IndexBuilder
from kg_adapters.index.build.build import counts_of, own_version
from kg_adapters.index.build.profiling import profile_of_index, write_schema
from kg_adapters.index.storage import Storage
from kg_adapters.labels import Vocabulary
from kg_adapters.local.index import GraphIndex
from kg_adapters.local.names.search import build_text_index
from kg_adapters.local.neighborhood import Neighborhood
from kg_adapters.local.profile_file import write_profile
from kg_adapters.local.sparql.store import ensure_sparql_store
from kg_adapters.local.store import FORMAT, INDEX_FOLDER, Counts, StoreInfo, open_store, stored_files, write_store_info
from kg_adapters.local.swap import replacing
from kg_adapters.models import Count
from kg_adapters.open_options import OnExtraction, Progress, Stage, ignore_extraction
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import XSD_STRING, Iri, Literal


@dataclass(frozen=True, slots=True)
class Collected:
    """All that an extraction goes by when its store is written.

    Args:
        plan: What was asked for.
        walked: The triples.
        stated: The statements about the terms.
        journal: Where the answers are.
    """

    plan: Plan
    walked: Walked
    stated: Stated
    journal: Journal


@dataclass(frozen=True, slots=True)
class Written:
    """What a store holds, and what was left out of it.

    Args:
        counts: How much it holds.
        triples_left_out: How many triples of the inner entities it lacks; one between two of them counts for both.
        values_left_out: How many literals it lacks of the terms whose literals were asked for.
    """

    counts: Counts
    triples_left_out: Count
    values_left_out: Count


def write_store(collected: Collected, target: Path, tell: OnExtraction) -> Written:
    """Write the store `target`, which is replaced as a whole at the end or left as it was; its folder names the graph.

    Only for the holder of `exclusively(target)`.

    Raises:
        InvalidSource: There is no room for it, or an answer is gone.
    """
    try:
        with replacing(target) as folder:
            return _Writing(collected, folder, tell).write(target.name)
    except OSError as error:
        raise InvalidSource(
            f"{target} cannot be written: {error.strerror or error}. Make sure that its disk has room, then run the "
            "same command again to resume."
        ) from error


class _Writing:
    """The building of one store."""

    def __init__(self, collected: Collected, folder: Path, tell: OnExtraction) -> None:
        self._collected = collected
        self._vocabulary = collected.plan.vocabulary
        self._folder = folder
        (folder / INDEX_FOLDER).mkdir()
        self._builder = IndexBuilder(self._vocabulary, Storage(folder / INDEX_FOLDER))
        self._tell = tell
        self._names: defaultdict[str, defaultdict[Iri, list[Literal]]] = defaultdict(lambda: defaultdict(list))
        self._values_left_out = Count(0)

    def write(self, name: str) -> Written:
        """Write everything into the folder, which is empty."""
        self._step("indexing")
        self._add_triples()
        self._add_values()
        self._add_texts()
        index, folder = self._builder.finish(), self._folder
        self._step("searching")
        build_text_index(folder, index, self._vocabulary)
        write_schema(folder, index, self._vocabulary)
        write_profile(folder, profile_of_index(index, self._vocabulary))
        self._step("saving")
        plan, counts = self._collected.plan, counts_of(index)
        info = StoreInfo(
            format=FORMAT,
            name=name,
            created_by=own_version(),
            sources=(plan.request.source,),
            skipped=0,
            counts=counts,
            # In a store of ours a blank node keeps its name, whatever it did where it came from.
            prefixes=replace(plan.prefixes, blank_nodes=True),
            vocabulary=self._vocabulary,
            files=stored_files(folder),
        )
        write_store_info(folder, info)
        return Written(counts, _left_out(index, self._collected.walked.cut), self._values_left_out)

    def _step(self, stage: Stage) -> None:
        self._tell(Progress(stage, 0, 0, self._collected.walked.triples))

    def _add_triples(self) -> None:
        for look in self._collected.journal.answers(self._collected.walked.looks, Look):
            for head, relation, tail in look.triples:
                self._builder.add_edge(head, relation, tail)

    def _add_values(self) -> None:
        naming = {iri.value: iri for iri in (*self._vocabulary.labels, *self._vocabulary.descriptions)}
        for answer in self._collected.journal.answers(self._collected.stated.values, Values):
            more, exact = self._values_left_out.value + answer.left_out, self._values_left_out.exact and answer.exact
            self._values_left_out = Count(more, exact)
            for value in answer.values:
                self._builder.add_feature(value.term, value.relation, value.value, value.datatype, value.language)
                if value.relation in naming:
                    self._names[value.term][naming[value.relation]].append(_literal(value))

    def _add_texts(self) -> None:
        """Add the labels and descriptions that do not follow from the literals."""
        for answer in self._collected.journal.answers(self._collected.stated.texts, Texts):
            for text in answer.texts:
                for relation, value in _missing(text, self._names.get(text.term, {}), self._vocabulary):
                    self._builder.add_feature(text.term, relation.value, value, XSD_STRING.value, None)


def _missing(text: Text, known: Mapping[Iri, Sequence[Literal]], vocabulary: Vocabulary) -> Iterable[tuple[Iri, str]]:
    chosen = (
        (text.label, vocabulary.label(known), vocabulary.labels),
        (text.description, vocabulary.description(known), vocabulary.descriptions),
    )
    for wanted, found, relations in chosen:
        if wanted and relations and (found is None or found.value != wanted):
            yield relations[0], wanted


def _literal(value: Value) -> Literal:
    return Literal(value.value, Iri(value.datatype), value.language)


def _left_out(index: GraphIndex, cut: Sequence[Cut]) -> Count:
    missing = 0
    for each in cut:
        number = index.nodes.find(each.node)
        held = 0 if number is None else Neighborhood(index, number, "both").total
        missing += max(each.total - held, 0)
    return Count(missing, all(each.exact for each in cut))


@dataclass(frozen=True, slots=True)
class Order:
    """One extraction as it was ordered.

    Args:
        request: What is to be extracted.
        content: What the file that names the entities holds.
        values: Whose literals are wanted; this may be another choice when an extraction goes on.
    """

    request: Request
    content: bytes
    values: ValueChoice = "all"


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """What an extraction did.

    Args:
        folder: The store.
        counts: How much it holds.
        seeds: How many entities were named that the graph has.
        unknown: The lines that name none.
        requests: How many calls about a batch this run made; an earlier one may have made others.
        value_requests: How many calls for the literals of a batch it made.
        cut: The entities of whose triples some or all were left out, the best connected first.
        triples_left_out: How many triples around those are not in the store; one between two of them counts for both.
        values_left_out: How many literals are not in the store, of the terms whose literals were wanted.
        prefixes: The short forms of the store's ids.
    """

    folder: Path
    counts: Counts
    seeds: int
    unknown: tuple[Unknown, ...]
    requests: int
    value_requests: int
    cut: tuple[Cut, ...]
    triples_left_out: Count
    values_left_out: Count
    prefixes: Prefixes


async def extract(
    graph: KGAdapter, order: Order, target: Path, tell: OnExtraction = ignore_extraction
) -> ExtractionReport:
    """Extract what lies around entities into the store `target`, and go on where an earlier run was stopped.

    Every answer is kept in a journal beside the store until that is written, so that it may be stopped at any moment.
    Only for the holder of `kg_adapters.local.swap.exclusively(target)`.

    Raises:
        InvalidRequest: The graph has none of the entities, or the journal is about something else.
        InvalidSource: The journal or the store cannot be written.
        BackendError: The graph failed; what it answered before is kept.
    """
    request, journal = order.request, Journal.beside(target)
    asker = Asker(graph, request.bounds)
    plan = journal.plan(request)
    if plan is None:
        plan = await _plan(graph, order)
        journal.begin(plan)
    walk = Walk(asker, journal, request.bounds, tell)
    walked = await walk.walk(plan.seeds, plan.vocabulary.types)
    stated = await StatementReader(asker, journal, request.bounds.batch, tell).read(walked, order.values)
    collected = Collected(plan, walked, stated, journal)
    written = await anyio.to_thread.run_sync(partial(write_store, collected, target, tell))
    await ensure_sparql_store(target, open_store(target).index)
    journal.clear()
    return ExtractionReport(
        folder=target,
        counts=written.counts,
        seeds=len(plan.seeds),
        unknown=plan.unknown,
        requests=asker.requests,
        value_requests=asker.value_requests,
        cut=tuple(sorted(walked.cut, key=lambda each: (-each.total, each.node))),
        triples_left_out=written.triples_left_out,
        values_left_out=written.values_left_out,
        prefixes=plan.prefixes,
    )


async def _plan(graph: KGAdapter, order: Order) -> Plan:
    request = order.request
    seeds = await find_seeds(graph, order.content, request.fields, batch=request.bounds.batch)
    return Plan(
        request=request,
        seeds=tuple(map(str, seeds.entities)),
        unknown=seeds.unknown,
        prefixes=graph.prefixes,
        vocabulary=graph.vocabulary,
    )
