"""Tests of reasons. `steps` and `conditions` are tested in tests/unit/reasons/test_whole.py."""
