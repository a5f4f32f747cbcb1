"""Reference agents that reach a graph through MCP alone."""
