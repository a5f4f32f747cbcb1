"""The store that an import adds to."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from kg_adapters.errors import InvalidSource
from kg_adapters.local.building.namespaces import is_graph_json
from kg_adapters.local.building.written_lists import read_lists
from kg_adapters.local.reading.file_terms import file_number_after
from kg_adapters.local.seal import SEAL_FILE, Damage, find_changed_oxigraph
from kg_adapters.local.store import OXIGRAPH_FOLDER, LocalStore, StoreInfo, is_store, open_store
from kg_adapters.local.vectors.labels import FOLDER as VECTORS_FOLDER
from kg_adapters.local.verifying import verify_index


class Base:
    """What a store has that files are added to, all of which is compared with what was noted of it.

    Args:
        target: The store.

    Attributes:
        store: The same, open.
        lists: What its index says otherwise than it was written.
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

    def copy_sparql(self, folder: Path) -> bool:
        """Copy the part that answers SPARQL into a new store, to be added to; say whether there is one, whole."""
        there = self.store.folder / OXIGRAPH_FOLDER
        if find_changed_oxigraph(there) is not None:
            return False
        shutil.copytree(there, folder / OXIGRAPH_FOLDER, ignore=shutil.ignore_patterns(SEAL_FILE, "LOCK"))
        return True
