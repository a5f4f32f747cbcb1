"""Taking what lies around some entities out of any graph, into a store of its own."""
