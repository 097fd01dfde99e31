"""Batch validation, import and export of features (import validation 4; 5; 6; 7)."""
