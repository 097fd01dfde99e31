"""The migrations that bring a database of the flag server to the schema of `flagsvc.server.store.schema`. Alembic runs them."""
