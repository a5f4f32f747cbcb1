"""Surroundings as plain values, which tests can compare whole."""

from kg_adapters.surroundings import Surroundings


def everything(around: Surroundings) -> tuple[object, ...]:
    """Return all that surroundings say, but for a store's own numbers."""
    arrays = (around.near, around.inverse, around.relation, around.far)
    sequences = (
        around.relations,
        around.far_nodes,
        around.far_literals,
        around.relation_labels,
        around.far_labels,
    )
    return (
        around.entities,
        *(array.tolist() for array in arrays),
        *(list(sequence) for sequence in sequences),
        around.sampled,
    )
