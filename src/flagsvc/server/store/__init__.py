"""The database of the flag server: plain functions that run in one transaction. No HTTP.

This package knows no requests and no routes. Functions return what the API answers. They raise `CallerError` if the caller is at
fault.

- Two administrators change the same: `Store.writing` runs writers one after the other, and the last one wins. Each commit adds 1 to
  the revision, which `documents.py` puts into the tag of documents. `Store.reading` is one consistent read.
- A change reaches another flag server on the same database: `revision_listener.py`.
- An event: `Tx.record_event` in the transaction of the change; `store_events` stores it at the commit, and queues it for webhooks
  (outbox.py). `event_kinds.py` has a row for each type: its words, what the real server shows of it, how it is undone.
- The database is lost: `Documents` goes on with what it read last. It takes no changes: `writability.py` has a row for each reason,
  and probes until changes are taken (decision 0023).
- A resource has a `Writer` (`writer.py`). A part of a flag has functions of its own (decision 0022).
- Permissions and roles: `actors.py`. Sessions and tokens: `Keyring` in `keyring.py`.
"""
