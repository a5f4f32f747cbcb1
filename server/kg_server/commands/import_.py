"""kg-sextant import: build a store from files, and keep it up to date."""

import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import anyio
import typer

from kg_adapters.embedding import LexicalEmbedder, OpenAiEmbedder
from kg_adapters.errors import InvalidRequest, InvalidSource, KGError, Unsupported
from kg_adapters.files.sources import TABLES, FileState, Source, gather_sources, look
from kg_adapters.labels import chosen_prefixes
from kg_adapters.local.store import open_store
from kg_adapters.local.vectors.entities import embed_store
from kg_adapters.open_options import OnEmbedding, ReadingLimits, setting
from kg_adapters.tables.options import TableOptions
from kg_adapters.tables.values import CHOSEN_KINDS
from kg_boundary.shown import counted, in_quotes
from kg_server.commands import options
from kg_server.commands.graphs import store_of
from kg_server.commands.imported import summary_of
from kg_server.commands.invocation import invocation
from kg_server.commands.output import contents, say, show, shown_progress, skipped_lines, warn
from kg_server.embedders import embedder_of
from kg_server.settings import Settings, variable

if TYPE_CHECKING:
    from kg_adapters.importing.build import ImportReport
    from kg_adapters.importing.naming import NamingReport
    from kg_adapters.local.import_options import ImportOptions
    from kg_adapters.tables.report import TableReport


async def _embed(folder: Path, settings: Settings, progress: OnEmbedding) -> str:
    """Compute the vectors that a store lacks, and return a sentence on what that took, or an empty text.

    Raises:
        InvalidRequest: The settings name no model.
        Unsupported: The model cannot run on this machine.
        KGError: The store or the model failed; finished vectors are kept.
    """
    if settings.embedding.embedder == "lexical":
        name = "embedding.embedder"
        raise InvalidRequest(f"--embed needs a model. Set {name} ({variable(name)}) to minilm or openai.")
    available = await embedder_of(settings)
    embedder = available.embedder
    if isinstance(embedder, LexicalEmbedder):
        raise Unsupported(f"{available.fallback_reason} The import itself is complete.")
    try:
        await embed_store(open_store(folder), embedder, progress=progress)
        if not isinstance(embedder, OpenAiEmbedder):
            return ""
        return f"{embedder.usage.texts:,} texts, {embedder.usage.tokens:,} tokens."
    finally:
        if isinstance(embedder, OpenAiEmbedder):
            await embedder.aclose()


STANDARD_INPUT: Final = Path("-")
_CHUNK: Final = 1 << 20
_NOTES_S: Final = 5.0
"""How long the calls of notes may take at the end of an import."""
_INFLATED: Final = "imports.inflate_mb"


@dataclass(frozen=True)
class Given:
    """What is read.

    Attributes:
        files: The files.
        copy: The one of them that holds what came on standard input.
    """

    files: Sequence[Path]
    copy: Path | None = None

    def told(self, text: str) -> str:
        """Return a text that names standard input in place of its temporary copy."""
        return text if self.copy is None else text.replace(str(self.copy), self.copy.name)


@contextmanager
def standard_input(files: Sequence[Path], limits: ReadingLimits) -> Generator[Given]:
    """Yield the files, with a temporary copy of standard input in place of `-`.

    Raises:
        InvalidRequest: It is larger than the limit.
        InvalidSource: It is empty.
    """
    if STANDARD_INPUT not in files:
        yield Given(files)
        return
    with tempfile.TemporaryDirectory(prefix="kg-sextant-") as folder:
        copy = Path(folder) / "standard input"
        with copy.open("wb") as file:
            while chunk := sys.stdin.buffer.read(_CHUNK):
                if file.tell() + len(chunk) > limits.inflate_bytes:
                    raise InvalidRequest(
                        f"Standard input has over {limits.inflate_mb:,} MB; {setting(_INFLATED)} allows more."
                    )
                file.write(chunk)
            if not file.tell():
                raise InvalidSource("Standard input is empty. Pipe a file into it, as in: kg-sextant import - < FILE")
        yield Given([copy if path == STANDARD_INPUT else path for path in files], copy)


