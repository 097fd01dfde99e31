"""Where usage metrics wait that could not be sent: beside the configuration, in whatever storage that has
(decision 0030).
"""

from __future__ import annotations

import hashlib
import json

from flagsvc.proxy.configuration.stores import FileRecordStore, FileStore, NoStore, SingleRecordStore, StorageProvider
from flagsvc.proxy.setup import ProxySetup
from flagsvc.proxy.usage import RecordStore, UnsentUsage
from flagsvc.settings.options import ProxyOptions


def make_unsent_usage(plan: ProxySetup, provider: StorageProvider) -> UnsentUsage | None:
    """Return what keeps usage metrics in a storage, None where nothing is stored."""
    options = plan.options
    record_store = make_record_store(provider, make_usage_key(options), options.flagsvc_instance_id)
    # a post on its way is waited for before the record is written anew
    pace = max(options.metrics_interval, options.upstream_timeout)
    return None if record_store is None else UnsentUsage(record_store, clock=plan.clock, log=plan.log, interval_ms=pace)


def make_usage_key(options: ProxyOptions) -> str:
    """Return the name under which counts are stored that may be sent by whoever has these options: a digest of all that decides
    where the upstream books them.

    Of the token that is its scope, `project:environment`, where it has one: counts that wait because a token is no longer taken are
    sent with the one that replaces it.
    """
    token = options.flagsvc_api_token
    identity = ["usage", options.flagsvc_url, scope_of(token) or token, options.flagsvc_app_name]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:40]


def scope_of(token: str) -> str:
    """Return what of a token is no secret, `project:environment.`; empty where it has no such part."""
    scope, dot, _ = token.partition(".")
    return scope + dot if dot and ":" in scope else ""


def make_record_store(provider: StorageProvider, key: str, instance_id: str) -> RecordStore | None:
    """Return the records of usage metrics in a storage: those of its `record_store(key)` where it has one, else a single one."""
    if isinstance(provider, NoStore):
        return None
    if isinstance(provider, FileStore):
        return FileRecordStore(provider.folder, key)
    own = getattr(provider, "record_store", None)
    if own is not None:
        record_store: RecordStore = own(key)
        return record_store
    return SingleRecordStore(provider, key, instance_id)
