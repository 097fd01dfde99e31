"""Tests of workers. `framing` is tested in tests/unit/proxy/workers/test_channel.py, `slot` in test_pool.py beside it."""
