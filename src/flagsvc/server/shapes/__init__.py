"""Shapes of bodies that several modules use: features, strategies, batch operations, what clients send and get."""
