"""The flag server: flags in a database, an admin API, and the documents that proxies and SDKs ask for."""
