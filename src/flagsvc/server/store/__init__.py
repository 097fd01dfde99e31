"""The database of the flag server: plain functions that run in one transaction. No HTTP.

This package knows no requests and no routes. Functions return what the API answers. They raise `CallerError` if the caller is at
fault.
"""
