"""Tests of processes. `serve_flags` is tested in tests/integration/test_server_process.py."""