PAUSE_S: Final = 1.0

_Seen: TypeAlias = Mapping[Path, FileState]


@dataclass(frozen=True, slots=True)
class Change:
    """Changes of watched files since their import.

    Args:
        fresh: Files that were not there before, or have changed.
        replaced: Whether a file that was there before has changed or is gone.
    """

    fresh: tuple[Path, ...]
    replaced: bool


class Watch:
    """Watches files and folders from now on.

    Args:
        paths: Files and folders.
        follow_links: Whether links in a folder are followed that lead outside of it.
    """

    def __init__(self, paths: Sequence[Path], *, follow_links: bool = False) -> None:
        self._paths = paths
        self._follow_links = follow_links
        self._known = self._look()

    def changes(self, pause: Callable[[], None] = lambda: time.sleep(PAUSE_S)) -> Iterator[Change]:
        """Yield changes without end, each once nothing has changed between two scans.

        Args:
            pause: Waits between two scans.
        """
        before = self._known
        while True:
            pause()
            now = self._look()
            if now == before and now != self._known and now:
                known, self._known = self._known, now
                fresh = tuple(path for path, state in now.items() if known.get(path) != state)
                yield Change(fresh, any(now.get(path) != state for path, state in known.items()))
            before = now

    def _look(self) -> _Seen:
        try:
            sources = gather_sources(self._paths, follow_links=self._follow_links).files
            return {source.path: look(source.path) for source in sources}
        except InvalidSource:
            # A file that is being replaced is missing for a moment.
            return {}


