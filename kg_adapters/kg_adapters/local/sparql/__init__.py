"""SPARQL over local graphs: the part of a store for it, and the processes that answer."""
