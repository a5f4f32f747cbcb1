"""Turn tables into graphs: survey each one, plan all of them together, then write the statements of each."""
