"""Questions that were solved over a graph, kept and offered as examples for others."""
