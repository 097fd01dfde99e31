"""Tests of the configuration. `sources` and `stores` are also tested in tests/contracts.

`DocumentStorage` of `stores` is tested in test_document_storage.py here, `change_log` in test_holder.py here, `stream_notes` in
test_follower.py here.
"""
