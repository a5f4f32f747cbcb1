"""The endpoint over Oxigraph that benchmarks share with tests."""

from benchmarks.engines.oxigraph import OxigraphEndpoint, running_oxigraph

__all__ = ["OxigraphEndpoint", "running_oxigraph"]
