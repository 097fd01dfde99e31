"""Tests of `flagsvc migrate`. Modules without a file here are tested in tests/unit/cli/migrating/test_edge.py."""
