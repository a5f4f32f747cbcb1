"""The label and the description of every node, chosen among its features as `Vocabulary` does."""

from collections.abc import Sequence

import numpy as np

from kg_adapters.labels import Vocabulary
from kg_adapters.local.building.growing import Storage
from kg_adapters.local.building.index_tables import FeatureRows
from kg_adapters.local.index import Longs


class TextChoice:
    """Chooses feature rows, many nodes at once.

    Args:
        storage: Where the choice goes.
        relations: The relations of the index, sorted.
        languages: Its languages, sorted.
        vocabulary: What names and describes, in which language.

    Attributes:
        labels: For each node the row of its label, or -1.
        descriptions: The same for its description.
    """

    def __init__(
        self, storage: Storage, relations: Sequence[str], languages: Sequence[str], vocabulary: Vocabulary
    ) -> None:
        places = {text: place for place, text in enumerate(relations)}
        self._labels, self._descriptions = (
            [places[iri.value] for iri in wanted if iri.value in places]
            for wanted in (vocabulary.labels, vocabulary.descriptions)
        )
        self._relations = len(relations)
        # The last rank serves the language -1, which is none.
        self._language_ranks = np.array([vocabulary.rank(language) for language in (*languages, None)], dtype=np.int32)
        self.labels = storage.array("labels", np.int64)
        self.descriptions = storage.array("descriptions", np.int64)

    def add(self, rows: FeatureRows) -> None:
        """Choose for the nodes that some rows are about, the next ones."""
        self.labels.append(self._chosen(rows, self._labels))
        self.descriptions.append(self._chosen(rows, self._descriptions))

    def _chosen(self, said: FeatureRows, preferred: Sequence[int]) -> Longs:
        """Return for each node the best row among the preferred relations, or -1."""
        chosen = np.full(said.nodes, -1, dtype=np.int64)
        if not preferred:
            return chosen
        by_relation = np.full(self._relations, len(preferred), dtype=np.int32)
        by_relation[preferred[::-1]] = np.arange(len(preferred), dtype=np.int32)[::-1]
        preference = by_relation[said.relations]
        rows = np.flatnonzero(preference < len(preferred))
        owners, languages = said.owners[rows], said.languages[rows]
        # Rows of one node and relation are already sorted by value, and lexsort is stable.
        order = np.lexsort((languages, self._language_ranks[languages], preference[rows], owners))
        best, firsts = np.unique(owners[order], return_index=True)
        chosen[best] = rows[order][firsts] + said.first
        return chosen
