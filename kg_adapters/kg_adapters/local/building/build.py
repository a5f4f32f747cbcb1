"""An import: from files to a store."""

import errno
import os
import tempfile
from collections.abc import Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import numpy as np

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.labels import Vocabulary
from kg_adapters.local.array_files import ArrayFiles
from kg_adapters.local.building.arrays import IndexBuilder
from kg_adapters.local.building.growing import Storage
from kg_adapters.local.building.namespaces import choose_prefixes
from kg_adapters.local.building.naming import Naming, naming_of
from kg_adapters.local.building.profiling import profile_of_index
from kg_adapters.local.building.schema_counting import write_schema
from kg_adapters.local.building.updating import Base
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.index import GraphIndex, open_index
from kg_adapters.local.names.search import build_text_index
from kg_adapters.local.names.table import bare_relations, edges_by_relation
from kg_adapters.local.profile_file import write_profile
from kg_adapters.local.reading.read_filter import ReadFilter
from kg_adapters.local.reading.reader import SourceReader
from kg_adapters.local.reading.recognition import parts_of
from kg_adapters.local.reading.rows import Row
from kg_adapters.local.reading.sources import Source, Sources, gather_sources, look
from kg_adapters.local.seal import file_sha256
from kg_adapters.local.sparql.part import AddRows, sparql_part
from kg_adapters.local.store import (
    FORMAT,
    INDEX_FOLDER,
    OXIGRAPH_FOLDER,
    Counts,
    SourceFile,
    StoreInfo,
    is_store,
    stored_files,
    write_store_info,
)
from kg_adapters.local.swap import exclusively, replacing
from kg_adapters.progress import OnProgress, Progress, Stage, ignore_progress

