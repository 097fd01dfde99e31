"""Tests of the settings. The rows of options are tested in tests/wire/test_options_effect.py, by what an option does.

Modules without a file here are tested in tests/unit/settings/test_load*.py.
"""
