"""Tests of the frontend API. `report_store` is tested in tests/unit/frontend/test_reports.py."""
