"""`kg-sextant import`: from files to a store."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kg_adapters.chosen_relations import chosen_prefixes
from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_boundary.shown import counted, in_quotes, visible_line
from kg_server.commands.invocation import invocation
from kg_server.commands.output import say
from kg_server.commands.progress import shown_progress
from kg_server.commands.standard_input import STANDARD_INPUT, standard_input
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_adapters.local.building.build import ImportReport
    from kg_adapters.local.building.naming import Naming
    from kg_adapters.local.import_options import ImportOptions
    from kg_server.commands.watching import Watch


def import_(  # noqa: PLR0913, PLR0917 - one argument for each option
    context: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Files or folders: RDF, CSV, JSON; - is standard input.")
    ],
    to: Annotated[Path | None, typer.Option("--to", metavar="FOLDER", help="The store to build or replace.")] = None,
    skip_errors: Annotated[
        bool, typer.Option("--skip-errors", help="Leave out statements that cannot be read.")
    ] = False,
    no_sparql: Annotated[
        bool, typer.Option("--no-sparql", help="Leave what Sparql needs to the server, or to the first query.")
    ] = False,
    graph_names: Annotated[
        list[str] | None, typer.Option("--graph-name", metavar="IRI", help="Only this named graph; may be repeated.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="What to call the graph.")] = None,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Follow links in folders that lead outside of them.")
    ] = False,
    languages: Annotated[str | None, typer.Option(help="Languages of labels, the preferred first: en,mul.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="RELATION", help="A relation to names: an IRI or schema:name; repeatable."),
    ] = None,
    alias: Annotated[list[str] | None, typer.Option(metavar="RELATION", help="A relation to other names.")] = None,
    description: Annotated[
        list[str] | None, typer.Option(metavar="RELATION", help="A relation to descriptions.")
    ] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", metavar="RELATION", help="A relation to classes.")
    ] = None,
    label_key: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE=FEATURE", help="What names a type of nodes of a graph.json; repeatable."),
    ] = None,
    relations: Annotated[
        str | None, typer.Option(help="Keep only these relations, and names in --languages: P31,P279.")
    ] = None,
    id_column: Annotated[str | None, typer.Option(metavar="NAME", help="The column of a table that holds ids.")] = None,
    prefix: Annotated[
        list[str] | None, typer.Option(metavar="PREFIX=IRI", help="A short form: ex=https://example.org/; repeatable.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Add the files to what the store holds, without reading that again.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Then go on: import what is added to FILE… or changes there.")
    ] = False,
    embed: Annotated[
        bool, typer.Option("--embed", help="Compute vectors too; if FILE is a store or a sample, only those.")
    ] = False,
) -> None:
    """Import files into a store that opens at once; an interrupted import leaves the old store as it was."""
    settings = (
        invocation(context)
        .load(
            languages=languages,
            label_relations=_several(label),
            alias_relations=_several(alias),
            description_relations=_several(description),
            type_relations=_several(type_),
            label_keys=_several(label_key),
            prefixes=_several(prefix),
        )
        .settings
    )
    store = _store_of(files, settings) if embed and to is None and not (update or watch) else None
    if store is not None:
        _compute_vectors(store, settings)
        say(f"{files[0]}: the vectors are complete.")
        return
    if to is None:
        raise InvalidRequest("Say where the store is to be, as in --to FOLDER.")
    options = replace(
        _usual_options(settings),
        skip_errors=skip_errors,
        sparql=not no_sparql,
        graphs=tuple(graph_names or ()),
        relations=tuple(part.strip() for part in (relations or "").split(",") if part.strip()),
        id_column=id_column,
        name=name,
        follow_links=follow_links,
    )
    watched = _watched(files, follow_links=follow_links) if watch else None
    work = _Work(to, options, settings, embed=embed)
    work.do(files, update=update)
    _print_end(to, settings)
    if watched is not None:
        work.go_on(watched, files, update=update)


@dataclass(frozen=True, slots=True)
class _Work:
    """Imports into one store.

    Args:
        to: The store.
        options: How files are read.
        settings: Those of the command.
        embed: Whether vectors are computed too.
    """

    to: Path
    options: "ImportOptions"
    settings: Settings
    embed: bool

    def do(self, files: Sequence[Path], *, update: bool) -> None:
        """Import files, and say how much the store holds then."""
        _build(files, self.to, self.options, update=update)
        if self.embed:
            _compute_vectors(self.to, self.settings)

    def go_on(self, watched: "Watch", files: Sequence[Path], *, update: bool) -> None:
        """Import what changes until somebody interrupts it.

        Args:
            watched: Says what changes.
            files: All files.
            update: Whether the store holds more than these, so that they cannot all be imported anew.
        """
        say(f"Watching {', '.join(map(str, files))} for changes; Ctrl+C ends it.")
        with suppress(KeyboardInterrupt):
            for change in watched.changes():
                try:
                    if change.replaced and not update:
                        self.do(files, update=False)
                    elif change.fresh:
                        self.do(change.fresh, update=True)
                except InvalidSource as error:
                    say(f"{error}\nThe store is as it was before. Watching goes on.")


def _watched(files: Sequence[Path], *, follow_links: bool) -> "Watch":
    from kg_server.commands.watching import Watch

    if STANDARD_INPUT in files:
        raise InvalidRequest("Standard input cannot be watched. Name files or folders.")
    return Watch(files, follow_links=follow_links)


def _usual_options(settings: Settings) -> "ImportOptions":
    from kg_adapters.labels import Vocabulary
    from kg_adapters.local.import_options import ImportOptions
    from kg_server.commands.graphs import chosen_relations_of, reading_limits_of

    return ImportOptions(
        vocabulary=Vocabulary(languages=settings.languages),
        chosen=chosen_relations_of(settings),
        prefixes=chosen_prefixes(settings.prefixes),
        limits=reading_limits_of(settings),
    )


def _build(files: Sequence[Path], to: Path, options: "ImportOptions", *, update: bool) -> None:
    from kg_adapters.local.building.build import build_store

    with standard_input(files, options.limits) as given, shown_progress() as progress:
        try:
            report = build_store(given.files, to, options, progress, update=update)
        except (InvalidRequest, InvalidSource) as error:
            raise type(error)(given.told(str(error))) from error
    problems, notes = (tuple(map(given.told, texts)) for texts in (report.problems, report.notes))
    _print_report(replace(report, problems=problems, notes=notes))


def _print_end(to: Path, settings: Settings) -> None:
    """Say what the store holds, and what to do with it."""
    from kg_server.commands.summary import summary_of

    for line in summary_of(to, settings):
        say(line)
    graph = f"./{to}" if str(to).startswith("-") else str(to)
    say(f"Serve it: {shlex.join(['kg-sextant', 'serve', graph])}")


def _several(texts: list[str] | None) -> tuple[str, ...] | None:
    return tuple(texts) if texts else None


def _print_report(report: "ImportReport") -> None:
    counts = report.counts
    triples, entities = counted(counts.triples, "triple"), counted(counts.entities, "entity", "entities")
    relations, literals = counted(counts.relations, "relation"), counted(counts.features, "literal")
    say(f"{report.folder}: {triples} between {entities} over {relations}, and {literals}.")
    for note in report.notes:
        say(note)
    _print_naming(report.naming)
    if report.skipped:
        say("\n  ".join((f"Left out: {report.skipped:,}. The first of them:", *map(visible_line, report.problems))))


def _print_naming(naming: "Naming") -> None:
    """Say what has no name, and what could give one."""
    if not naming.mostly_nameless:
        return
    say(f"{counted(naming.entities - naming.named, 'entity has', 'entities have')} no name, of {naming.entities:,}.")
    for likely in naming.likely:
        flag = shlex.join(["--label", likely.relation])
        example = in_quotes(likely.example)
        say(f"  {counted(likely.entities, 'has', 'have')} a text such as {example}; to take it as the name: {flag}")


def _store_of(files: Sequence[Path], settings: Settings) -> Path | None:
    """Return the store that is meant where no store is to be built."""
    from kg_adapters.local.cache import open_sample
    from kg_adapters.local.store import is_store
    from kg_adapters.registry import SAMPLES

    if len(files) != 1:
        return None
    if str(files[0]) in SAMPLES:
        return open_sample(settings.cache_folder, str(files[0])).folder
    return files[0] if is_store(files[0]) else None


def _compute_vectors(store: Path, settings: Settings) -> None:
    from kg_server.commands.embedding import embed

    again = shlex.join(["kg-sextant", "import", str(store), "--embed"])
    with shown_progress() as progress:
        try:
            cost = embed(store, settings, progress)
        except KeyboardInterrupt:
            say(f"Interrupted; what was computed is kept. Resume with: {again}")
            raise
    if cost:
        say(cost)
