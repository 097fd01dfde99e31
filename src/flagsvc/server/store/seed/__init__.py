"""The seed file: what a flag server begins with."""
