"""Tests of bodies. Modules without a file here are tested in tests/integration/test_shapes_real_server.py."""
