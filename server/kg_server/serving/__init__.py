"""Serve MCP over standard streams and HTTP, within limits."""
