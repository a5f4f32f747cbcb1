"""observe: what lies around entities, as far as a question is about it (ODA, section 2.1)."""
