"""Whether answers are right, in the ways that are published, and how sure the figures are."""
