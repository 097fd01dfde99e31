"""The steps that bring a database of the flag server to the shape of `flagsvc.server.store.schema`; Alembic runs them."""
