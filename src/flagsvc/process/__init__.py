"""The composition roots: the one place where options become a running proxy. Nothing is created at import."""
