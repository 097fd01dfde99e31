"""The options of the storage: a folder, or a server that replicas share."""

from __future__ import annotations

from typing import Any

from flagsvc.settings import defaults
from flagsvc.settings import kinds as of
from flagsvc.settings.base import Options, Place
from flagsvc.settings.option import Section, option
from flagsvc.settings.storage import NAME_PREFIX, STORAGE


class StorageOptions(Options):
    """Where the last configuration is kept."""

    section = Section.STORAGE

    storage_provider: Any = option(
        "storageProvider",
        kind=of.OBJECT,
        default=None,
        help="custom storage provider, used in place of the folder",
        advanced=True,
    )
    storage: Place = option(
        "storage",
        reads=("FLAGSVC_STORAGE",),
        kind=STORAGE,
        default_factory=defaults.storage,
        default_text="the user's state folder: $XDG_STATE_HOME/flagsvc, else ~/.local/state/flagsvc",
        help="folder, or Redis or Valkey server of several replicas, that keeps the last configuration, to start from while"
        " upstream is away; none keeps nothing",
    )
    storage_password: str | None = option(
        "storagePassword",
        reads=("FLAGSVC_STORAGE_PASSWORD",),
        kind=of.PASSWORD,
        default=None,
        secret=True,
        help="password of the storage server, in place of the one in its URL",
    )
    storage_ca: str | None = option(
        "storageCa",
        reads=("FLAGSVC_STORAGE_CA",),
        kind=of.PATH,
        default=None,
        help="authorities, PEM, to trust beside the system's where the storage is rediss://",
        advanced=True,
    )
    storage_cert: str | None = option(
        "storageCert",
        reads=("FLAGSVC_STORAGE_CERT",),
        kind=of.PATH,
        default=None,
        help="certificate, PEM, to show to a rediss:// server (mutual TLS)",
        advanced=True,
    )
    storage_key: str | None = option(
        "storageKey",
        reads=("FLAGSVC_STORAGE_KEY",),
        kind=of.PATH,
        default=None,
        default_text="in the certificate's file",
        needs="storageCert",
        help="key of that certificate, PEM",
        advanced=True,
    )
    storage_key_password: str | None = option(
        "storageKeyPassword",
        reads=("FLAGSVC_STORAGE_KEY_PASSWORD",),
        kind=of.PASSWORD,
        default=None,
        secret=True,
        needs="storageCert",
        help="password of that key, where it is encrypted",
        advanced=True,
    )
    storage_timeout: int = option(
        "storageTimeout",
        reads=("FLAGSVC_STORAGE_TIMEOUT",),
        kind=of.integer(1, metavar="MS"),
        default=2000,
        help="milliseconds after which a request to the storage server times out",
        advanced=True,
    )
    storage_prefix: str = option(
        "storagePrefix",
        reads=("FLAGSVC_STORAGE_PREFIX",),
        kind=NAME_PREFIX,
        default="flagsvc",
        help="what every key on the storage server begins with",
        advanced=True,
    )
