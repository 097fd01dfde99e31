"""Commands for a team: tokens, users, backups and seeds on the database of a flag server, and flags over its admin API."""
