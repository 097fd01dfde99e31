"""Tests of the pipeline. The handlers are tested on both kinds of databases, in tests/integration/server/test_server_*.py.

Their answers are compared with the real server in tests/integration/test_server_admin.py. How `pipeline` finds the route of
a path is tested in tests/unit/server/api/test_routes.py.
"""
