"""How files are read and what is built from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kg_adapters.labels import ChosenRelations, Vocabulary
from kg_adapters.open_options import ReadingLimits
from kg_adapters.tables.options import TableOptions


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How files are read and what is built from them.

    Args:
        skip_errors: Leave out what cannot be read, and count it, instead of stopping there.
        graphs: IRIs of the named graphs to import; everything when empty.
        merge_graphs: Whether it is not kept which named graph a statement is in.
        sparql: Whether to build the Oxigraph store now; without it, the first SPARQL query does. It leaves the rest of
            the store as it is, so no store is named by it.
        vocabulary: The relations and languages that labels and descriptions are chosen by.
        chosen: Relations that come before those of the vocabulary, with the prefixes of the files.
        prefixes: What prefixes stand for, before those of the files.
        name: What to call the graph; the first file's name when None.
        follow_links: Whether links in a folder are followed that lead outside of it.
        relations: Relations to keep, as `P31`, prefixed names or IRIs, with names and descriptions in the languages of
            the vocabulary; every statement when empty.
        tables: The options of tables; what they leave open is found.
        limits: What one file may ask for while it is read; they leave the store as it is, so no store is named by them.
    """

    skip_errors: bool = False
    graphs: tuple[str, ...] = ()
    merge_graphs: bool = False
    sparql: bool = field(default=True, repr=False)
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    chosen: ChosenRelations = field(default_factory=ChosenRelations)
    prefixes: Mapping[str, str] = field(default_factory=dict[str, str])
    name: str | None = None
    relations: tuple[str, ...] = ()
    tables: TableOptions = field(default_factory=TableOptions)
    follow_links: bool = field(default=False, repr=False)
    limits: ReadingLimits = field(default_factory=ReadingLimits, repr=False)
