"""Extract the surroundings of chosen entities from any graph into a store."""
