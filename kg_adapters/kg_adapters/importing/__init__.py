"""Imports files into a store: the index of their statements, their names, a profile and a part for SPARQL."""
