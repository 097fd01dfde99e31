"""The steps that bring a database of the flag server to the shape of `flagsvc.flagstore.schema`; Alembic runs them."""
