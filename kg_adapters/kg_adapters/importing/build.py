"""Import files into a store."""

import errno
import os
import shutil
import tempfile
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Final, overload

import numpy as np

from kg_adapters.definition_files import PROFILE_FILE, SCHEMA_FILE, profile_text, schema_text
from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.files.choice import ReadFilter
from kg_adapters.files.frames import StatementColumns
from kg_adapters.files.json_graphs import GRAPH_JSON_NAMESPACES, NODE_NAMESPACE, RELATION_NAMESPACE
from kg_adapters.files.reader import Quads, SourceReader, file_number_after
from kg_adapters.files.recognition import parts_of
from kg_adapters.files.sources import TABLES, Source, Sources, gather_sources, look
from kg_adapters.importing.import_builder import ImportBuilder
from kg_adapters.importing.naming import NamingReport, naming_of
from kg_adapters.index.block_files import Damage
from kg_adapters.index.graph_index import GraphIndex, bare_relations, edges_by_relation, written
from kg_adapters.index.profiling import profile_of_index, schema_of_index
from kg_adapters.index.storage import IndexStorage
from kg_adapters.labels import Vocabulary
from kg_adapters.local.array_files import ArrayFiles, open_index
from kg_adapters.local.checksums import SEAL_FILE, file_sha256, find_changed_oxigraph
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.names.search import build_text_index
from kg_adapters.local.quads import QUADS_FILE, QuadCounts, append_quads, read_counts, write_counts
from kg_adapters.local.sparql.store import SparqlPart, sparql_part
from kg_adapters.local.store import (
    FORMAT,
    INDEX_FOLDER,
    OXIGRAPH_FOLDER,
    VECTORS_FOLDER,
    Counts,
    LocalStore,
    SourceFile,
    StoreInfo,
    is_store,
    open_store,
    stored_files,
    verify_index,
    write_store_info,
)
from kg_adapters.local.swap import exclusively, replacing
from kg_adapters.local.written_lists import read_lists
from kg_adapters.open_options import OnProgress, Progress, Stage, ignore_progress
from kg_adapters.prefixes import BareIds, Prefixes, prefixes_in_use
from kg_adapters.tables.report import TableReport

# What reads as a full IRI stays one; everything else may be an id.
_PLAIN: Final = r"(?s:(?!<|_:|urn:|[A-Za-z][A-Za-z0-9+.-]*://)\S(?:.*\S)?)"


def choose_prefixes(index: GraphIndex, declared: Mapping[str, str], *, graph_json: bool = False) -> Prefixes:
    """Return the short forms of a graph's IRIs.

    Args:
        index: The graph.
        declared: The prefixes that its files declare.
        graph_json: Whether ids are to be taken as a `graph.json` spells them.
    """
    iris = _Iris(index)
    if not graph_json:
        return prefixes_in_use(iris, declared)
    namespaces = prefixes_in_use(iris, {**GRAPH_JSON_NAMESPACES, **declared}).namespaces
    return Prefixes(namespaces, BareIds(NODE_NAMESPACE, _PLAIN), BareIds(RELATION_NAMESPACE, _PLAIN))


def is_graph_json(prefixes: Prefixes) -> bool:
    """Say whether ids are taken as a `graph.json` spells them."""
    return prefixes.entities is not None and prefixes.entities.namespace == NODE_NAMESPACE


class _Iris(Sequence[str]):
    """The keys of all nodes, relations and datatypes of an index, sorted and distinct; `iter` leaves out blank nodes.

    Args:
        index: The graph.
    """

    def __init__(self, index: GraphIndex) -> None:
        nodes = index.nodes
        others = {iri for table in (index.relations, index.datatypes) for iri in written(table)}
        self._nodes = nodes
        self._others = sorted(iri for iri in others if nodes.find(iri) is None)
        # Where each of the others stands among all.
        self._places = [nodes.lower_bound(iri.encode()) + place for place, iri in enumerate(self._others)]

    def __len__(self) -> int:
        return len(self._nodes) + len(self._others)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        before = bisect_left(self._places, index)
        if before < len(self._places) and self._places[before] == index:
            return self._others[before]
        return self._nodes[index - before]

    def __iter__(self) -> Iterator[str]:
        return chain((key for key in written(self._nodes) if not key.startswith("_:")), self._others)


