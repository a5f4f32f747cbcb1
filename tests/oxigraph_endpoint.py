"""The endpoint over Oxigraph that benchmarks share with tests."""

from benchmarks.engines.oxigraph import Asked, OxigraphEndpoint, running_oxigraph

__all__ = ["Asked", "OxigraphEndpoint", "running_oxigraph"]
