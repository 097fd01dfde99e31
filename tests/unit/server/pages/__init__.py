"""Tests of what pages compute. The pages are tested in tests/integration/pages/test_pages_*.py, by what a page shows."""
