"""Tests of the kit for HTTP. Modules without a file here are tested by their users, in tests/unit/http/server and tests/wire."""
