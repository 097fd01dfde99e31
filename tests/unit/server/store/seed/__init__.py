"""Tests of files. Modules without a file here are tested in tests/integration/store/test_store_seed*.py."""
