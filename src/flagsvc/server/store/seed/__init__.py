"""The seed file: the first content of a flag server."""
