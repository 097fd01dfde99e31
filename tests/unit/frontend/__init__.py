"""Tests of the frontend API. `report_store` is tested in tests/unit/frontend/test_reports.py.

So is the counter of flags that `contract` has.
"""
