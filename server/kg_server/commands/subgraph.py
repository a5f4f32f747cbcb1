"""`kg-sextant subgraph`: extract the neighbourhood of entities from any graph into a local store."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kg_adapters.errors import BackendError
from kg_adapters.open_options import Progress
from kg_boundary.shown import counted, in_quotes
from kg_server.commands import options
from kg_server.commands.invocation import invocation
from kg_server.commands.output import contents, show, shown_progress, skipped_lines, warn
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_adapters.extraction.extract import ExtractionReport, Order
    from kg_server.commands.output import OnEither

MOST_SHOWN: Final = 10
HUBS_SHOWN: Final = 3
PATIENCE_S: Final = 90.0
"""The shortest timeout of a request: a rate limit per minute may delay it."""
WAITING: Final = Progress("waiting", 0, 0, 0)


def subgraph(  # noqa: PLR0913, PLR0917 - one argument for each option
    context: typer.Context,
    entities: Annotated[
        Path,
        typer.Option(
            "--entities",
            metavar="FILE",
            help="The file of entity ids: one per line, or JSON that holds them.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="STORE", help="The store to build or replace.")],
    hops: Annotated[
        int, typer.Option(min=1, max=10, metavar="N", help="How many edges to follow from the entities.")
    ] = 3,
    graph: options.Graph = None,
    per_relation: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many triples to take of an entity per relation and direction.")
    ] = 200,
    max_degree: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="How many triples to take of an entity. Entities with more (hubs) are not expanded, unless FILE lists "
            "them.",
        ),
    ] = 1_000,
    features: Annotated[
        Literal["all", "inner", "none"],
        typer.Option(help="Whose literals to take: those of all entities, of all but the last hop (inner), or none."),
    ] = "all",
    fields: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="NAME", help="A field of the JSON lines that holds ids. May be repeated."),
    ] = None,
    as_json: options.Json = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard an unfinished extraction and start over.")
    ] = False,
) -> None:
    """Extract the neighbourhood of entities from any graph into a store.

    To resume an interrupted extraction, repeat the command.
    """
    settings = invocation(context).load(graph=graph).settings
    from kg_adapters.extraction.extract import Order
    from kg_adapters.extraction.journal import Bounds, Journal, Request
    from kg_adapters.extraction.seeds import FIELDS, read_entities
    from kg_adapters.importing.build import check_target
    from kg_adapters.local.swap import exclusively

    content, source = read_entities(entities)
    target = Path(os.path.realpath(out))
    check_target(target)
    bounds = Bounds(hops=hops, per_relation=per_relation, max_degree=max_degree)
    request = Request(graph=settings.graph, bounds=bounds, source=source, fields=tuple(fields or FIELDS))
    order = Order(request, content, features)
    with shown_progress() as progress, exclusively(target, on_wait=lambda: progress(WAITING)):
        check_target(target)
        if restart:
            Journal.beside(target).clear()
        report = _run(settings, order, target, progress)
    serve = shlex.join(["kg-sextant", "serve", str(out)])
    show(report, (*_lines(report), f"Serve it: {serve}"), as_json=as_json)


def _run(settings: Settings, order: "Order", target: Path, progress: "OnEither") -> "ExtractionReport":
    import anyio

    try:
        return anyio.run(_extract, settings, order, target, progress)
    except KeyboardInterrupt:
        warn("Interrupted; what was fetched is kept. Run the same command again to resume.")
        raise


async def _extract(settings: Settings, order: "Order", target: Path, progress: "OnEither") -> "ExtractionReport":
    from kg_adapters.extraction.extract import extract
    from kg_server.commands.graphs import opened

    patient = settings.model_copy(update={"timeout_s": max(settings.timeout_s, PATIENCE_S)})
    async with opened(patient) as graph:
        try:
            return await extract(graph, order, target, progress)
        except BackendError as error:
            again = "What was fetched is kept: run the same command again to resume."
            raise type(error)(f"{error} {again}") from error


def _lines(report: "ExtractionReport") -> Iterator[str]:
    yield f"{report.folder}: {contents(report.counts)}."
    requests, more = counted(report.requests, "request"), f"{report.value_requests:,} for literals"
    yield f"Around {counted(report.seeds, 'entity', 'entities')}, with {requests}, and {more}."
    yield from _cut_lines(report)
    if report.values_left_out.value:
        yield f"Left out: {report.values_left_out.of('literal')}."
    yield from skipped_lines(report.skipped, report.problems)
    if report.unknown:
        yield f"Lines that name no entity of this graph: {len(report.unknown):,}. The first of them:"
        for each in report.unknown[:MOST_SHOWN]:
            yield f"  line {each.line}, {in_quotes(each.text)}: {each.reason}"


def _cut_lines(report: "ExtractionReport") -> Iterator[str]:
    from kg_adapters.terms import node_from_key

    hubs = [each for each in report.cut if each.hub]
    if hubs:
        largest = ", ".join(
            f"{report.prefixes.shorten(node_from_key(each.node))} ({counted(each.total, 'triple')})"
            for each in hubs[:HUBS_SHOWN]
        )
        yield f"Not expanded: {counted(len(hubs), 'hub')}, the largest {largest}."
    if len(report.cut) > len(hubs):
        yield f"Taken in part: the triples of {counted(len(report.cut) - len(hubs), 'entity', 'entities')}."
    if report.cut:
        yield f"Left out around these: {report.triples_left_out.of('triple')}."
