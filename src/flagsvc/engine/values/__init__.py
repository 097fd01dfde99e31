"""Parsers of values, with the rules of the reference: numbers, dates, versions, addresses, text and patterns.

Each module has a few functions from text to a value, or to None if the text has none. They do not know flags, constraints or
contexts, and no text makes them raise.
"""
