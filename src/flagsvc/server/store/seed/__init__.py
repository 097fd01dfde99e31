"""The seed file: the first content of a flag server, or its wanted state.

At a start `once.py` adds what is missing. `flagsvc server seed apply` makes the database what the file says, with `wanted.py`; its
plan is a transaction that is rolled back.
"""
