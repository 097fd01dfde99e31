"""The flag server's HTTP contract (dialects: Client API; Admin API)."""
