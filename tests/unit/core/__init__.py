"""Tests of the core. `extras` is tested in tests/house/test_extras.py, `control_groups` in tests/unit/settings/test_processors.py.

`clock`, `errors`, `notices` and `version` have no tests of their own: tests/unit/cli and tests/unit/core use them.
"""
