"""Tests of dialects. `proxy` is tested in tests/wire/test_wire_*.py, `real_server_format` in test_frontend.py of this folder.

The answers are compared with the real server in tests/differential_frontend.
"""
