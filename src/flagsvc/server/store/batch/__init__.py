"""Batch validation, import and export of features (import validation, 4 to 7)."""
