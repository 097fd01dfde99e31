"""The store of usage metrics that could not be sent: in the same storage as the configuration
(decision 0030).
"""

from __future__ import annotations

import hashlib
import json

from flagsvc.proxy.configuration.stores import FileRecordStore, FileStore, NoStore, SingleRecordStore, StorageProvider
from flagsvc.proxy.setup import ProxySetup
from flagsvc.proxy.usage import RecordStore, UnsentUsage
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.tokens import read_scope


def make_unsent_usage(setup: ProxySetup, provider: StorageProvider) -> UnsentUsage | None:
    """Return the store of unsent usage metrics, or None if nothing is stored."""
    options = setup.options
    key = make_usage_key(options, setup.name)
    record_store = make_record_store(provider, key, options.flagsvc_instance_id)
    # not shorter than the timeout: a request that is being sent must end before the record is written again
    interval_ms = max(options.metrics_interval, options.upstream_timeout)
    if record_store is None:
        return None
    return UnsentUsage(record_store, clock=setup.clock, log=setup.log, interval_ms=interval_ms)


def make_usage_key(options: ProxyOptions, name: str = "") -> str:
    """Return the name under which unsent counts are stored: a digest of the options that decide where the upstream adds them.

    Any process with the same options may send these counts. Of a token only its scope counts, `project:environment`, if it has one.
    So counts that wait because a token is no longer accepted are sent with its replacement. `name` is that of the environment, if
    there are several in the process: no environment sends the counts of another one.
    """
    token = options.flagsvc_api_token
    identity = [
        "usage",
        options.flagsvc_url,
        scope_of(token) or token,
        options.flagsvc_app_name,
        *([name] if name else []),
    ]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:40]


def scope_of(token: str) -> str:
    """Return the part of a token that is not secret, `project:environment.`; an empty text if it has none."""
    named = read_scope(token)
    return "" if named is None else named.prefix


def make_record_store(provider: StorageProvider, key: str, instance_id: str) -> RecordStore | None:
    """Return the store of usage records in a storage; None if nothing is stored.

    A provider with a method `record_store(key)` returns its own; any other provider keeps a single record.
    """
    if isinstance(provider, NoStore):
        return None
    if isinstance(provider, FileStore):
        return FileRecordStore(provider.folder, key)
    own = getattr(provider, "record_store", None)
    if own is not None:
        record_store: RecordStore = own(key)
        return record_store
    return SingleRecordStore(provider, key, instance_id)
