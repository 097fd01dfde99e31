"""Webhooks: their settings, the queue of deliveries, and what is sent (decision 0062)."""
