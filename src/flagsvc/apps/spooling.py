"""Where usage metrics wait that could not be sent: beside the configuration, in whatever storage that has
(docs/decisions/0030-usage-is-never-lost.md).
"""

from __future__ import annotations

import hashlib
import json

from flagsvc.apps.plan import Plan
from flagsvc.repository.stores import FileShelf, FileStore, NoStore, OwnShelf, StorageProvider
from flagsvc.settings.options import ProxyOptions
from flagsvc.usage import Shelf, Spool


def make_spool(plan: Plan, provider: StorageProvider) -> Spool | None:
    """Return what keeps usage metrics in a storage, None where nothing is stored."""
    options = plan.options
    shelf = make_shelf(provider, make_usage_key(options), options.flagsvc_instance_id)
    # a post on its way is waited for before the record is written anew
    pace = max(options.metrics_interval, options.upstream_timeout)
    return None if shelf is None else Spool(shelf, clock=plan.clock, log=plan.log, interval_ms=pace)


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


def make_shelf(provider: StorageProvider, key: str, instance_id: str) -> Shelf | None:
    """Return the records of usage metrics in a storage: those of its `shelf(key)` where it has one, else a single one."""
    if isinstance(provider, NoStore):
        return None
    if isinstance(provider, FileStore):
        return FileShelf(provider.folder, key)
    own = getattr(provider, "shelf", None)
    if own is not None:
        shelf: Shelf = own(key)
        return shelf
    return OwnShelf(provider, key, instance_id)
