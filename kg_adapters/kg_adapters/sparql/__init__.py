"""Knowledge graphs behind SPARQL endpoints."""
