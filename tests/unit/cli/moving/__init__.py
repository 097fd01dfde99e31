"""Tests of `flagsvc move`. `planning` is tested in tests/unit/cli/moving/test_move.py."""
