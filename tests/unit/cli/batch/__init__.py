"""Tests of validate, import and export. `session` and `server_errors` are tested in tests/unit/cli/test_*port.py."""
