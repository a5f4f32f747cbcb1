"""Wikidata: its query service for edges, its web API for names."""
