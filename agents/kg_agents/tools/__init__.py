"""The tools of an MCP server: sessions, typed calls and results, and the agent whose model calls them itself."""
