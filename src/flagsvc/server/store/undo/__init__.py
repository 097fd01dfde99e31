"""Undoing changes: a kind of event that can be undone has a row that says how."""
