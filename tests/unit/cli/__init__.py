"""Tests of the commands. `team` is tested in tests/integration/server/test_cli_team.py, `move` in tests/unit/cli/moving.

`programs`, `commands` and `parser` are tested in tests/unit/cli/test_main.py and tests/unit/cli/test_completion.py, `documents`
in tests/unit/cli/test_evaluate.py.
"""
