"""Local graphs: RDF files and imported stores."""
