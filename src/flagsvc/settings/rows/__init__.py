"""The options, one row each and one class for each section of the help; `server.py` has those of the flag server.

A new option is a row here and the code that reads it: loader, `--help`, reference page, `ProxyOptions` and tests read the row.
"""
