"""Tests of the engine. What compiles a document is tested in tests/unit/engine/test_compile.py and test_refresh.py beside it.

`reading` is tested in tests/unit/engine/test_parse.py.
The whole is tested in tests/conformance, and on generated documents in tests/property.
"""
