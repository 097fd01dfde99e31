"""Tests of workers. `slot` is tested in tests/unit/proxy/workers/test_pool.py."""
