"""One module a step, numbered in their order; a step that was released never changes."""
