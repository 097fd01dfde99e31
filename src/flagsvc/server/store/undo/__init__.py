"""Undoing changes: a kind of event that can be undone has a row that says how.

`ROWS` in `server/store/event_kinds.py` has for each kind a `Subject` (a row of `of_resources.py`), which reads what is there and
sets it back. `undo.py` does it.
"""
