"""Values as the reference reads them: numbers, dates, versions, addresses, text and patterns.

Each module is a few plain functions from text to a value, or to None where the text does not hold one. Nothing here knows of
flags, constraints or contexts, and nothing raises because of what a text contains.
"""
