"""Webhooks: their settings, the queue of deliveries, and what is sent (decision 0033).

An event is queued in the transaction of its change (`server/store/outbox.py`). `Sender`, a thread, claims it, makes the request and
sends it.

    addons.py     the settings with their checks; provider.py: the signature
    template.py   the body
    reach.py      the addresses that webhooks may reach
"""
