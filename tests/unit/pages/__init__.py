"""Tests of what all pages share. Modules without a file here are tested in tests/unit/pages/test_page_kit.py."""
