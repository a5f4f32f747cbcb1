"""What answers rest on: the values of a graph, the facts that a run showed, and how answers are compared with them."""
