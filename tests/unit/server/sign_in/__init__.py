"""Tests of signing in. `provider`, `exchange` and `ways` are tested in tests/integration/pages/test_pages_sign_in*.py."""
