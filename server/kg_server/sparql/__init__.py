"""The Sparql tool: queries in which names may stand for ids."""
