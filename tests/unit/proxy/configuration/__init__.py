"""Tests of the configuration.

`sources` and `stores` are tested in tests/contracts, `change_log` in test_holder.py here, `stream_notes` in test_follower.py here.
"""
