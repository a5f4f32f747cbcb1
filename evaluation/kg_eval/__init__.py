"""Benchmarks on a user's own model and graph: questions, methods, metrics and reports. Graphs are reached over MCP."""
