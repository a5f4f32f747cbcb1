"""Builds the index of a graph from its statements, in bounded memory."""
