"""Tests of the proxy. `generations` is tested in tests/unit/proxy/test_generation*.py and tests/unit/proxy/test_token_*.py.

`redis` is tested in tests/integration/redis.
"""
