"""Tests of the HTTP client. `transport` is tested in tests/integration/test_upstream_wire_connections.py."""
