"""The methods that are compared: each reaches the graph through its tools, and models through one protocol."""
