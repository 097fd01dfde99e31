"""Where configurations survive a restart: the provider's shape, a folder, nothing, the keeper that reads and writes; and shelves,
where usage metrics do.
"""

from flagsvc.errors import ConfigurationError
from flagsvc.repository.locations import file_path, is_file_url
from flagsvc.repository.stores.file import FileStore
from flagsvc.repository.stores.keeper import Keeper, Record
from flagsvc.repository.stores.provider import NoStore, StorageProvider, storage_key
from flagsvc.repository.stores.shelves import FileShelf, OwnShelf

__all__ = [
    "FileShelf",
    "FileStore",
    "Keeper",
    "NoStore",
    "OwnShelf",
    "Record",
    "StorageProvider",
    "storage_at",
    "storage_key",
]


def storage_at(location: str) -> StorageProvider:
    """Return the provider for a location: `none`, or a folder as `file:///folder`. Raises ConfigurationError."""
    if location.lower() == "none":
        return NoStore()
    if is_file_url(location):
        return FileStore(file_path(location))
    raise ConfigurationError([f"`{location}` is no place to store configurations: write `none` or `file:///folder`"])
