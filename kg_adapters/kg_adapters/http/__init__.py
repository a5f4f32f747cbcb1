"""The HTTP client for SPARQL endpoints and Wikidata's web API."""
