"""Graphs on this machine: Oxigraph for SPARQL, and an adjacency index for everything else."""

from kg_adapters.local.opening import open_local

__all__ = ["open_local"]
