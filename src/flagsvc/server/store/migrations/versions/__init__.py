"""One module for each migration, numbered in order. A released migration never changes."""