VECTORS_GONE: Final = "The store had vectors, which were computed for what it held. Compute them anew with --embed."


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did.

    Args:
        folder: The store.
        counts: How much it holds.
        skipped: How many statements, or rests of files, were left out.
        problems: The first of the reasons.
        naming: How many of the entities have a name, and what could name the others.
        notes: What was guessed about the files.
    """

    folder: Path
    counts: Counts
    skipped: int
    problems: tuple[str, ...]
    naming: Naming
    notes: tuple[str, ...] = ()


def build_store(
    sources: Sequence[Path],
    target: Path,
    options: ImportOptions,
    progress: OnProgress = ignore_progress,
    *,
    update: bool = False,
) -> ImportReport:
    """Import files into the store `target`, which is replaced as a whole at the end or left as it was.

    Args:
        sources: Files and folders.
        target: Where the store is to be.
        options: How they are read. An update keeps the store's name, languages and relations to names, with those that
            are chosen before them.
        progress: Called with what is done.
        update: Whether to add the files to what the store holds, which is not read from its files again.

    Raises:
        InvalidSource: A file cannot be read, `target` is something else than a store or an empty folder, there is no
            room for the store, on disk or in memory, or there is none to be updated.
    """
    found = gather_sources(sources, follow_links=options.follow_links)
    # What a link stands for is replaced, not the link.
    target = Path(os.path.realpath(target))
    check_target(target)
    steps = _Steps(progress, sum(look(file.path).size for file in found.files))
    with exclusively(target, on_wait=lambda: steps.tell("waiting")):
        check_target(target)
        base = Base(target) if update else None
        try:
            with replacing(target) as folder:
                report = _Import(found, options, steps, base).build(folder)
                steps.tell("saving")
        except (MemoryError, OSError) as error:
            if isinstance(error, MemoryError) or error.errno == errno.ENOMEM:
                raise InvalidSource(
                    f"{target} cannot be built: memory ran out after {steps.statements:,} statements, while "
                    f"{steps.stage}. Free some, or import fewer statements; nothing was changed."
                ) from error
            raise InvalidSource(
                f"{target} cannot be written: {error.strerror or error}. Make sure that its disk has room and that "
                "nothing else uses the folder, or choose another one; nothing was changed."
            ) from error
    return replace(report, folder=target)


class _Steps:
    """Turns what the import knows into `Progress`."""

    def __init__(self, progress: OnProgress, total: int) -> None:
        self._progress = progress
        self._total = total
        self.done = 0
        self.statements = 0
        self.stage: Stage = "reading"

    def tell(self, stage: Stage, position: int = 0) -> None:
        self.stage = stage
        self._progress(Progress(stage, min(self.done + position, self._total), self._total, self.statements))


class _Import:
    """One import into an empty folder."""

    def __init__(self, found: Sources, options: ImportOptions, steps: _Steps, base: Base | None) -> None:
        self._base = base
        self._vocabulary = base.info.vocabulary if base else options.vocabulary
        self._files = found.files
        self._options = options
        self._steps = steps
        self._states = {file.path: look(file.path) for file in found.files}
        parts = [part for file in found.files for part in parts_of(file, options.limits)]
        self._parts = {file.path: [part for part in parts if part.path == file.path] for file in found.files}
        self._reader = SourceReader(
            skip_errors=options.skip_errors,
            graphs=options.graphs,
            first_file=base.first_file if base else (1 if len(parts) > 1 else None),
            limits=options.limits,
            languages=self._vocabulary.languages,
            id_column=options.id_column,
            label_keys=options.chosen.label_keys,
            keep=_filter(options),
            on_wait=self._wait,
        )
        self._reader.leave_out(found.outside)

    def build(self, folder: Path) -> ImportReport:
        counts = self._write_index(folder)
        files = ArrayFiles(folder, INDEX_FOLDER)
        index = open_index(files)
        self._steps.tell("searching")
        build_text_index(folder, index, self._vocabulary)
        files.let_go()
        write_schema(folder, index, self._vocabulary)
        files.let_go()
        write_profile(folder, profile_of_index(index, self._vocabulary, files.let_go, self._options.limits.memory))
        files.let_go()
        self._steps.tell("saving")
        write_store_info(folder, self._info(folder, index, counts))
        gone = [VECTORS_GONE] if self._base is not None and self._base.has_vectors else []
        notes = (*self._reader.notes, *gone)
        return ImportReport(folder, counts, self._reader.skipped, tuple(self._reader.problems), naming_of(index), notes)

    def _write_index(self, folder: Path) -> Counts:
        arrays = folder / INDEX_FOLDER
        arrays.mkdir()
        with tempfile.TemporaryDirectory(prefix="scratch-", dir=folder) as scratch:
            builder = IndexBuilder(self._vocabulary, Storage(arrays, Path(scratch)))
            if self._base is not None:
                builder.add_index(self._base.store.index, self._base.lists)
            self._read(folder, builder)
            self._steps.tell("indexing")
            self._choose_relations()
            counts = counts_of(builder.finish(self._vocabulary, unfold=True))
            builder.lists.save(folder)
            return counts

    def _read(self, folder: Path, builder: IndexBuilder) -> None:
        """Read every file once, for the index and for Oxigraph."""
        part = sparql_part(folder / OXIGRAPH_FOLDER) if self._starts_sparql(folder) else nullcontext(_add_nowhere)
        with part as add_for_sparql:
            for file in self._files:
                self._steps.tell("reading")
                for source in self._parts[file.path]:
                    self._read_part(source, builder, add_for_sparql)
                self._steps.done += self._states[file.path].size
            self._reader.check_graphs()
            add_for_sparql(builder.add_plain_labels())

    def _starts_sparql(self, folder: Path) -> bool:
        """Say whether SPARQL's part is built now; that of an updated store goes on from the one that it has."""
        if self._base is None or not self._options.sparql:
            return self._options.sparql
        # Where it has none, the whole of it is made when it is asked for.
        return self._base.copy_sparql(folder)

    def _read_part(self, part: Source, builder: IndexBuilder, add_for_sparql: AddRows) -> None:
        with closing(self._reader.read(part)) as batches:
            for rows in batches:
                builder.add_rows(rows)
                add_for_sparql(rows)
                self._steps.statements += len(rows)
                self._steps.tell("reading", self._reader.position)

    def _choose_relations(self) -> None:
        namespaces = {**(self._base.prefixes if self._base else {}), **self._reader.prefixes, **self._options.prefixes}
        try:
            self._vocabulary = self._options.chosen.joined(self._vocabulary, namespaces)
        except InvalidRequest as error:
            raise InvalidSource(str(error)) from error

    def _wait(self) -> None:
        self._steps.tell("reading", self._reader.position)

    def _info(self, folder: Path, index: GraphIndex, counts: Counts) -> StoreInfo:
        base, options, reader = self._base, self._options, self._reader
        declared = {**options.prefixes, **(base.prefixes if base else {}), **reader.prefixes}
        graph_json = reader.graph_json or (base is not None and base.graph_json)
        own_name = base.info.name if base else Path(self._files[0].name).name.partition(".")[0]
        return StoreInfo(
            format=FORMAT,
            name=options.name or own_name,
            created_by=own_version(),
            sources=(*(base.info.sources if base else ()), *map(self._fingerprint, self._files)),
            skipped=reader.skipped + (base.info.skipped if base else 0),
            counts=counts,
            prefixes=choose_prefixes(index, declared, graph_json=graph_json),
            vocabulary=self._vocabulary,
            files=stored_files(folder),
        )

    def _fingerprint(self, file: Source) -> SourceFile:
        """Return the fingerprint of a file, which must be that of what was read."""
        seen = self._states[file.path]
        # Whatever took its place may be waited for without end.
        sha256 = file_sha256(file.path) if look(file.path) == seen else ""
        if not sha256 or look(file.path) != seen:
            raise InvalidSource(f"{file.path} was changed while it was read. Import it again when it is complete.")
        return SourceFile(name=file.name, size=seen.size, sha256=sha256)


def _add_nowhere(_rows: list[Row]) -> None:
    """Leave SPARQL for later."""


def _filter(options: ImportOptions) -> ReadFilter | None:
    try:
        vocabulary = options.chosen.joined(options.vocabulary, options.prefixes) if options.relations else Vocabulary()
        return ReadFilter.of(options.relations, vocabulary, dict(options.prefixes))
    except InvalidRequest as error:
        raise InvalidSource(str(error)) from error


def counts_of(index: GraphIndex) -> Counts:
    """Return how much a graph holds."""
    return Counts(
        entities=int(np.count_nonzero(~bare_relations(index))),
        relations=int(np.count_nonzero(edges_by_relation(index))),
        triples=len(index.out.neighbors),
        features=len(index.features.relations),
    )


def check_target(target: Path) -> None:
    """Make sure that a store may be built at `target`.

    Raises:
        InvalidSource: It is something else than a store, an empty folder or nothing.
    """
    if target.is_dir():
        if target.is_mount():
            raise InvalidSource(f"{target} is a disk of its own, which nothing can replace. Choose a folder inside it.")
        if is_store(target) or not any(target.iterdir()):
            return
        raise InvalidSource(f"{target} is neither a store nor empty. Choose another folder; nothing was changed.")
    if target.exists():
        raise InvalidSource(f"{target} is a file. Choose another name for the store's folder.")


def own_version() -> str:
    """Return what a store says about the program that built it."""
    with suppress(PackageNotFoundError):
        return f"kg-sextant {version('kg-sextant')}"
    return "kg-sextant"
