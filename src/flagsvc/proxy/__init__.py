"""The proxy: how a configuration arrives, how requests are answered from it, and what is reported upstream.

application.py   the ASGI application: the one place that puts a proxy together
generations/     which environments answer, from one set of options to the next
configuration/   documents: source → snapshot → `Holder` → storage
api/             requests: key → context → `Snapshot` → bytes
usage/           counts: requests → `UsageCounters` → upstream
tokens/          keys that only the upstream knows
workers/         several processes on one port
pages/           what operators see
upstream.py      every request to the upstream; each failure is an `UpstreamError`
extensions.py    custom strategies and enrichers
redis.py         the storage that replicas share
"""
