"""Tests of webhooks. `addons` and `sender` are tested in tests/integration/server/test_server_webhook*.py."""
