"""An extraction: from the entities that a file names to a store of what lies around them."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio.to_thread

from kg_adapters.extraction.asking import Asker
from kg_adapters.extraction.journal import Journal
from kg_adapters.extraction.records import Cut, Plan, Request, Unknown, ValueChoice
from kg_adapters.extraction.seeds import find_seeds
from kg_adapters.extraction.statements import StatementReader
from kg_adapters.extraction.walking import Walk
from kg_adapters.extraction.writing import Collected, write_store
from kg_adapters.local.sparql.store import ensure_sparql_store
from kg_adapters.local.store import Counts, open_store
from kg_adapters.models import Count
from kg_adapters.prefixes import Prefixes
from kg_adapters.progress import OnExtraction, ignore_extraction
from kg_adapters.protocol import KGAdapter


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
