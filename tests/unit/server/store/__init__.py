"""Tests of rules. The store is tested on both kinds of databases in tests/integration/store/test_store*.py.

Resources and undo are tested through the API, in tests/integration/server/test_server_*.py.
"""
