"""Extract the surroundings of named entities into a store."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from kg_adapters.errors import InvalidSource
from kg_adapters.extraction.journal import Cut, Journal, Plan, Request, Unknown, ValueChoice
from kg_adapters.extraction.seeds import find_seeds
from kg_adapters.extraction.walking import Asker, Walk
from kg_adapters.importing.build import ImportReport, build_in
from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.index.neighborhood import Neighborhood
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import Counts, open_store, write_store_info
from kg_adapters.local.swap import replacing
from kg_adapters.models import Count
from kg_adapters.open_options import OnExtraction, ignore_extraction
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import KGAdapter


def write_store(plan: Plan, journal: Journal, answers: Sequence[str], target: Path, tell: OnExtraction) -> ImportReport:
    """Import the answers as the store `target`, which is replaced as a whole at the end or left as it was.

    Only for the holder of `exclusively(target)`; the store's folder names the graph.

    Raises:
        InvalidSource: There is no room for it, or an answer is gone.
    """
    # One statement that no file can hold must not waste all the others.
    options = ImportOptions(skip_errors=True, vocabulary=plan.vocabulary, name=target.name)
    try:
        with replacing(target) as folder:
            report = build_in(folder, [journal.write_statements(answers)], options, tell)
            info = open_store(folder).info
            # In a store of ours a blank node keeps its name, whatever it did where it came from.
            named = {"sources": (plan.request.source,), "prefixes": replace(plan.prefixes, blank_nodes=True)}
            write_store_info(folder, info.model_copy(update=named))
    except OSError as error:
        raise InvalidSource(
            f"{target} cannot be written: {error.strerror or error}. Make sure that its disk has room, then run the "
            "same command again to resume."
        ) from error
    return report


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
        skipped: How many statements of the graph could not be read, and are not in the store.
        problems: The first of the reasons.
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
    skipped: int
    problems: tuple[str, ...]
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
        InvalidRequest: The graph has none of the entities, or the journal belongs to another request.
        InvalidSource: The journal or the store cannot be written.
        BackendError: The graph failed; what it answered before is kept.
    """
    request, journal = order.request, Journal.beside(target)
    asker = Asker(graph, request.bounds)
    plan = journal.plan(request)
    if plan is None:
        plan = await _plan(graph, order)
        journal.begin(plan)
    walk = Walk(asker, journal, plan, tell)
    await walk.walk(order.values)
    written = await anyio.to_thread.run_sync(partial(write_store, plan, journal, walk.answers, target, tell))
    store = open_store(target)
    journal.clear()
    return ExtractionReport(
        folder=target,
        counts=store.info.counts,
        seeds=len(plan.seeds),
        skipped=written.skipped,
        problems=written.problems,
        unknown=plan.unknown,
        requests=asker.requests,
        value_requests=asker.value_requests,
        cut=tuple(sorted(walk.cut, key=lambda each: (-each.total, each.node))),
        triples_left_out=_left_out(store.index, walk.cut),
        values_left_out=walk.values_left_out,
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
