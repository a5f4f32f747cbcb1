"""Other ways to answer the same questions, each from one graph in memory."""
