"""`file:` URLs and the places to store at."""

from __future__ import annotations

from pathlib import Path

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.proxy.configuration import file_path, is_file_url
from flagsvc.proxy.configuration.stores import FileStore, NoStore, storage_at


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///etc/flags.json", "/etc/flags.json"),
        ("FILE:///etc/flags.json", "/etc/flags.json"),
        ("file://localhost/etc/flags.json", "/etc/flags.json"),
        ("file:/etc/flags.json", "/etc/flags.json"),
        ("file:flags.json", "flags.json"),
        ("file:///a%20b/%C3%BC", "/a b/ü"),
    ],
)
def test_a_file_url_names_a_path(url: str, path: str) -> None:
    """A file URL may have an empty host, an absolute or relative path, and percent escapes."""
    assert is_file_url(url) and file_path(url) == Path(path)


@pytest.mark.parametrize("url", ["file://other.example/etc/flags.json", "file:", "file://"])
def test_a_file_url_of_another_machine_or_of_nothing_is_refused(url: str) -> None:
    """The message says what to write."""
    with pytest.raises(ConfigurationError, match="file:///folder/name"):
        file_path(url)


def test_other_urls_are_no_file_urls() -> None:
    """These go to the network."""
    assert not any(is_file_url(url) for url in ("http://x/file:", "files:///x", "/etc/flags.json", ""))


def test_places_to_store_at(tmp_path: Path) -> None:
    """`none`, a folder, and nothing else."""
    assert isinstance(storage_at("none"), NoStore) and isinstance(storage_at("None"), NoStore)
    store = storage_at(tmp_path.as_uri())
    assert isinstance(store, FileStore)
    store.set("k", b"x")
    assert list(tmp_path.iterdir())
    with pytest.raises(ConfigurationError, match="redis"):
        storage_at("redis://x")