def import_(  # noqa: PLR0913, PLR0917 - one argument for each option
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="Files or folders: RDF, tables, JSON, databases; - is standard input."),
    ],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FOLDER", help="The folder of the store to build or replace.")
    ] = None,
    skip_errors: Annotated[
        bool, typer.Option("--skip-errors", help="Skip statements that cannot be read, and list the first of them.")
    ] = False,
    no_sparql: Annotated[
        bool,
        typer.Option(
            "--no-sparql",
            help="Import faster, without the SPARQL index; the first query then has to wait until it is built.",
        ),
    ] = False,
    graph_names: Annotated[
        list[str] | None,
        typer.Option("--graph-name", metavar="IRI", help="Import only this named graph. May be repeated."),
    ] = None,
    merge_graphs: Annotated[
        bool,
        typer.Option(
            "--merge-graphs", help="Do not keep which named graph a statement is in: SPARQL is a third of the size."
        ),
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The name of the graph; default: that of the files.")
    ] = None,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Follow symbolic links that lead out of the given folders.")
    ] = False,
    languages: options.Languages = None,
    label: options.Label = None,
    alias: options.Alias = None,
    description: options.Description = None,
    type_: options.Type = None,
    label_key: options.LabelKey = None,
    relations: Annotated[
        str | None,
        typer.Option(
            metavar="ID,ID",
            help="Import only these relations, such as P31,P279, and names only in the given --languages.",
        ),
    ] = None,
    id_column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[TABLE=]COLUMN",
            help="The column with the ids of a table's rows; none numbers them. May be repeated.",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=KIND",
            help=f"What a column of a table holds: {', '.join(CHOSEN_KINDS)}. May be repeated, as the next ones.",
        ),
    ] = None,
    numbers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[COLUMN=]NUMBER", help="How numbers are written, shown by one with groups and decimals: 1.200,00."
        ),
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=SIGN", help="What separates several values in a cell, as in borders=,"),
    ] = None,
    link: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE.COLUMN=TABLE.COLUMN", help="The column of ids that a column refers to."),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="A column whose values become entities, so that rows with one are neighbours."
        ),
    ] = None,
    no_link: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE.COLUMN", help="A column that refers to no table; all means every column."),
    ] = None,
    prefix: options.Prefix = None,
    update: Annotated[
        bool, typer.Option("--update", help="Add the files to the existing store instead of replacing it.")
    ] = False,
    keep_totals: Annotated[
        bool, typer.Option("--keep-totals", help="Take rows of tables that sum the rows above for rows like these.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Keep running, and import again whenever a file changes or is added."),
    ] = False,
    embed: Annotated[
        bool,
        typer.Option("--embed", help="Also compute embedding vectors. If FILE is a store or a sample, do only that."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show what became of every column, also of many tables.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Import files into a store, which opens at once. An interrupted import leaves an existing store unchanged."""
    several = {"label": label, "alias": alias, "description": description, "type": type_}
    several |= {"label_key": label_key, "prefix": prefix}
    given = {name: texts or None for name, texts in several.items()}
    settings = invocation(context).load(languages=languages, **given).settings
    only_vectors = embed and to is None and not (update or watch) and len(files) == 1
    store = store_of(str(files[0]), settings) if only_vectors else None
    if store is not None:
        usage = _compute_vectors(store, settings)
        done = f"{files[0]}: the vectors are complete."
        show({"folder": store, "usage": usage}, (*usage, done), as_json=as_json)
        return
    if to is None:
        raise InvalidRequest("Name the folder of the store, as in --to FOLDER.")
    reading = replace(
        _usual_options(settings),
        skip_errors=skip_errors,
        sparql=not no_sparql,
        graphs=tuple(graph_names or ()),
        merge_graphs=merge_graphs,
        relations=tuple(part.strip() for part in (relations or "").split(",") if part.strip()),
        tables=TableOptions(
            id_columns=tuple(id_column or ()),
            kinds=tuple(column or ()),
            splits=tuple(split or ()),
            links=tuple(link or ()),
            no_links=tuple(no_link or ()),
            numbers=tuple(numbers or ()),
            nodes=tuple(node or ()),
            keep_totals=keep_totals,
        ),
        name=name,
        follow_links=follow_links,
    )
    if watch and STANDARD_INPUT in files:
        raise InvalidRequest("Standard input cannot be watched. Name files or folders.")
    watched = Watch(files, follow_links=follow_links) if watch else None
    work = _Work(to, reading, settings, embed=embed, as_json=as_json, verbose=verbose)
    work.do(files, update=update, ends=True)
    if watched is not None:
        work.go_on(watched, files, update=update)


@dataclass(frozen=True, slots=True)
class _Work:
    """Imports into one store.

    Args:
        to: The store.
        reading: How files are read.
        settings: Those of the command.
        embed: Whether vectors are computed too.
        as_json: Whether reports are printed as JSON.
        verbose: Whether they show every column of many tables.
    """

    to: Path
    reading: "ImportOptions"
    settings: Settings
    embed: bool
    as_json: bool
    verbose: bool

    def do(self, files: Sequence[Path], *, update: bool, ends: bool = False) -> None:
        """Import files and print the report, with what the store holds and how to serve it where this ends the work."""
        report = _build(files, self.to, self.reading, update=update)
        # Before the vectors, which may take long or fail: the store is whole without them.
        show(report, _lines(report, verbose=self.verbose), as_json=self.as_json)
        usage = _compute_vectors(self.to, self.settings) if self.embed else ()
        if not self.as_json:
            for line in (*usage, *(end_lines(self.to, self.settings, report) if ends else ())):
                say(line)
        for line in anyio.run(_note_problems, str(self.to.absolute()), self.settings):
            warn(line)

    def go_on(self, watched: "Watch", files: Sequence[Path], *, update: bool) -> None:
        """Import what changes until somebody interrupts it.

        Args:
            watched: Reports changes.
            files: All files.
            update: Whether the store holds more than these, so that it cannot be rebuilt from them.
        """
        warn(f"Watching {', '.join(map(str, files))} for changes; Ctrl+C ends it.")
        with suppress(KeyboardInterrupt):
            for change in watched.changes():
                try:
                    # A table is linked with the others only if all are read together.
                    whole = change.replaced or any(Source(path, path.name).ending in TABLES for path in change.fresh)
                    if whole and not update:
                        self.do(files, update=False)
                    elif change.fresh:
                        self.do(change.fresh, update=True)
                except InvalidSource as error:
                    warn(f"{error}\nThe store is unchanged. Watching goes on.")


async def _note_problems(store: str, settings: Settings) -> Sequence[str]:
    """Return what is wrong with the notes in a store that was just built, which fails no import."""
    from kg_server.commands.notes import checked_notes

    named = settings.model_copy(update={"graph": store, "notes": None})
    try:
        found = await checked_notes(named, _NOTES_S)
    except KGError as error:
        return (f"The notes in the store cannot be checked: {error}",)
    return () if found is None else found.told()


def _usual_options(settings: Settings) -> "ImportOptions":
    from kg_adapters.labels import ChosenRelations, Vocabulary
    from kg_adapters.local.import_options import ImportOptions

    return ImportOptions(
        vocabulary=Vocabulary(languages=settings.languages),
        chosen=ChosenRelations(**dict(settings.relations)),
        prefixes=chosen_prefixes(settings.prefixes),
        limits=ReadingLimits(**dict(settings.imports)),
    )


def _build(files: Sequence[Path], to: Path, reading: "ImportOptions", *, update: bool) -> "ImportReport":
    from kg_adapters.importing.build import build_store

    with standard_input(files, reading.limits) as given, shown_progress() as progress:
        try:
            report = build_store(given.files, to, reading, progress, update=update)
        except (InvalidRequest, InvalidSource) as error:
            raise type(error)(given.told(str(error))) from error
    problems, notes = (tuple(map(given.told, texts)) for texts in (report.problems, report.notes))
    tables = tuple(
        replace(table, path=given.told(table.path), repeated=given.told(table.repeated)) for table in report.tables
    )
    return replace(report, problems=problems, notes=notes, tables=tables)


def end_lines(to: Path, settings: Settings, report: "ImportReport") -> Iterator[str]:
    """Yield what a store holds after an import, unless another one has changed it since, and how to serve it."""
    yield from anyio.run(summary_of, to, settings, report)
    graph = f"./{to}" if str(to).startswith("-") else str(to)
    yield f"Serve it: {shlex.join(['kg-sextant', 'serve', graph])}"


def _lines(report: "ImportReport", *, verbose: bool) -> Iterator[str]:
    yield f"{report.folder}: {contents(report.counts)}."
    yield from report.notes
    yield from _table_lines(report.tables, verbose=verbose)
    yield from _naming_lines(report.naming)
    yield from skipped_lines(report.skipped, report.problems)


_MOST_LINES: Final = 40


def _table_lines(tables: Sequence["TableReport"], *, verbose: bool) -> Iterator[str]:
    """Yield what became of tables; of many, only what should be checked."""
    lines = [line for table in tables for line in table.lines()]
    short = [line for table in tables for line in table.lines(whole=False)]
    if verbose or len(lines) <= _MOST_LINES or len(short) == len(lines):
        yield from lines
        return
    yield from short
    yield f"{len(lines) - len(short)} more lines, of links and other columns: --verbose."


def _naming_lines(naming: "NamingReport") -> Iterator[str]:
    """Yield how many entities have no name, and which relations could name them."""
    if not naming.mostly_nameless:
        return
    nameless = counted(naming.entities - naming.named, "entity has", "entities have")
    yield f"{nameless} no name, of {naming.entities:,} with facts of their own; the others only end facts."
    for likely in naming.likely:
        flag = shlex.join(["--label", likely.relation])
        example = in_quotes(likely.example)
        yield f"  {counted(likely.entities, 'has', 'have')} a text such as {example}; to take it as the name: {flag}"


def _compute_vectors(store: Path, settings: Settings) -> Sequence[str]:
    """Compute the vectors that a store lacks, and return at most one line on what a service counted for that."""
    again = shlex.join(["kg-sextant", "import", str(store), "--embed"])
    with shown_progress() as progress:
        try:
            usage = anyio.run(_embed, store, settings, progress)
        except KeyboardInterrupt:
            warn(f"Interrupted; what was computed is kept. Resume with: {again}")
            raise
    return (usage,) if usage else ()
