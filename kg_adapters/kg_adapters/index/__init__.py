"""The adjacency index of a graph: sorted columns, storage, and the build from statements."""
