"""What the names and ids in a call stand for in the graph."""
