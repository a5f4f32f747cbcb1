"""What a model has found out so far: a network of paths that outlives the connection."""
