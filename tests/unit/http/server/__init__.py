"""Tests of the HTTP server. `shared` is tested in tests/unit/http/server/test_writer.py."""
