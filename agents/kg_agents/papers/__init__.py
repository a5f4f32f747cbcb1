"""The agents of two papers: ODA and Graph Counselor."""
