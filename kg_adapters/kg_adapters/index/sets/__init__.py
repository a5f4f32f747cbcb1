"""Sets over the arrays of an index."""
