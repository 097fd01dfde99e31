"""Tests of the classes of contexts. Modules without a file here are tested in tests/unit/engine/classes/test_programs.py.

Generated contexts are in tests/property/test_property_classes.py.
"""
