"""The names of a graph, and the search among them."""
