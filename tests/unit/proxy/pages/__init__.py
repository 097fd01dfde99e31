"""Tests of the proxy's pages: modules without a file here in tests/unit/proxy/pages/test_pages_*.py, by what a page shows."""
