"""Tests of shapes: all kinds in tests/unit/http/shapes/test_exact.py, and by laws in tests/property/test_shapes_laws.py."""
