"""Flags at rest, for the flag server: plain functions over one transaction of a database. No HTTP.

This room refuses to know requests and routes. What a function gives is what the wire shows; what goes wrong is a `Refusal`.
"""
