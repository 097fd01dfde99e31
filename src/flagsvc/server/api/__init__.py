"""The flag server's HTTP contract (import validation; specification: POST {upstream_url}/api/admin/features-batch/validate)."""
