"""Storage that survives a restart.

There is the interface of a storage provider, a provider over a folder, and one that stores nothing. `DocumentStorage` reads and
writes configurations; record stores keep usage metrics.
"""

from flagsvc.core.errors import ConfigurationError
from flagsvc.proxy.configuration.locations import file_path, is_file_url
from flagsvc.proxy.configuration.stores.document_storage import DocumentStorage, StoredDocument
from flagsvc.proxy.configuration.stores.file import FileStore
from flagsvc.proxy.configuration.stores.provider import NoStore, StorageProvider, StorageServer, storage_key
from flagsvc.proxy.configuration.stores.record_stores import FileRecordStore, SingleRecordStore

__all__ = [
    "DocumentStorage",
    "FileRecordStore",
    "FileStore",
    "NoStore",
    "SingleRecordStore",
    "StorageProvider",
    "StorageServer",
    "StoredDocument",
    "storage_at",
    "storage_key",
]


def storage_at(location: str) -> StorageProvider:
    """Return the provider of a location: `none`, or a folder as `file:///folder`. Raises ConfigurationError."""
    if location.lower() == "none":
        return NoStore()
    if is_file_url(location):
        return FileStore(file_path(location))
    raise ConfigurationError([f"`{location}` is no place to store configurations: write `none` or `file:///folder`"])
