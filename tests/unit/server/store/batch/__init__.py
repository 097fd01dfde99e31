"""Tests of rules. The operations are tested on both kinds of databases, in tests/integration/store/test_store_batch_*.py."""
