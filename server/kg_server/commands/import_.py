"""`kg-sextant import`: from files to a store."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from kg_server.commands.invocation import invocation
from kg_server.commands.progress import shown_progress


def import_(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Files or folders of RDF, or a graph.json.")],
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="The store to build or replace.")],
    skip_errors: Annotated[bool, typer.Option("--skip-errors", help="Leave out what cannot be read.")] = False,
    graph_names: Annotated[
        list[str] | None, typer.Option("--graph-name", metavar="IRI", help="Only this named graph; may be repeated.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="What to call the graph.")] = None,
    languages: Annotated[str | None, typer.Option(help="Languages of labels, the preferred first: en,mul.")] = None,
) -> None:
    """Import files into a store that opens at once; an interrupted import leaves the old store as it was."""
    settings = invocation(context).load(languages=languages).settings
    from kg_adapters.labels import Vocabulary
    from kg_adapters.local.build import ImportOptions, build_store

    options = ImportOptions(
        skip_errors=skip_errors,
        graphs=tuple(graph_names or ()),
        vocabulary=Vocabulary(languages=settings.languages),
        name=name,
    )
    with shown_progress() as progress:
        report = build_store(files, to, options, progress)
    counts = report.counts
    triples, entities = counted(counts.triples, "triple"), counted(counts.entities, "entity", "entities")
    relations, literals = counted(counts.relations, "relation"), counted(counts.features, "literal")
    print(f"{report.folder}: {triples} between {entities} over {relations}, and {literals}.")
    if report.skipped:
        print(f"Left out: {report.skipped:,}. The first of them:", *report.problems, sep="\n  ")
    print(f"Serve it: {shlex.join(['kg-sextant', 'serve', str(to)])}")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun, as in `1 triple` and `2 triples`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
