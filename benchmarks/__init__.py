"""How fast and how small KG Sextant is, against its targets and beside its peers."""
