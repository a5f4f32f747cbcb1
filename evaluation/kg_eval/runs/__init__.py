"""Runs of benchmarks: planned, kept as they go, and gone on with after an interruption."""
