"""Vectors of a graph's labels and entities, computed ahead."""
