"""The HTTP client of everything that is asked over the network: endpoints and Wikidata's web API."""
