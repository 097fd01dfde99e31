"""Tests of the HTTP client. The connections of `transport` are tested in tests/integration/test_upstream_wire_connections.py."""
