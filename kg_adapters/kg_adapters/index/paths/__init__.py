"""Paths between two nodes of an index."""
