"""Engines, and the weather between us and them, for benchmarks and tests: everything on loopback."""
