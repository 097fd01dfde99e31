"""Tests of the service. Modules without a file here are tested in tests/unit/proxy/api/test_service.py and tests/wire."""
