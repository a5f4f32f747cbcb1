"""Knowledge graphs behind one small protocol."""
