"""The commands of `kg-sextant`, one module each."""
