"""Vectors that a graph keeps: those of its labels, and of what its entities are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from kg_adapters.models import Candidate
from kg_adapters.surroundings import Ints
from kg_adapters.terms import Node

if TYPE_CHECKING:
    from kg_adapters.embedding.protocol import Vectors


class LabelVectors(Protocol):
    """The vectors of a store's labels by one model; ids are those of `StoreIds`."""

    def nodes(self, numbers: Ints, /) -> "Vectors":
        """Return the rows of nodes by their ids, zeros for what has none; shape [ids, dimensions]."""
        ...

    def relations(self, numbers: Ints, /) -> "Vectors":
        """Return the rows of relations by their ids; shape [ids, dimensions]."""
        ...


@runtime_checkable
class SupportsVectors(Protocol):
    """A graph for which vectors were computed ahead, by one model or several."""

    async def label_vectors(self, fingerprint: str) -> LabelVectors | None:
        """Return the vectors of labels by the model of this fingerprint, or None where there are none."""
        ...

    async def search_vectors(
        self, vector: "Vectors", *, fingerprint: str, limit: int, type: Node | None = None
    ) -> Sequence[Candidate]:
        """Return the entities whose label, description and types mean what a vector means, best first.

        The score is the cosine. There are none where no vectors by this model are there.

        Args:
            vector: A unit vector by the model of the fingerprint; shape [dimensions].
            fingerprint: The model.
            limit: The most entities to return.
            type: Only instances of this class.
        """
        ...
