"""What MCP clients see, and the graph operations behind it."""
