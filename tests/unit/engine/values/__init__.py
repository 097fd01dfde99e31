"""Tests of values. The parts of dates are tested in tests/unit/engine/values/test_jsdate.py, as a whole."""