class Base:
    """What a store has that files are added to, all of which is compared with what was noted of it.

    Args:
        target: The store.

    Attributes:
        store: The same, open.
        lists: What its index says otherwise than it was written.
        quads: How many of its statements are in named graphs.
        first_file: The number that labels of the next file's blank nodes begin with.

    Raises:
        InvalidSource: There is no store, or it is damaged.
    """

    def __init__(self, target: Path) -> None:
        if not is_store(target):
            raise InvalidSource(f"There is no store {target} to be updated. Build it first: leave out --update.")
        self.store: LocalStore = open_store(target)
        verify_index(self.store)
        try:
            self.lists = read_lists(self.store)
            self.quads = read_counts(self.store)
        except Damage as problem:
            raise self.store.damaged(problem) from problem
        self.first_file = file_number_after(self.store.index.nodes)

    @property
    def info(self) -> StoreInfo:
        """What the store says of itself."""
        return self.store.info

    @property
    def prefixes(self) -> Mapping[str, str]:
        """What its prefixes stand for."""
        return self.info.prefixes.namespaces

    @property
    def graph_json(self) -> bool:
        """Whether ids are taken as a `graph.json` spells them."""
        return is_graph_json(self.info.prefixes)

    @property
    def has_vectors(self) -> bool:
        """Whether vectors were computed for what it holds."""
        return (self.store.folder / VECTORS_FOLDER).is_dir()

    def copy_quads(self, folder: Path) -> None:
        """Copy what the index cannot hold into a new store, to be added to."""
        if (self.store.folder / QUADS_FILE).exists():
            shutil.copyfile(self.store.folder / QUADS_FILE, folder / QUADS_FILE)

    def copy_sparql(self, folder: Path) -> bool:
        """Copy the part that answers SPARQL into a new store, to be added to; say whether there is one, whole."""
        there = self.store.folder / OXIGRAPH_FOLDER
        if find_changed_oxigraph(there) is not None:
            return False
        shutil.copytree(there, folder / OXIGRAPH_FOLDER, ignore=shutil.ignore_patterns(SEAL_FILE, "LOCK"))
        return True


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
        tables: What became of each table.
    """

    folder: Path
    counts: Counts
    skipped: int
    problems: tuple[str, ...]
    naming: NamingReport
    notes: tuple[str, ...] = ()
    tables: tuple[TableReport, ...] = ()


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


def build_in(folder: Path, files: Sequence[Path], options: ImportOptions, progress: OnProgress) -> ImportReport:
    """Import files into a new store in a folder that is empty; see `build_store`."""
    found = gather_sources(files)
    return _Import(found, options, _Steps(progress, sum(look(file.path).size for file in found.files)), None).build(
        folder
    )


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
        self._found_name = found.name
        self._options = options
        self._steps = steps
        self._quads = Quads(options.merge_graphs)
        self._states = {file.path: look(file.path) for file in found.files}
        parts = [part for file in found.files for part in parts_of(file, options.limits)]
        self._parts = {file.path: [part for part in parts if part.path == file.path] for file in found.files}
        self._reader = SourceReader(
            skip_errors=options.skip_errors,
            graphs=options.graphs,
            first_file=base.first_file if base else (1 if len(parts) > 1 else None),
            limits=options.limits,
            languages=self._vocabulary.languages,
            tables=options.tables,
            label_keys=options.chosen.label_keys,
            keep=_filter(options),
            quads=self._quads,
            on_wait=self._wait,
        )
        self._reader.leave_out(found)

    def build(self, folder: Path) -> ImportReport:
        counts = self._write_index(folder)
        files = ArrayFiles(folder, INDEX_FOLDER)
        index = open_index(files)
        self._steps.tell("searching")
        build_text_index(folder, index, self._vocabulary)
        files.let_go()
        (folder / SCHEMA_FILE).write_text(schema_text(schema_of_index(index, self._vocabulary)), encoding="utf-8")
        files.let_go()
        profile = profile_of_index(index, self._vocabulary, files.let_go, self._options.limits.memory)
        (folder / PROFILE_FILE).write_text(profile_text(profile), encoding="utf-8")
        files.let_go()
        self._steps.tell("saving")
        write_store_info(folder, self._info(folder, index, counts))
        gone = [VECTORS_GONE] if self._base is not None and self._base.has_vectors else []
        graphs = self._quad_counts.summary
        notes = (*self._reader.notes, *([graphs] if graphs else ()), *gone)
        reader = self._reader
        return ImportReport(
            folder, counts, reader.skipped, tuple(reader.problems), naming_of(index), notes, reader.tables
        )

    def _write_index(self, folder: Path) -> Counts:
        arrays = folder / INDEX_FOLDER
        arrays.mkdir()
        with (
            tempfile.TemporaryDirectory(prefix="scratch-", dir=folder) as scratch,
            IndexStorage(arrays, Path(scratch)) as storage,
        ):
            builder = ImportBuilder(self._vocabulary, storage)
            if self._base is not None:
                builder.add_index(self._base.store.index, self._base.lists)
            self._read(folder, builder)
            self._steps.tell("indexing")
            self._choose_relations()
            counts = counts_of(builder.finish_import(self._vocabulary))
            builder.lists.save(folder)
            return counts

    def _read(self, folder: Path, builder: ImportBuilder) -> None:
        """Read every file once, for the index and for Oxigraph."""
        parts = [part for parts in self._parts.values() for part in parts]
        if any(part.ending in TABLES for part in parts):
            self._steps.tell("surveying")
            self._reader.plan_tables(parts)
        if self._base is not None:
            self._base.copy_quads(folder)
        with sparql_part(folder / OXIGRAPH_FOLDER) if self._starts_sparql(folder) else nullcontext() as part:
            for file in self._files:
                self._steps.tell("reading")
                for source in self._parts[file.path]:
                    self._read_part(source, folder, builder, part)
                self._steps.done += self._states[file.path].size
            self._reader.check_graphs()
            labels = builder.add_plain_labels()
            if part is not None:
                part.add(labels)
        write_counts(folder, self._quad_counts)

    def _starts_sparql(self, folder: Path) -> bool:
        """Say whether SPARQL's part is built now; that of an updated store goes on from the one that it has."""
        if self._base is None or not self._options.sparql:
            return self._options.sparql
        # Where it has none, the whole of it is made when it is asked for.
        return self._base.copy_sparql(folder)

    @property
    def _quad_counts(self) -> QuadCounts:
        read, merges = self._quads, self._quads.merge_graphs
        counts = QuadCounts(
            in_graphs=0 if merges else read.in_graphs,
            merged=read.in_graphs if merges else 0,
            triple_terms=read.triple_terms,
        )
        return counts if self._base is None else counts.plus(self._base.quads)

    def _read_part(self, source: Source, folder: Path, builder: ImportBuilder, part: SparqlPart | None) -> None:
        with closing(self._reader.batches(source)) as batches:
            for batch in batches:
                if isinstance(batch, StatementColumns):
                    builder.add_columns(batch.columns)
                    if part is not None:
                        part.add_columns(batch.columns)
                else:
                    builder.add_rows(batch)
                    if part is not None:
                        part.add(batch)
                self._add_quads(folder, part)
                self._steps.statements += len(batch)
                self._steps.tell("reading", self._reader.position)
        self._add_quads(folder, part)

    def _add_quads(self, folder: Path, part: SparqlPart | None) -> None:
        append_quads(folder, self._quads.lines)
        if part is not None:
            part.add_lines(self._quads.lines)
        self._quads.lines.clear()

    def _choose_relations(self) -> None:
        namespaces = {**(self._base.prefixes if self._base else {}), **self._reader.prefixes, **self._options.prefixes}
        try:
            self._vocabulary = self._options.chosen.joined(self._vocabulary, namespaces)
        except InvalidRequest as error:
            raise InvalidSource(str(error)) from error

    def _wait(self) -> None:
        self._steps.tell(self._steps.stage, self._reader.position)

    def _info(self, folder: Path, index: GraphIndex, counts: Counts) -> StoreInfo:
        base, options, reader = self._base, self._options, self._reader
        declared = {**options.prefixes, **(base.prefixes if base else {}), **reader.prefixes}
        graph_json = reader.graph_json or (base is not None and base.graph_json)
        own_name = base.info.name if base else self._found_name
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
