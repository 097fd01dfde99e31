"""Webhooks: their settings, the queue of deliveries, and what is sent (decision 0033).

An event is queued in the transaction of its change (`server/store/outbox.py`). `Sender`, a thread, claims it, makes the request and
sends it.

    addons.py     the settings with their checks; provider.py: the signature
    template.py   the body; recipes.py: the body for a chat
    reach.py      the addresses that webhooks may reach
    trials.py     a test of settings before they are stored
"""
